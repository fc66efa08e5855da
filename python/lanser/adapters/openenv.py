"""A rubric of OpenEnv (0.10): the score of the diff in an action."""

from __future__ import annotations

from typing import Any, Callable, Dict

from openenv.core.rubrics import Rubric

from lanser.rl import Head, Scorer, diff_in


def diff_of(action: Any, observation: Any) -> Head:
    """The diff in `action.diff` or, as models write it, in `action.message`."""
    diff = getattr(action, "diff", None)
    return diff if isinstance(diff, str) else diff_in(str(action.message))


class ScoreRubric(Rubric):
    """The reward of an action is the score of its edit. An edit that gets none raises `NotScored`, and so does the environment's step.

    >>> class RepairEnvironment(Environment):
    ...     def __init__(self):
    ...         super().__init__(rubric=ScoreRubric(Scorer(repository, base="HEAD")))
    """

    def __init__(self, scorer: Scorer, head: Callable[[Any, Any], Head] = diff_of) -> None:
        """`head` finds the edit in an action and its observation; by default it is the diff in `action.diff` or `action.message`."""
        super().__init__()
        self.scorer = scorer
        self.head = head
        self.numbers: Dict[str, float] = {}
        """All numbers of the last score."""

    def forward(self, action: Any, observation: Any) -> float:
        """Scores the edit."""
        self.numbers = {}
        self.numbers = self.scorer.score(self.head(action, observation))
        return self.numbers["reward"]
