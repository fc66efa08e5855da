"""Ray Data runs the adapter in actors of a local cluster with one CPU."""

from __future__ import annotations

import unittest
from typing import Any, Dict, List

import lanser.ray
import ray
from lanser.rl import diff_in

from .support import RepairCase, repair


class RayData(RepairCase):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
        cls.addClassCleanup(ray.shutdown)

    def scored(self, rows: List[Dict[str, Any]], **options: Any) -> List[Dict[str, Any]]:
        arguments = {"path": str(self.repository), **options}
        data = ray.data.from_items(rows, override_num_blocks=2)
        data = data.map_batches(lanser.ray.Score, fn_constructor_kwargs=arguments, batch_size=3, concurrency=1, num_cpus=1)
        return sorted(data.take_all(), key=lambda row: int(row["number"]))

    def test_columns(self) -> None:
        answers = [repair.REPAIR, repair.HIDING, repair.BREAKING, repair.NO_DIFF] * 2
        rows = self.scored([{"number": number, "diff": diff_in(answer)} for number, answer in enumerate(answers)])
        self.assertEqual([row["lanser_reward"] for row in rows], [0.5, 0.0, -0.5, -0.5] * 2)
        self.assertEqual([row["lanser_integrity_flags"] for row in rows], ["", "suppressions_added", "", ""] * 2)
        self.assertEqual([row["lanser_episode_id"] for row in rows[:4]], [row["lanser_episode_id"] for row in rows[4:]])
        self.assertEqual(len({row["lanser_episode_id"] for row in rows}), 4)
        self.assertIsNone(rows[3]["lanser_diagnostics_before"])
        self.assertTrue(all(row["lanser_scored"] for row in rows))

    def test_a_row_that_was_not_judged_has_nulls_and_does_not_fail_the_job(self) -> None:
        bases = ["HEAD", "rev:nonexistent"]
        rows = [{"number": number, "diff": diff_in(repair.REPAIR), "base": base} for number, base in enumerate(bases)]
        good, bad = self.scored(rows, base_column="base")
        self.assertEqual((good["lanser_scored"], good["lanser_reward"]), (True, 0.5))
        self.assertEqual((bad["lanser_scored"], bad["lanser_reward"], bad["lanser_fault"]), (False, None, "request"))
        self.assertIn("nonexistent", bad["lanser_reason"])


if __name__ == "__main__":
    unittest.main()
