"""skyrl-gym makes the environment and steps it."""

from __future__ import annotations

import unittest
from typing import Any

import skyrl_gym
from lanser.rl import NotScored
from skyrl_gym.envs.base_text_env import BaseTextEnv

from .support import RepairCase, repair

import with_skyrl_gym  # noqa: F401 - registers the environment


class SkyRl(RepairCase):
    def env(self, **options: Any) -> BaseTextEnv:
        return skyrl_gym.make("lanser", extras={"lanser": {"path": str(self.repository), **options}})

    def test_an_episode_adds_up_to_the_score_of_its_last_diff(self) -> None:
        env = self.env(max_turns=4)
        self.assertEqual(env.init([{"role": "user", "content": "x"}]), ([{"role": "user", "content": "x"}], {}))
        steps = [env.step(answer) for answer in (repair.NO_DIFF, repair.BREAKING, repair.HIDING, repair.REPAIR)]
        self.assertEqual([step["reward"] for step in steps], [-0.5, 0.0, 0.5, 0.5])
        self.assertEqual([step["done"] for step in steps], [False, False, False, True])
        self.assertIn("does not apply", steps[0]["observations"][0]["content"])
        self.assertIn("1 of them new", steps[1]["observations"][0]["content"])
        self.assertIn("hiding", steps[2]["observations"][0]["content"])
        self.assertEqual(steps[3]["observations"], [])
        self.assertTrue(all(type(value) is float for value in steps[3]["metadata"].values()))

    def test_one_turn_is_the_default(self) -> None:
        step = self.env().step(repair.BREAKING)
        self.assertEqual((step["reward"], step["done"], step["observations"]), (-0.5, True, []))

    def test_a_step_that_was_not_judged_is_not_a_reward_unless_the_caller_says_which(self) -> None:
        with self.assertRaises(NotScored):
            self.env(base="rev:nonexistent").step(repair.REPAIR)
        step = self.env(base="rev:nonexistent", unscored=0.0).step(repair.REPAIR)
        self.assertEqual(step["reward"], 0.0)
        self.assertEqual(step["metadata"]["lanser_fault"], "request")


if __name__ == "__main__":
    unittest.main()
