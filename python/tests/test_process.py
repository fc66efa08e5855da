"""The connection to a process that misbehaves, and finding the program."""

from __future__ import annotations

import asyncio
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest
from typing import Any
from unittest import mock

import lanser
from lanser import _process

from .support import ROOT, logged, stand_in, temporary

HOVER = 'facts={"provenance": "lsp", "hover": {"markdown": "text"}}'


class ProcessTest(unittest.TestCase):
    def workspace(self, body: str, **options: Any) -> lanser.Workspace:
        self.program = stand_in(self, body)
        workspace = lanser.Workspace(self.program.parent, program=self.program, **options)
        self.addCleanup(workspace.close)
        return workspace

    def wait_for(self, text: str) -> None:
        for _ in range(200):
            if text in logged(self.program):
                return
            time.sleep(0.05)
        self.fail(f"{text} is not in the log: {logged(self.program)}")

    def test_lines_have_only_what_was_given(self) -> None:
        workspace = self.workspace(f'answer(line["id"], {HOVER})')
        self.assertEqual(workspace.hover("a.b", timeout=1.2).value.markdown, "text")
        self.assertEqual(logged(self.program), '{"id": 1, "cmd": "hover", "selector": "a.b", "timeout": 2}\n')

    def test_what_is_no_selector_is_a_type_error(self) -> None:
        workspace = self.workspace(f'answer(line["id"], {HOVER})')
        for wrong in (["src"], 5):
            with self.assertRaisesRegex(TypeError, "files go to `paths`"):
                workspace.diag(wrong)  # type: ignore[arg-type]

    def test_a_timeout_is_a_number_of_seconds(self) -> None:
        workspace = self.workspace(f'answer(line["id"], {HOVER})')
        for wrong in (float("nan"), float("inf"), -1.0, 0, 86401, "5"):
            with self.assertRaisesRegex(ValueError, "a number of seconds is expected"):
                workspace.hover("a.b", timeout=wrong)  # type: ignore[arg-type]

    def test_an_option_is_one_of_its_texts(self) -> None:
        workspace = self.workspace(f'answer(line["id"], {HOVER})')
        with self.assertRaisesRegex(ValueError, "direction is 'up', and one of 'incoming', 'outgoing' is expected"):
            workspace.calls("a.b", "up")  # type: ignore[arg-type]
        with self.assertRaisesRegex(ValueError, "severity is 'bad', and one of 'hint', "):
            workspace.diag(severity="bad")  # type: ignore[arg-type]

    def test_the_hint_of_a_process_that_ends_is_kept(self) -> None:
        workspace = self.workspace('print("error: no\\nhint: try this", file=sys.stderr); sys.exit(2)')
        with self.assertRaises(lanser.ProcessError) as raised:
            workspace.hover("a.b")
        self.assertEqual(raised.exception.hint, "try this")

    def test_one_text_is_a_list_of_one(self) -> None:
        workspace = self.workspace(f'answer(line["id"], {HOVER})')
        with self.assertRaisesRegex(lanser.ProcessError, "no facts.diagnostics"):
            workspace.diag(paths="src")
        self.assertIn('"options": {"paths": ["src"]}', logged(self.program))

    def test_a_process_that_ends_fails_its_requests_and_is_started_again(self) -> None:
        workspace = self.workspace(
            f'print("why", file=sys.stderr) or sys.exit(9) if line["selector"] == "die" else answer(line["id"], {HOVER})'
        )
        with self.assertRaisesRegex(lanser.ProcessError, "exit code 9\nwhy"):
            workspace.hover("die")
        self.assertEqual(workspace.hover("live").value.markdown, "text")

    def test_a_process_that_ends_at_once(self) -> None:
        for _ in range(20):
            with lanser.Workspace(temporary(self), program="/bin/true") as workspace:
                with self.assertRaises(lanser.ProcessError):
                    workspace.hover("a.b", timeout=60)

    def test_text_that_no_json_can_hold(self) -> None:
        workspace = self.workspace(f'answer(line["id"], {HOVER})')
        with self.assertRaises(ValueError):
            workspace.hover("a.\udc80")
        self.assertEqual(workspace.hover("a.b").value.markdown, "text")

    def test_output_that_is_not_a_bundle(self) -> None:
        for output in ["garbage", "{}", "[]", '{"meta": 1}']:
            workspace = self.workspace(f"print({output!r}, flush=True)")
            with self.assertRaisesRegex(lanser.ProcessError, "something else than a bundle"):
                workspace.hover("x")

    def test_a_bundle_of_another_format(self) -> None:
        workspace = self.workspace('answer(line["id"], version="2.0")')
        with self.assertRaisesRegex(lanser.LanserError, "format 2.0, and 1.6 is expected"):
            workspace.hover("x")

    def test_a_bundle_of_a_newer_format_with_unknown_members(self) -> None:
        workspace = self.workspace(
            'answer(line["id"], version="1.99", new=1, facts={"provenance": "x", "hover": {"markdown": "m", "new": 1}})'
        )
        self.assertEqual(workspace.hover("x").value.markdown, "m")

    def test_an_answer_without_the_facts_is_not_an_empty_answer(self) -> None:
        workspace = self.workspace('answer(line["id"])')
        with self.assertRaisesRegex(lanser.ProcessError, "no facts.references"):
            workspace.refs("x")

    def test_an_error_of_an_unknown_symbol(self) -> None:
        error = '{"code": 99, "symbol": "E/NEW", "message": "m", "retryable": "no", "hint": None, "data": None}'
        workspace = self.workspace(f'answer(line["id"], error={error})')
        with self.assertRaisesRegex(lanser.RequestError, "E/NEW: m"):
            workspace.hover("x")

    def test_an_interrupted_wait_cancels_the_request(self) -> None:
        class Alarm(Exception):
            pass

        def ring(*_: object) -> None:
            raise Alarm

        workspace = self.workspace("pass")
        previous = signal.signal(signal.SIGALRM, ring)
        self.addCleanup(signal.signal, signal.SIGALRM, previous)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with self.assertRaises(Alarm):
            workspace.hover("x")
        self.wait_for('{"cancel": 1}')

    def test_a_canceled_coroutine_cancels_the_request(self) -> None:
        self.program = stand_in(self, f'line.get("selector") == "y" and answer(line["id"], {HOVER})')

        async def run() -> None:
            async with lanser.AsyncWorkspace(self.program.parent, program=self.program) as workspace:
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(workspace.hover("x"), 0.3)
                self.wait_for('{"cancel": 1}')
                self.assertEqual((await workspace.hover("y")).value.markdown, "text")

        asyncio.run(run())

    def test_a_process_that_answers_nothing_is_killed(self) -> None:
        # The second one does not even read, so that writing blocks.
        for body in ["pass", "time.sleep(60)"]:
            workspace = self.workspace(body)
            with mock.patch.object(_process, "STALL_MARGIN", 0.0), mock.patch.object(_process, "CHECK_INTERVAL", 0.1):
                with self.assertRaisesRegex(lanser.ProcessError, "answered nothing for 1 s and was killed"):
                    workspace.hover("x" * 1_000_000, timeout=1)

    def test_more_requests_than_a_pipe_holds_do_not_block(self) -> None:
        workspace = self.workspace("time.sleep(0.2) if line['id'] == 1 else None\nanswer(line['id'])")
        futures = [workspace.submit("refs", "x" * 1000) for _ in range(500)]
        self.assertEqual([future.result()["meta"]["volatile"]["id"] for future in futures], list(range(1, 501)))

    def test_a_program_that_cannot_be_started(self) -> None:
        workspace = lanser.Workspace(program="/nonexistent/lanser")
        with self.assertRaisesRegex(lanser.ProcessError, "cannot start /nonexistent/lanser"):
            workspace.hover("x")

    def test_variables_that_change_the_form_of_bundles_are_not_passed_on(self) -> None:
        workspace = self.workspace('log.write(str("LANSER_FIELDS" in os.environ) + "\\n")\nanswer(line["id"])')
        with mock.patch.dict(os.environ, {"LANSER_FIELDS": "status"}):
            workspace.submit("hover").result()
        self.assertIn("False", logged(self.program))


class FindTest(unittest.TestCase):
    def test_the_program_beside_the_package(self) -> None:
        site = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        for layout in [site, "."]:
            with self.subTest(layout=layout):
                prefix = temporary(self)
                package = prefix / layout / "lanser"
                shutil.copytree(ROOT / "python/lanser", package, ignore=shutil.ignore_patterns("__pycache__"))
                program = prefix / "bin/lanser"
                program.parent.mkdir()
                program.write_text('#!/bin/sh\necho "$0" "$@"\nexit 3\n')
                program.chmod(0o755)
                done = self.run_module(package.parent, "refs", "a b")
                self.assertEqual((done.stdout, done.returncode), (f"{program} refs a b\n", 3))

    def test_a_missing_program_is_an_error_that_says_where_it_was_searched(self) -> None:
        site = temporary(self)
        shutil.copytree(ROOT / "python/lanser", site / "lanser", ignore=shutil.ignore_patterns("__pycache__"))
        done = self.run_module(site)
        if done.returncode == 0:
            self.skipTest("lanser is installed in the environment of the tests")
        self.assertIn("LanserNotFound: there is no lanser in any of these folders; give its path as `program`:\n - ", done.stderr)

    def run_module(self, path: pathlib.Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
        env = {"PYTHONPATH": str(path), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "lanser", *arguments]
        return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True)
