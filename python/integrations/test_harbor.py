"""The test script of a Harbor or terminal-bench task writes what their verifiers read.

Harbor 0.25 needs Python 3.12, so its rules are written here as in its verifier: a missing file is an error of the trial, an empty one too,
and every value is a finite number.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import subprocess
import sysconfig
import tempfile
import unittest
from typing import Dict, Optional

from .support import ROOT, RepairCase


def read_by_harbor(path: pathlib.Path) -> Optional[Dict[str, float]]:
    """The rewards, or `None` for a trial with an error."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    rewards = json.loads(path.read_text())
    finite = [isinstance(value, (int, float)) and math.isfinite(value) for value in rewards.values()]
    return rewards if all(finite) else None


class Harbor(RepairCase):
    def verify(self, old: str, new: str, file: str = "src/inventory/orders.py") -> Optional[Dict[str, float]]:
        """Runs the script after an agent replaced a text."""
        path = self.repository / file
        text = path.read_text() if path.exists() else ""
        self.assertIn(old, text)
        path.write_text(text.replace(old, new) if old else new)
        git = ["git", "-C", str(self.repository)]
        base = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        try:
            with tempfile.TemporaryDirectory() as logs:
                scripts = sysconfig.get_path("scripts")
                env = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}", "BASE": base}
                env.update(WORKSPACE=str(self.repository), VERIFIER_LOGS=logs)
                subprocess.run([str(ROOT / "examples/rl/harbor/test.sh")], env=env, stdout=subprocess.DEVNULL)
                self.assertLessEqual({file.name for file in pathlib.Path(logs).iterdir()}, {"reward.json"})
                return read_by_harbor(pathlib.Path(logs) / "reward.json")
        finally:
            subprocess.run([*git, "checkout", "--quiet", "."], check=True)
            subprocess.run([*git, "clean", "--quiet", "-fd"], check=True)

    def test_rewards(self) -> None:
        line = "return known.count - order.count"
        for new, reward in [(f"{line} if known else 0", 0.5), (f"{line}  # type: ignore", 0.0), ("return known.cuont", -0.5)]:
            found = self.verify(line, new)
            assert found is not None
            self.assertEqual(found["reward"], reward, new)

    def test_an_agent_that_changes_the_configuration_gets_an_error_and_no_reward(self) -> None:
        self.assertIsNone(self.verify("", '{"typeCheckingMode": "off"}', "pyrightconfig.json"))


if __name__ == "__main__":
    unittest.main()
