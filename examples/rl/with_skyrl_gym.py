"""skyrl-gym: an environment in which a model proposes diffs and reads what the checker says of each."""

from __future__ import annotations

import pathlib
import tempfile

import skyrl_gym
from repair import BREAKING, PROMPT, REPAIR, repository
from skyrl_gym.envs.registration import register

register(id="lanser", entry_point="lanser.adapters.skyrl_gym:ScoreEnv")


def main(folder: pathlib.Path) -> None:
    options = {"path": str(repository(folder)), "base": "HEAD", "max_turns": 3}
    env = skyrl_gym.make("lanser", extras={"lanser": options})
    env.init([{"role": "user", "content": PROMPT}])
    for answer in (BREAKING, REPAIR):
        step = env.step(answer)
        print(step["reward"], "done" if step["done"] else step["observations"][0]["content"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as created:
        main(pathlib.Path(created))
