"""The examples of docs/python.md run as they are written there."""

from __future__ import annotations

import contextlib
import io
import os
import re
from typing import Any, Dict
from unittest import mock

from .support import PROGRAM, ROOT, ProjectCase


class DocumentationTest(ProjectCase):
    def test_the_examples_of_the_page(self) -> None:
        page = (ROOT / "docs/python.md").read_text()
        examples = re.findall(r"```python\n(.*?)```", page, re.S)
        self.assertGreaterEqual(len(examples), 5)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.project)
        names: Dict[str, Any] = {}
        output = io.StringIO()
        with mock.patch("lanser._workspace.find_lanser_bin", lambda: PROGRAM), contextlib.redirect_stdout(output):
            for example in examples:
                exec(compile(example, "docs/python.md", "exec"), names)
        for expected in ["def scarce", "may be a use: tests/test_stock.py@L13:C14", "+    def shortages", "3 ['py://"]:
            self.assertIn(expected, output.getvalue())
