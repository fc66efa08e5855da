"""OpenEnv: a rubric that scores the diff in an action."""

from __future__ import annotations

import pathlib
import tempfile

from openenv.core.env_server.types import Action, Observation
from repair import HIDING, NO_DIFF, REPAIR, repository

from lanser.adapters.openenv import ScoreRubric
from lanser.rl import Scorer


class Reply(Action):
    """What the model says."""

    message: str


def main(folder: pathlib.Path) -> None:
    with Scorer(repository(folder), base="HEAD") as scorer:
        rubric = ScoreRubric(scorer)
        for answer in (REPAIR, HIDING, NO_DIFF):
            print(rubric(Reply(message=answer), Observation()), "flags:", rubric.numbers["flags"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as created:
        main(pathlib.Path(created))
