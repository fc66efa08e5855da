"""Workspaces, with the real program and the real server."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import threading
from typing import Any, Dict, List, Tuple

import lanser
from lanser import types

from .support import PROGRAM, ROOT, ProjectCase

sys.path.insert(0, str(ROOT / "tools/python_client"))
import generate  # noqa: E402

# A request as the client and as the command line have it.
SAME: List[Tuple[Tuple[str, List[Any], Dict[str, Any]], List[str]]] = [
    (("definition", ["src/inventory/report.py:11:12"], {}), ["def", "src/inventory/report.py:11:12"]),
    (("refs", ["Stock.add"], {}), ["refs", "Stock.add"]),
    (("refs", ["Stock.add"], {"limit": 2}), ["refs", "Stock.add", "--limit", "2"]),
    (("hover", ["py://inventory#Stock"], {}), ["hover", "py://inventory#Stock"]),
    (("symbols", [], {"query": "scarce"}), ["symbols", "--query", "scarce"]),
    (("symbols", [], {"paths": ["src/inventory/stock.py"]}), ["symbols", "src/inventory/stock.py"]),
    (("calls", ["Stock.add", "incoming"], {}), ["calls", "Stock.add", "--incoming"]),
    (("types", ["Stock", "supertypes"], {}), ["types", "Stock", "--supertypes"]),
    (("diag", [], {"fail_on": "error"}), ["diag", "--fail-on", "error"]),
    (("locate", ["Stock.add"], {"as_": "ast"}), ["locate", "Stock.add", "--as", "ast"]),
    (("rename", ["Stock.scarce", "shortages"], {}), ["rename", "Stock.scarce", "shortages"]),
    (("move", ["inventory.stock", "inventory.goods"], {}), ["move", "py://inventory.stock", "inventory.goods"]),
]


class WorkspaceTest(ProjectCase):
    def covers(self, value: Any, read: Any, path: str = "") -> None:
        """Every member of a JSON value has its place in the object that was read from it."""
        if dataclasses.is_dataclass(read):
            for name, member in value.items():
                self.covers(member, getattr(read, generate.attribute(name)), f"{path}.{name}")
        elif isinstance(value, list):
            self.assertEqual(len(value), len(read), path)
            for number, (member, own) in enumerate(zip(value, read)):
                self.covers(member, own, f"{path}[{number}]")
        elif isinstance(value, dict):
            for name, member in value.items():
                self.covers(member, read[name], f"{path}.{name}")
        else:
            self.assertEqual(value, read, path)

    def test_the_same_bundles_as_the_command_line(self) -> None:
        self.addCleanup(self.lanser, "session", "stop")
        for (method, arguments, options), command in SAME:
            with self.subTest(command=command):
                answer = getattr(self.workspace, method)(*arguments, **options)
                printed = json.loads(self.lanser("--json", *command).stdout)
                self.assertEqual(answer.bundle_id, printed["bundleId"])
                self.covers(printed["facts"], answer.bundle.facts)
                self.covers(printed["edits"], answer.bundle.edits) if printed["edits"] else None
                self.covers(printed["resolution"], answer.bundle.resolution) if printed["resolution"] else None

    def test_completeness(self) -> None:
        whole = self.workspace.refs("Stock.scarce")
        self.assertTrue(whole.complete)
        self.assertIs(whole.require_complete(), whole)
        self.assertEqual([use.uri for use in whole.value], ["src/inventory/report.py", "src/inventory/stock.py"])
        partial = self.workspace.refs("Stock.add")
        self.assertFalse(partial.complete)
        self.assertEqual(partial.completeness and partial.completeness.unresolved.count, 1)
        with self.assertRaisesRegex(lanser.IncompleteError, "receiver type unknown"):
            partial.require_complete()
        page = self.workspace.refs("Stock.scarce", limit=1)
        self.assertFalse(page.complete)
        rest = self.workspace.refs("Stock.scarce", limit=1, cursor=page.cursor)
        self.assertEqual(page.value + rest.value, whole.value)

    def test_a_member_of_an_answer_is_a_selector(self) -> None:
        for use in self.workspace.refs("Stock.scarce").value:
            self.assertIn("def scarce", self.workspace.hover(use).value.markdown)
        [symbol] = [one for one in self.workspace.symbols(query="is_scarce").value]
        self.assertEqual(self.workspace.locate(symbol).value.qualname, "inventory.stock:Item.is_scarce")
        self.assertEqual(self.workspace.locate({"kind": "symbol", "qualname": "inventory:Stock"}).value.via, "name")

    def test_errors_are_exceptions_with_code_and_hint(self) -> None:
        with self.assertRaises(lanser.NotFoundError) as missing:
            self.workspace.definition("py://inventory#Stock.ad")
        self.assertEqual((missing.exception.code, missing.exception.symbol), (3, "E/NOT_FOUND"))
        self.assertEqual(missing.exception.candidates[0], "py://inventory#Stock.add")
        self.assertIn("symbols --query", missing.exception.hint or "")
        with self.assertRaises(lanser.AmbiguousError) as ambiguous:
            self.workspace.definition("name")
        self.assertEqual(ambiguous.exception.code, 4)
        self.assertGreater(len(ambiguous.exception.candidates), 1)
        with self.assertRaises(lanser.SelectorSyntaxError):
            self.workspace.hover("add(")
        with self.assertRaises(lanser.UsageError):
            self.workspace.request("nonsense")
        with self.assertRaises(lanser.UnsafeEditError) as unsafe:
            self.workspace.rename("Item", "class")
        plan = unsafe.exception.bundle.edits
        assert plan is not None
        failed = [check.name for check in plan.safety if not check.passed]
        self.assertIn("identifier", failed)
        self.assertIsInstance(unsafe.exception.data, types.ChecksErrorData)

    def test_rename_undo_apply_and_check(self) -> None:
        source = self.project / "src/inventory/stock.py"
        before = source.read_bytes()
        preview = self.workspace.rename("Stock.scarce", "shortages").value
        self.assertIsNone(preview.transaction)
        self.assertEqual(source.read_bytes(), before)
        moved = self.workspace.move("py://inventory.stock", "py://inventory.goods")
        self.assertEqual(moved.bundle.bundle_id, self.workspace.move("inventory.stock", "inventory.goods").bundle.bundle_id)
        self.assertIn("rename to src/inventory/goods.py", moved.value.diff)
        done = self.workspace.rename("Stock.scarce", "shortages", apply=True).value
        self.assertEqual(done.transaction and done.transaction.state, "applied")
        self.assertIn(b"def shortages", source.read_bytes())
        self.assertEqual(len(self.workspace.refs("Stock.shortages").value), 2)
        patch = "--- a/src/inventory/stock.py\n+++ b/src/inventory/stock.py\n@@ -1 +1,2 @@\n+# new\n"
        patch += f" {before.decode().splitlines()[0]}\n"
        with self.assertRaises(lanser.DirtyWorktreeError):
            self.workspace.apply(patch, apply=True)
        guards: types.GuardOptions = {"dirty": "all"}
        self.workspace.apply(patch, apply=True, guards=guards)
        self.assertTrue(source.read_bytes().startswith(b"# new\n"))
        self.workspace.undo()
        self.workspace.undo(done.transaction.id if done.transaction else None)
        self.assertEqual(source.read_bytes(), before)
        self.assertEqual(self.workspace.transactions().value[-1].state, "undone")
        broken = preview.diff.replace("+    def shortages", "+    def shortage")
        delta = self.workspace.check(broken.encode()).value.diagnostics
        self.assertEqual(delta and [one.rule for one in delta.introduced], ["reportAttributeAccessIssue"])

    def test_answers_are_fresh_after_a_change(self) -> None:
        self.assertEqual(len(self.workspace.refs("Stock.scarce").value), 2)
        more = self.project / "src/inventory/more.py"
        more.write_text("from .stock import Stock\n\nStock().scarce()\n")
        self.assertEqual(len(self.workspace.refs("Stock.scarce").value), 3)
        more.unlink()
        self.assertEqual(len(self.workspace.refs("Stock.scarce").value), 2)

    def test_threads_share_a_workspace(self) -> None:
        ids: List[str] = []
        ask = lambda: ids.append(self.workspace.refs("Stock.add").bundle_id)  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(ids), len(set(ids))), (8, 1))

    def test_a_canceled_request_leaves_the_others_alone(self) -> None:
        canceled = self.workspace.submit("refs", "Stock.add")
        other = self.workspace.submit("hover", "Stock.add")
        self.assertTrue(canceled.cancel())
        self.assertEqual(other.result()["status"], "ok")

    def test_coroutines(self) -> None:
        async def run() -> None:
            async with lanser.AsyncWorkspace(self.project, program=PROGRAM) as workspace:
                uses, text = await asyncio.gather(workspace.refs("Stock.add"), workspace.hover("Stock.add"))
                self.assertEqual(uses.bundle_id, self.workspace.refs("Stock.add").bundle_id)
                self.assertIn("def add", text.value.markdown)
                with self.assertRaises(lanser.NotFoundError):
                    await workspace.definition("no_such_name")

        asyncio.run(run())

    def test_the_process_ends_with_the_workspace(self) -> None:
        with lanser.Workspace(self.project, program=PROGRAM) as workspace:
            workspace.locate("Stock.add")
            process = workspace._process
        assert process is not None
        self.assertIsNotNone(process._process.poll())
        with self.assertRaisesRegex(lanser.ProcessError, "closed"):
            workspace.locate("Stock.add")
