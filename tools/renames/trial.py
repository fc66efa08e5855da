"""Renames on real projects with `--apply`, judged by the projects' own tests.

    python3 tools/renames/trial.py --lanser target/release/lanser --projects DIR --environments DIR [--report FILE] [ID...]

`tools/renames/cases.toml` lists the projects, each with tests that run in reasonable time, and the renames: a selector, the new
name, and the options that a careful person adds after reading the refusal (`options`, such as `--family`, `--include PLACE`).
DIR/PROJECT is a clean clone at the commit of the case file, ENVIRONMENTS/PROJECT a virtual environment with the project installed in
editable mode and with what its tests need.

For each rename: the tests before (once for each project and set of tests), `lanser rename ... --apply`, the tests after it, `lanser
undo`, and a comparison of every file with the state before. Verdicts:

    right     made; the tests fail where they failed before, and nowhere else
    strings   made; tests fail in which a string or a file that lanser listed spells the name
    wrong     made; tests fail that did not before, without a word from lanser
    refused   not made
    broken    `undo` did not restore the tree

The judgment whether a refusal is just, and whether a `strings` failure was announced, is in the case file (`expect`); a verdict
other than the expected one ends the run with 1.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent

# In place of a test: what happened when none could be run.
NOT_RUN = "(the run itself)"


def tree_digest(root: Path) -> str:
    """Of every file outside of `.git`, with its mode, without what tests leave behind and git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, check=True
    )
    digest = hashlib.sha256()
    for name in sorted(listed.stdout.split(b"\0")):
        path = root / os.fsdecode(name)
        if name and (path.is_symlink() or path.is_file()):
            content = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
            digest.update(name + b"\0" + oct(path.lstat().st_mode).encode() + b"\0")
            digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


class Project:
    def __init__(self, name: str, root: Path, environment: Path, facts: dict):
        self.name, self.root, self.facts = name, root, facts
        self.variables = {**os.environ, "VIRTUAL_ENV": str(environment), "PYTHONDONTWRITEBYTECODE": "1"}
        self.variables["PATH"] = f"{environment / 'bin'}:{os.environ['PATH']}"
        self.baselines: dict[tuple[str, ...], dict[str, str]] = {}

    def run(self, *command: str, timeout: float = 900) -> subprocess.CompletedProcess:
        return subprocess.run(
            command, cwd=self.root, env=self.variables, capture_output=True, text=True, timeout=timeout, errors="replace"
        )

    def untracked(self) -> set[str]:
        return set(self.run("git", "ls-files", "-z", "--others", "--exclude-standard").stdout.split("\0")) - {""}

    def tests(self, files: list[str]) -> dict[str, str]:
        """The outcome of each test. A test file that cannot be imported counts as a test."""
        report = Path(f"/tmp/trial-{os.getpid()}-{self.name}.xml")
        report.unlink(missing_ok=True)
        options = ["-q", "-p", "no:cacheprovider", "--tb=short", f"--junitxml={report}", *self.facts.get("pytest", [])]
        before = self.untracked()
        done = self.run("python", "-m", "pytest", *options, *files)
        # Some test suites leave files behind.
        for left in self.untracked() - before:
            (self.root / left).unlink(missing_ok=True)
        if not report.exists():
            return {NOT_RUN: (done.stdout + done.stderr)[-600:]}
        outcomes = {}
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            bad = case.find("failure") if case.find("failure") is not None else case.find("error")
            # Ids of parameters may spell the renamed name.
            test = f"{case.get('classname')}::{case.get('name')}"
            outcomes[test] = "" if bad is None else (bad.get("message") or "failed")[:300]
        report.unlink()
        return outcomes

    def baseline(self, files: list[str]) -> dict[str, str]:
        key = tuple(files)
        if key not in self.baselines:
            found = self.tests(files)
            if NOT_RUN in found:
                sys.exit(f"{self.name}: the tests cannot be run: {found[NOT_RUN]}")
            self.baselines[key] = found
        return self.baselines[key]


def without_name(test: str, old: str, new: str) -> str:
    """A test's id with the old name for the new one: ids spell names of classes and parameters."""
    return re.sub(rf"\b{re.escape(new)}\b", old, test)


def try_rename(project: Project, lanser: str, case: dict, is_tested: bool) -> dict:
    files = case.get("tests", project.facts["tests"])
    before = project.baseline(files) if is_tested else {}
    digest = tree_digest(project.root)
    command = [lanser, "rename", case["from"], case["to"], *case.get("options", []), "--apply"]
    began = time.perf_counter()
    done = project.run(*command)
    facts = {"exit": done.returncode, "seconds": round(time.perf_counter() - began, 1), "output": done.stdout + done.stderr}
    if done.returncode != 0:
        facts["verdict"] = "refused" if tree_digest(project.root) == digest else "broken"
        return facts
    changed = project.run("git", "diff", "--shortstat").stdout.strip()
    facts["changed"] = changed
    last = [re.split(r"[.#]", name.removesuffix(".py").replace("/", "."))[-1] for name in (case["from"], case["to"])]
    after = project.tests(files) if is_tested else {}
    failed_before = {test for test, message in before.items() if message}
    failed = {without_name(test, *last): message for test, message in after.items() if message}
    new = {test: message for test, message in failed.items() if test not in failed_before}
    gone = len(before) - len(after)
    facts["new_failures"], facts["tests"], facts["tests_gone"] = new, len(after), gone
    undone = project.run(lanser, "undo")
    if undone.returncode != 0 or tree_digest(project.root) != digest:
        facts["undo"] = undone.stdout + undone.stderr
        project.run("git", "stash", "-u")
        facts["verdict"] = "broken"
    else:
        facts["verdict"] = "right" if not new and gone <= 0 else "wrong"
    return facts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanser", required=True, type=Path)
    parser.add_argument("--projects", required=True, type=Path)
    parser.add_argument("--environments", required=True, type=Path)
    parser.add_argument("--cases", type=Path, default=HERE / "cases.toml")
    parser.add_argument("--report", type=Path, help="write everything as JSON lines to this file")
    parser.add_argument("--without-tests", action="store_true", help="only make and undo the renames; `right` says no more than that")
    parser.add_argument("ids", nargs="*")
    options = parser.parse_args()
    lanser = str(options.lanser.resolve())
    known = tomllib.loads(options.cases.read_text())
    chosen = [case for case in known["case"] if not options.ids or case["id"] in options.ids or case["project"] in options.ids]
    unexpected, counts = 0, {}
    projects: dict[str, Project] = {}
    for case in chosen:
        name = case["project"]
        root, environment = options.projects.resolve() / name, options.environments.resolve() / name
        project = projects.setdefault(name, Project(name, root, environment, known["project"][name]))
        if project.run("git", "status", "--porcelain").stdout:
            print(f"{case['id']}: the clone is not clean", file=sys.stderr)
            return 2
        facts = try_rename(project, lanser, case, not options.without_tests)
        expected = case.get("expect", "right")
        if facts["verdict"] == "wrong" and expected == "strings":
            facts["verdict"] = "strings"
        is_expected = facts["verdict"] == expected
        unexpected += not is_expected
        counts[facts["verdict"]] = counts.get(facts["verdict"], 0) + 1
        mark = "" if is_expected else f"  (expected: {expected})"
        change = facts.get("changed", "")
        print(f"{case['id']}: {facts['verdict']} in {facts['seconds']} s, exit {facts['exit']}; {change}{mark}", flush=True)
        for test, message in list(facts.get("new_failures", {}).items())[:5]:
            print(f"    {test}: {message.splitlines()[0] if message else ''}", flush=True)
        if options.report:
            with options.report.open("a") as out:
                out.write(json.dumps({**case, **facts}) + "\n")
    print(", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))
    return int(unexpected > 0)


if __name__ == "__main__":
    sys.exit(main())
