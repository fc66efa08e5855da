"""An environment of SkyRL (skyrl-gym 0.4): the model proposes diffs, sees what the checker says of each, and may try again."""

from __future__ import annotations

from typing import Any, Dict, Optional

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from lanser.rl import NotScored, diff_in, shared_scorer


class ScoreEnv(BaseTextEnv):
    """Every action is a diff against the base. The reward of a step is the score of its diff minus that of the step before, so that an
    episode adds up to the score of its last diff.

    `extras["lanser"]` has the arguments of `lanser.rl.Scorer` (`path`, `base`, …), `max_turns`, and `unscored`: the reward of a step that
    was not judged. Without `unscored` such a step raises `NotScored`. The score of the step before then stays.

    >>> skyrl_gym.register(id="lanser", entry_point="lanser.adapters.skyrl_gym:ScoreEnv")
    """

    def __init__(self, env_config: Any = None, extras: Optional[Dict[str, Any]] = None) -> None:
        super().__init__()
        options = {**dict(env_config or {}), **(extras or {}).get("lanser", {})}
        self.max_turns = options.pop("max_turns", 1)
        self._unscored: Optional[float] = options.pop("unscored", None)
        self._base: Optional[str] = options.pop("base", None)
        self._scorer = shared_scorer(options.pop("path", "."), **options)
        self._scored = 0.0

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Scores a diff."""
        self.turns += 1
        is_last = self.turns >= self.max_turns
        try:
            found = self._scorer.score(diff_in(action), base=self._base)
        except NotScored as error:
            if self._unscored is None:
                raise
            metadata = {"lanser_not_scored": error.reason, "lanser_fault": error.fault}
            return BaseTextEnvStepOutput(observations=[], reward=self._unscored, done=is_last, metadata=metadata)
        reward, self._scored = found["reward"] - self._scored, found["reward"]
        done = is_last or found.get("diagnostics_after") == 0
        observations = [] if done else [{"role": "user", "content": observation(found)}]
        return BaseTextEnvStepOutput(observations=observations, reward=reward, done=done, metadata=found)


def observation(found: Dict[str, float]) -> str:
    """What the model reads about its diff."""
    if found["tool_error"] != 0:
        return "The diff does not apply. Answer with a unified diff against the original files."
    before, after, new = (f"{found[f'diagnostics_{name}']:g}" for name in ("before", "after", "new"))
    flags = " It looks like hiding errors rather than repairing them." if found["flags"] else ""
    return f"The checker counted {before} problems before the diff and {after} after it, {new} of them new.{flags} Answer with a better diff."
