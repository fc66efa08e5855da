"""The rubrics of OpenEnv compose with the adapter."""

from __future__ import annotations

import unittest
from typing import Any

from lanser.adapters.openenv import ScoreRubric
from lanser.rl import NotScored, Scorer
from openenv.core.env_server.types import Observation
from openenv.core.rubrics import Rubric, WeightedSum

from .support import RepairCase, repair

import with_openenv as example


class Always(Rubric):
    def forward(self, action: Any, observation: Any) -> float:
        return 1.0


class OpenEnv(RepairCase):
    def rubric(self, **options: Any) -> ScoreRubric:
        scorer = Scorer(self.repository, **options)
        self.addCleanup(scorer.close)
        return ScoreRubric(scorer)

    def test_the_reward_of_an_action(self) -> None:
        rubric = self.rubric()
        for answer, reward in [(repair.REPAIR, 0.5), (repair.HIDING, 0.0), (repair.BREAKING, -0.5)]:
            self.assertEqual(rubric(example.Reply(message=answer), Observation()), reward)
            self.assertEqual(rubric.last_score, reward)
        self.assertEqual(rubric.numbers["diagnostics_new"], 1.0)

    def test_it_is_a_part_of_a_sum(self) -> None:
        total = WeightedSum([self.rubric(), Always()], [0.75, 0.25])
        self.assertEqual(total(example.Reply(message=repair.REPAIR), Observation()), 0.75 * 0.5 + 0.25)

    def test_an_action_that_was_not_judged(self) -> None:
        rubric = self.rubric(base="rev:nonexistent")
        with self.assertRaises(NotScored):
            rubric(example.Reply(message=repair.REPAIR), Observation())
        self.assertIsNone(rubric.last_score)


if __name__ == "__main__":
    unittest.main()
