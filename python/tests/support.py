"""Support of the tests: the program under test, a project, and a stand-in for the program that misbehaves on demand."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

import lanser

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROGRAM = os.environ.get("LANSER_TEST_PROGRAM", "")
"""The `lanser` under test."""


class ProjectCase(unittest.TestCase):
    """Tests with the real program and server, which share a workspace: a repository with a copy of fixtures/inventory."""

    folder: "tempfile.TemporaryDirectory[str]"
    project: pathlib.Path
    workspace: lanser.Workspace

    @classmethod
    def setUpClass(cls) -> None:
        if not PROGRAM:
            raise unittest.SkipTest("LANSER_TEST_PROGRAM is not set")
        cls.folder = tempfile.TemporaryDirectory(prefix="lanser-python-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.project = pathlib.Path(cls.folder.name).resolve() / "inventory"
        shutil.copytree(ROOT / "fixtures/inventory", cls.project)
        cls.git("init", "--quiet")
        cls.git("add", "--all")
        cls.git("commit", "--quiet", "--message", "state")
        # What is compared with the command line must not come from the memo that both share.
        cls.workspace = lanser.Workspace(cls.project, program=PROGRAM, env={**os.environ, "LANSER_NO_CACHE": "1"})
        cls.addClassCleanup(cls.workspace.close)

    @classmethod
    def git(cls, *arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=cls.project, check=True)

    def lanser(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Runs the command line; a session answers it."""
        command = [PROGRAM, "-C", str(self.project), "--no-cache", *arguments]
        env = {**os.environ, "LANSER_SESSION": "on"}
        return subprocess.run(command, env=env, capture_output=True, text=True)


def temporary(case: unittest.TestCase) -> pathlib.Path:
    folder = tempfile.TemporaryDirectory(prefix="lanser-python-")
    case.addCleanup(folder.cleanup)
    return pathlib.Path(folder.name).resolve()


def stand_in(case: unittest.TestCase, body: str) -> pathlib.Path:
    """A program that runs `body` for each line, with `line` (an object), `answer(**members)` and `log`, and logs its input."""
    folder = temporary(case)
    script = folder / "lanser"
    text = f"""\
        #!{sys.executable}
        import json, os, sys, time
        log = open({str(folder / "log")!r}, "a", buffering=1)
        def answer(number, **members):
            bundle = {{"version": "1.6", "bundleId": "sha256:0", "status": "ok", "request": None, "resolution": None,
                      "facts": {{"provenance": "lsp"}}, "edits": None, "processReward": None, "environment": None,
                      "capabilities": {{}}, "error": None,
                      "meta": {{"exit_code": 0, "sorting_keys": [], "hashing": {{"algo": ""}}, "relocation": None,
                               "limits": None, "volatile": {{"id": number}}}}}}
            print(json.dumps({{**bundle, **members}}), flush=True)
        for text in sys.stdin:
            log.write(text)
            line = json.loads(text)
    """
    script.write_text(textwrap.dedent(text) + textwrap.indent(textwrap.dedent(body), "    "))
    script.chmod(0o755)
    return script


def logged(script: pathlib.Path) -> str:
    return (script.parent / "log").read_text()
