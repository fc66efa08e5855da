"""Scores as columns of a Ray dataset: one warm worker for each actor.

>>> dataset.map_batches(lanser.ray.Score, fn_constructor_kwargs={"path": repository}, concurrency=2, num_cpus=1, batch_size=64)
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .rl import PARTS, Head, NotScored, Scorer, episode_id, numbers

NUMBERS = (
    "reward",
    *PARTS,
    "diagnostics_before",
    "diagnostics_after",
    "diagnostics_new",
    "diagnostics_gone",
    "gone_in_place",
    "gone_replaced",
    "gone_removed",
    "gone_declared",
    "flags",
    "visible",
)
"""The columns with numbers; null where a number is not known."""


class Score:
    """A class for `Dataset.map_batches`, with the default batch format. Adds to each row, with `prefix`:

    `episode_id` (equal for a head that is scored again with the same result), `scored`, the numbers of `lanser.rl.numbers`, `integrity_flags` (separated by commas),
    `fault` and `reason` where there is no reward. A head that is not scored has null numbers; it does not fail the job.
    """

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        diff: str = "diff",
        base: str = "HEAD",
        base_column: Optional[str] = None,
        prefix: str = "lanser_",
        ahead: int = 16,
        **options: Any,
    ) -> None:
        """`diff` is the column with unified diffs, `base_column` one with bases, if they differ; the other options are those of
        `lanser.rl.Scorer`."""
        self._diff, self._base_column, self._prefix, self._ahead = diff, base_column, prefix, ahead
        self._scorer = Scorer(path, base=base, **options)

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> Dict[str, Any]:
        """The batch with the columns of its scores."""
        heads: List[Head] = [str(diff) for diff in batch[self._diff]]
        column = self._base_column
        bases = [None if column is None else str(base) for base in batch[column or self._diff]]
        episodes = self._scorer.episodes_of(zip(heads, bases), ahead=self._ahead)
        rows = [_row(head, episode) for head, episode in zip(heads, episodes)]
        names = ("episode_id", "scored", *NUMBERS, "integrity_flags", "fault", "reason")
        return {**batch, **{self._prefix + name: [row.get(name) for row in rows] for name in names}}


def _row(head: Head, episode: Mapping[str, Any]) -> Dict[str, Any]:
    row = {"episode_id": episode_id(head, episode), "integrity_flags": ",".join(episode.get("integrity_flags", ()))}
    try:
        return {**row, "scored": True, **numbers(episode)}
    except NotScored as error:
        return {**row, "scored": False, "fault": error.fault, "reason": error.reason}
