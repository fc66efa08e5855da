"""Ray Data: a data set of diffs gets the columns of their scores. ACTORS in the environment says how many workers there are."""

from __future__ import annotations

import os
import pathlib
import tempfile

import ray
from repair import BREAKING, HIDING, NO_DIFF, REPAIR, repository

import lanser.ray
from lanser.rl import diff_in


def main(folder: pathlib.Path) -> None:
    actors = int(os.environ.get("ACTORS", "1"))
    ray.init(num_cpus=actors, include_dashboard=False, logging_level="ERROR")
    rows = [{"name": name, "diff": diff_in(answer)} for name, answer in ANSWERS.items()]
    scored = ray.data.from_items(rows).map_batches(
        lanser.ray.Score,
        fn_constructor_kwargs={"path": str(repository(folder)), "base": "HEAD"},
        batch_size=2,
        concurrency=actors,
        num_cpus=1,
    )
    for row in sorted(scored.take_all(), key=lambda row: row["name"]):
        print(row["name"], row["lanser_reward"], row["lanser_integrity_flags"], row["lanser_episode_id"][:14])
    ray.shutdown()


ANSWERS = {"breaking": BREAKING, "hiding": HIDING, "no diff": NO_DIFF, "repair": REPAIR}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as created:
        main(pathlib.Path(created))
