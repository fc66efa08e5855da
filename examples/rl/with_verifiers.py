"""verifiers: a task whose reward is the score of the model's diff. Scores answers without a model; a harness would record the traces."""

from __future__ import annotations

import asyncio
import pathlib
import tempfile

import verifiers.v1 as vf
from repair import BREAKING, HIDING, NO_DIFF, PROMPT, REPAIR, repository

from lanser.adapters.verifiers import ScoreReward
from lanser.rl import Scorer, shared_scorer


class RepairData(vf.TaskData):
    """A row of the data set."""

    repository: str
    base: str = "HEAD"


class RepairTask(ScoreReward, vf.Task[RepairData]):
    """Repairs a repository."""

    def lanser_scorer(self) -> Scorer:
        return shared_scorer(self.data.repository, base=self.data.base)


def trace_of(task: RepairTask, answer: str) -> vf.Trace:
    """The trace of one turn, as a harness records it."""
    recorded = vf.TraceTask(type=type(task).__name__, data=task.data)
    trace = vf.Trace(task=recorded, agent=vf.AgentInfo(config=vf.AgentConfig()))
    trace.nodes = [
        vf.MessageNode(message=vf.UserMessage(content=PROMPT)),
        vf.MessageNode(message=vf.AssistantMessage(content=answer), parent=0, sampled=True),
    ]
    return trace


async def main(folder: pathlib.Path) -> None:
    task = RepairTask(RepairData(prompt=PROMPT, repository=str(repository(folder))))
    for answer in (REPAIR, HIDING, BREAKING, NO_DIFF):
        trace = trace_of(task, answer)
        await task.score(trace)
        parts = {name: reward.score for name, reward in trace.rewards.items() if reward is not None and reward.score != 0}
        print(trace.reward, parts, "flags:", trace.metrics["lanser_flags"])
    task.lanser_scorer().close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as created:
        asyncio.run(main(pathlib.Path(created)))
