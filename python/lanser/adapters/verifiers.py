"""A task of verifiers (0.4) whose reward is the score of the diff that the model answers with."""

from __future__ import annotations

from typing import Dict

import verifiers.v1 as vf

from lanser.rl import PARTS, Head, Scorer, diff_in, shared_scorer


class ScoreReward:
    """Adds the rewards `lanser_diag`, `lanser_tool_error`, … to a task, and the other numbers as metrics.

    >>> class RepairTask(ScoreReward, vf.Task[RepairData]):
    ...     def lanser_scorer(self):
    ...         return shared_scorer(self.data.repository, base=self.data.base)

    A head without a reward raises, so that verifiers records an error of the task and no reward: the trace is not trained on.
    """

    def lanser_scorer(self) -> Scorer:
        """The scorer of the task's repository; override it."""
        return shared_scorer()

    async def lanser_head(self, trace: vf.Trace) -> Head:
        """The edit to score: by default the diff in the last reply. Override it, for example with the folder of the runtime."""
        return diff_in(trace.last_reply)

    @vf.reward
    async def lanser(self, trace: vf.Trace) -> Dict[str, float]:
        """The parts of the score, which verifiers adds up."""
        found = await self.lanser_scorer().score_async(await self.lanser_head(trace))
        trace.record_metrics({f"lanser_{name}": value for name, value in found.items() if name not in PARTS})
        return {f"lanser_{name}": found[name] for name in PARTS if name in found}
