"""Runs Pyright's fourslash cases through `lanser lsp`, and compares the answers with what the cases expect.

    python3 tools/fourslash/run.py --lanser target/release/lanser --cases DIR [--server pyright|ty] [--only TEXT] [--bare COMMAND]

DIR is `packages/pyright-internal/src/tests/fourslash` of a clone of microsoft/pyright; Node.js evaluates the verifications. Each case is
laid out as a workspace with a virtual environment in a temporary folder, and a process of `lanser lsp` answers for it. Cases about what
`lanser lsp` does not offer are counted by the method that verifies it. Those that replace the server's own stubs of the standard library,
or that are about a document without a file, cannot be laid out and are left out.

`known.toml` has the differences that are explained, each with its cause. Others are printed, as lines for that file. With `--bare`,
another language server answers, such as `node .../langserver.index.js --stdio` or `ty server`, and nothing counts as known: this shows
what is the server's.

Exit code 0: every difference is known, and every known one is there. 1: others.
"""

import argparse
import collections
import pathlib
import shlex
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field

from cases import Case, Layout, located, read
from checks import CHECKS, Checker
from client import Client, ServerError

KNOWN = pathlib.Path(__file__).parent / "known.toml"

FEATURES = {
    "verifyFindDefinitions": "definition",
    "verifyFindTypeDefinitions": "type definition",
    "verifyFindAllReferences": "references",
    "verifyHover": "hover",
    "verifyRename": "rename",
    "verifyShowCallHierarchyGetIncomingCalls": "incoming calls",
    "verifyShowCallHierarchyGetOutgoingCalls": "outgoing calls",
    "verifyCodeActions": "code actions",
    "verifyDiagnostics": "diagnostics",
}


@dataclass
class Known:
    """A known difference: the text, and the kind of its cause."""

    text: str
    kind: str


@dataclass
class Counts:
    """Of one feature."""

    cases: set[str] = field(default_factory=set)
    checks: int = 0
    differences: collections.Counter[str] = field(default_factory=collections.Counter)
    different_cases: set[str] = field(default_factory=set)


def read_known(server: str) -> dict[str, Known]:
    """The known differences of a server, by `CASE / FEATURE / MARKER`."""
    document = tomllib.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {}
    found: dict[str, Known] = {}
    for cause in document.get("cause", []):
        for key, text in cause.get(server, {}).items():
            if key in found:
                sys.exit(f"known.toml: {server}: {key!r} has two causes")
            found[key] = Known(text, cause["kind"])
    return found


def quoted(text: str) -> str:
    """A basic string of TOML."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Run:
    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.known = {} if arguments.bare else read_known(arguments.server)
        self.counts: dict[str, Counts] = collections.defaultdict(Counts)
        self.not_applicable: collections.Counter[str] = collections.Counter()
        self.left_out: list[str] = []
        self.seen: set[str] = set()
        self.unexpected = 0

    def command(self, layout: Layout) -> list[str]:
        arguments = self.arguments
        if arguments.bare:
            return shlex.split(arguments.bare)
        options = ["--server", arguments.server, "--python", str(layout.python), "--no-cache"]
        return [arguments.lanser, "-C", str(layout.workspace), *options, "lsp"]

    def case(self, case: Case) -> None:
        if case.error:
            self.unexpected += 1
            print(f"{case.name}: the verifications cannot be read: {case.error}", flush=True)
            return
        self.not_applicable.update({call.method for call in case.calls} - CHECKS.keys())
        calls = [call for call in case.calls if call.method in CHECKS]
        if not calls:
            return
        is_untitled = any(call.method == "verifyRename" and call.arguments[1:] == [True] for call in calls)
        if is_untitled or any(file.name.startswith("/typeshed-fallback/") for file in case.files):
            self.left_out.append(case.name)
            return
        with tempfile.TemporaryDirectory() as folder:
            layout = Layout(case, pathlib.Path(folder).resolve())
            try:
                with Client(self.command(layout), layout.workspace, layout.python, self.arguments.timeout) as client:
                    checker = Checker(case, layout, client, self.arguments.server != "ty")
                    if self.arguments.bare:
                        checker.open(located(case, file.name) for file in case.files)
                    for call in calls:
                        for name, difference in checker.check(call):
                            self.count(case.name, FEATURES[call.method], name, difference)
            except (ServerError, BrokenPipeError) as error:
                self.unexpected += 1
                print(f"{case.name}: {error}", flush=True)

    def count(self, case: str, feature: str, name: str, difference: str | None) -> None:
        counts = self.counts[feature]
        counts.cases.add(case)
        counts.checks += 1
        key = f"{case} / {feature} / {name}"
        known = self.known.get(key)
        if difference is None:
            return
        counts.different_cases.add(case)
        self.seen.add(key)
        if known and known.text == difference:
            counts.differences[known.kind] += 1
            return
        counts.differences["new"] += 1
        self.unexpected += 1
        print(f"{quoted(key)} = {quoted(difference)}", flush=True)

    def report(self) -> None:
        """The tables of the documentation."""
        kinds = sorted({kind for counts in self.counts.values() for kind in counts.differences})
        print("\n" + " | ".join(["| feature", "cases", "without a difference", "checks", "as expected", *kinds]) + " |")
        print("|---" * (5 + len(kinds)) + "|")
        for feature in FEATURES.values():
            if feature not in self.counts:
                continue
            counts = self.counts[feature]
            same = counts.checks - counts.differences.total()
            numbers = [len(counts.cases), len(counts.cases - counts.different_cases), counts.checks, same]
            numbers += [counts.differences[kind] for kind in kinds]
            print(f"| {feature} | {' | '.join(map(str, numbers))} |")
        print(f"left out: {', '.join(self.left_out) or 'none'}")
        for method, count in sorted(self.not_applicable.items()):
            print(f"not applicable: {method}: {count} cases")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--lanser", default="lanser")
    parser.add_argument("--cases", type=pathlib.Path, required=True)
    parser.add_argument("--server", default="pyright", choices=["pyright", "ty"])
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--bare", help="the command of another language server to ask")
    parser.add_argument("--node", default="node")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for each answer")
    arguments = parser.parse_args()
    if "/" in arguments.lanser:
        arguments.lanser = str(pathlib.Path(arguments.lanser).resolve())
    cases = [case for case in read(arguments.cases, arguments.node) if arguments.only in case.name]
    if not cases:
        sys.exit(f"no cases in {arguments.cases}")
    run = Run(arguments)
    for case in cases:
        run.case(case)
    names = {case.name for case in cases}
    for key in run.known:
        if key.split(" / ")[0] in names and key not in run.seen:
            run.unexpected += 1
            print(f"no longer different: {key}")
    run.report()
    return 1 if run.unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
