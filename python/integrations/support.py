"""The task of the examples as a workspace that the tests of one class share."""

from __future__ import annotations

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

sys.path.insert(0, str(ROOT / "examples/rl"))

import repair  # noqa: E402


class RepairCase(unittest.TestCase):
    """Tests on the repository of the examples."""

    repository: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory(prefix="lanser-rl-")
        cls.addClassCleanup(folder.cleanup)
        cls.repository = repair.repository(pathlib.Path(folder.name).resolve())


__all__ = ["ROOT", "RepairCase", "repair"]
