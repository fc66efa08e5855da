"""verifiers scores traces by the adapter."""

from __future__ import annotations

import asyncio
import math
import unittest

import verifiers.v1 as vf
from lanser.rl import PARTS

from .support import RepairCase, repair

import with_verifiers as example


class Verifiers(RepairCase):
    def score(self, answer: str, base: str = "HEAD") -> vf.Trace:
        task = example.RepairTask(example.RepairData(prompt="", repository=str(self.repository), base=base))
        self.addCleanup(task.lanser_scorer().close)
        trace = example.trace_of(task, answer)
        trace.task.data = task.data
        try:
            asyncio.run(task.score(trace))
        except vf.TaskError as error:
            trace.record_error(error)
        return trace

    def test_rewards_are_keyed_and_add_up(self) -> None:
        for answer, reward in [(repair.REPAIR, 0.5), (repair.HIDING, 0.0), (repair.BREAKING, -0.5), (repair.NO_DIFF, -0.5)]:
            trace = self.score(answer)
            self.assertEqual(trace.reward, reward, answer)
            self.assertEqual(set(trace.rewards), {f"lanser_{part}" for part in PARTS})
            self.assertTrue(all(math.isfinite(value) for value in trace.metrics.values()), trace.metrics)
            self.assertEqual(trace.errors, [])
        self.assertEqual(self.score(repair.HIDING).metrics["lanser_flags"], 1.0)

    def test_a_rollout_that_was_not_judged_has_an_error_and_no_reward(self) -> None:
        trace = self.score(repair.REPAIR, base="rev:nonexistent")
        self.assertEqual(trace.rewards, {"lanser": None})
        self.assertEqual([error.type for error in trace.errors], ["TaskError"])
        self.assertIn("nonexistent", trace.errors[0].message)

    def test_traces_are_scored_concurrently(self) -> None:
        task = example.RepairTask(example.RepairData(prompt="", repository=str(self.repository)))
        self.addCleanup(task.lanser_scorer().close)
        traces = [example.trace_of(task, answer) for answer in [repair.REPAIR, repair.BREAKING] * 8]

        async def score() -> None:
            await asyncio.gather(*(task.score(trace) for trace in traces))

        asyncio.run(score())
        self.assertEqual([trace.reward for trace in traces], [0.5, -0.5] * 8)


if __name__ == "__main__":
    unittest.main()
