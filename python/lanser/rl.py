"""Rewards for training: the score of an edit against a base, and the rewards of the steps of a run.

>>> from lanser.rl import Scorer
>>> with Scorer("path/to/repository", base="HEAD") as scorer:
...     scorer.score(diff)["reward"]

What the numbers mean is in docs/rewards.md. They are always finite. What gets no reward is an exception (`NotScored`) with the reason,
never a number: a rollout that was not judged must not look like one that earned nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import re
import subprocess
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Deque, Dict, Iterable, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple, Union

from ._answer import Answer
from ._errors import LanserError, ProcessError, RequestError
from ._find_lanser import find_lanser_bin
from ._process import Reply, whole_seconds
from ._workspace import WITHOUT, Connection

__all__ = [
    "PARTS",
    "Episode",
    "Head",
    "NotScored",
    "Preset",
    "Scorer",
    "State",
    "StepReward",
    "diff_in",
    "episode_id",
    "numbers",
    "score",
    "shared_scorer",
]

Preset = Literal["rl-csf-guarded-v1", "rl-csf-v1", "pr-v1"]
"""The name of a formula."""

Episode = Mapping[str, Any]
"""What `lanser score --json` prints for a head (schema `lanser.episode.v1`)."""

PARTS = ("diag", "safety", "confidence", "tool_error", "integrity")
"""The numbers that `reward` is the sum of."""


@dataclass(frozen=True)
class State:
    """A state of the code by name: `rev:NAME`, a folder, `WORKTREE`."""

    name: str


Head = Union[str, Mapping[str, Optional[str]], State, "os.PathLike[str]"]
"""What is scored: the text of a unified diff, files by path (`None` deletes one), a state, or a folder. A `str` is always a diff, so
that what a model writes cannot name another state."""

MACHINE = frozenset(
    f"E/{name}"
    for name in [
        "CONTENT_MODIFIED",
        "FS_PERMISSIONS",
        "INTERNAL",
        "LS_CRASH",
        "LS_TIMEOUT",
        "LS_UNAVAILABLE",
        "REPLAY_MISMATCH",
        "REQUEST_CANCELLED",
    ]
)
"""Symbols of errors that are the fault of neither an edit nor a request."""


class NotScored(LanserError):
    """There is no reward."""

    def __init__(self, reason: str, *, fault: Literal["machine", "request", "head"], episode: Optional[Episode] = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fault: Literal["machine", "request", "head"] = fault
        """Whose fault it is: the machine's (a crash, a timeout: score it again), that of the request (an unknown base), or the head's
        (it changes the configuration that the checker reads). An edit that does not apply is not here: it is scored as an error."""
        self.episode = episode
        """What lanser answered, if it did."""


def score(base: str, head: Head, path: Union[str, "os.PathLike[str]"] = ".", **options: Any) -> Dict[str, float]:
    """The numbers of one head against a base; `options` are those of `Scorer`. For many heads, use a `Scorer`: it starts one process.

    Raises `NotScored`.
    """
    with Scorer(path, base=base, **options) as scorer:
        return scorer.score(head)


def numbers(episode: Episode) -> Dict[str, float]:
    """The numbers of an episode, all of them finite, with the names of `lanser score --rewards-json`. `reward` is the sum of `PARTS`; the
    others describe it. What is not known is absent. Raises `NotScored`."""
    if not episode.get("scored") or episode.get("reward") is None:
        raise _not_scored(episode)
    step = episode["steps"][0]
    gone = episode.get("gone") or {}
    found = {
        "reward": episode["reward"],
        **{part: episode["reward_components"][part] for part in PARTS},
        "diagnostics_before": step["prev"],
        "diagnostics_after": step["cur"],
        "diagnostics_new": step["new"],
        "diagnostics_gone": step["fixed"],
        **{f"gone_{fate}": gone.get(fate, 0) for fate in ("in_place", "replaced", "removed", "declared")},
        "flags": len(episode["integrity_flags"]),
        "visible": episode["visible"],
    }
    return {name: _finite(name, value) for name, value in found.items() if value is not None}


def episode_id(head: Head, episode: Episode) -> str:
    """A digest of a head and of what its episode says, without the name of the head and `meta`: a head that is scored again with the
    same result has the same one."""
    content = {name: value for name, value in episode.items() if name not in ("head", "meta")}
    text = json.dumps([_head(head), content], sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def diff_in(text: str) -> str:
    """The diff in the answer of a model: the last block fenced as `diff` or `patch`, or else the whole text."""
    blocks: List[str] = re.findall(r"^```(?:diff|patch)[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return blocks[-1] if blocks else text


class Scorer(Connection):
    """Scores heads, thousands of them over one process. Safe to use from several threads and event loops, which then score
    concurrently.

    >>> with Scorer("path/to/repository", base="rev:main") as scorer:
    ...     rewards = [episode["reward"] for episode in scorer.episodes(diffs)]
    """

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"] = ".",
        *,
        base: str = "HEAD",
        preset: Preset = "rl-csf-guarded-v1",
        analyzers: Sequence[str] = (),
        timeout: Optional[float] = None,
        retries: int = 1,
        **options: Any,
    ) -> None:
        """`path` is the workspace, `base` the state that heads are compared with, `analyzers` those besides the server (`ruff`, `mypy`),
        `timeout` the seconds for one head. A head that failed by the machine's fault is sent again `retries` times. The other options
        are those of `lanser.Workspace`."""
        super().__init__(path, **options)
        self._line: Dict[str, Any] = {"cmd": "score", "preset": preset, **({"with": list(analyzers)} if analyzers else {})}
        self._base = base
        self._seconds = None if timeout is None else whole_seconds(timeout)
        self._retries = retries

    def score(self, head: Head, *, base: Optional[str] = None) -> Dict[str, float]:
        """The numbers of a head. Raises `NotScored`."""
        return numbers(self.episode(head, base=base))

    async def score_async(self, head: Head, *, base: Optional[str] = None) -> Dict[str, float]:
        """As `score`. Canceling the coroutine cancels the head."""
        return numbers(await self.episode_async(head, base=base))

    def episode(self, head: Head, *, base: Optional[str] = None) -> Episode:
        """The whole episode of a head, scored or not."""
        return next(self.episodes_of([(head, base)]))

    async def episode_async(self, head: Head, *, base: Optional[str] = None) -> Episode:
        """As `episode`. Canceling the coroutine cancels the head."""
        for left in range(self._retries, -1, -1):
            try:
                reply = await asyncio.wrap_future(self._send(head, base))
            except ProcessError as error:
                reply = _unanswered(error)
            if left == 0 or not _is_machine(reply):
                break
        return reply

    def episodes(self, heads: Iterable[Head], *, ahead: int = 32) -> Iterator[Episode]:
        """The episodes of many heads, in their order, as each is ready. At most `ahead` heads are taken in advance."""
        return self.episodes_of(((head, None) for head in heads), ahead=ahead)

    def episodes_of(self, pairs: Iterable[Tuple[Head, Optional[str]]], *, ahead: int = 32) -> Iterator[Episode]:
        """As `episodes`, for pairs of a head and its base; `None` is the base of the scorer."""
        pending: Deque[Tuple[Head, Optional[str], "Future[Reply]"]] = deque()
        try:
            for head, base in pairs:
                pending.append((head, base, self._send(head, base)))
                if len(pending) >= ahead:
                    yield self._finish(*pending[0])
                    pending.popleft()
            while pending:
                yield self._finish(*pending[0])
                pending.popleft()
        finally:
            # Those that are answered are not affected.
            for _, _, future in pending:
                future.cancel()

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """Ends the process. What is not answered yet is canceled."""
        self._end()

    def __enter__(self) -> Scorer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _send(self, head: Head, base: Optional[str]) -> "Future[Reply]":
        line = {**self._line, "base": base or self._base, "head": _head(head)}
        if self._seconds is not None:
            line["timeout"] = self._seconds
        try:
            return self._running().submit(line, self._seconds)
        except ProcessError as error:
            failed: "Future[Reply]" = Future()
            failed.set_exception(error)
            return failed

    def _finish(self, head: Head, base: Optional[str], future: "Future[Reply]") -> Episode:
        """Waits for the episode. A dying process takes other heads with it, too; each of them is sent again."""
        for left in range(self._retries, -1, -1):
            try:
                episode: Episode = future.result()
            except ProcessError as error:
                episode = _unanswered(error)
            except BaseException:
                future.cancel()
                raise
            if left == 0 or not _is_machine(episode):
                break
            future = self._send(head, base)
        return episode


_SHARED: Dict[Tuple[Any, ...], Scorer] = {}
_SHARED_LOCK = threading.Lock()


def shared_scorer(path: Union[str, "os.PathLike[str]"] = ".", **options: Any) -> Scorer:
    """The scorer of this process for a workspace and options, which are those of `Scorer`; it stays open until it is closed or the
    process ends. For frameworks that make an environment for each rollout. The base can be given with each head."""
    key = (os.path.abspath(os.fspath(path)), repr(sorted(options.items())))
    with _SHARED_LOCK:
        scorer = _SHARED.get(key)
        if scorer is None or scorer.is_closed:
            scorer = _SHARED[key] = Scorer(path, **options)
        return scorer


class StepReward:
    """The rewards of the steps of a run, bundle by bundle, over one `lanser reward --run -` process. No server is needed.

    >>> with lanser.Workspace(path) as workspace, StepReward() as reward:
    ...     reward.step(workspace.check(diff))["reward"]
    """

    def __init__(
        self,
        preset: Preset = "rl-csf-v1",
        *,
        weights: Optional[Sequence[float]] = None,
        program: Union[str, "os.PathLike[str]", None] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> None:
        """`weights` are those of the formula, in the order of `--weights`."""
        command = [os.fspath(program or find_lanser_bin()), "reward", "--run", "-", "--reward", preset]
        command += ["--weights", ",".join(str(weight) for weight in weights)] if weights else []
        env = {name: value for name, value in (env or os.environ).items() if name not in WITHOUT}
        self._lock = threading.Lock()
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, start_new_session=True
            )
        except OSError as error:
            raise ProcessError(f"cannot start {command[0]}: {error}") from error

    def step(self, bundle: Union[Answer[Any], RequestError, Mapping[str, Any], str]) -> Dict[str, float]:
        """The reward of the step to this bundle, with its components; the first one starts from its own state before its edit.

        `bundle` is an answer or an error of a workspace, or a bundle as JSON. Raises `NotScored` where the reward is not known; the run goes on.
        """
        content = bundle.json if isinstance(bundle, (Answer, RequestError)) else bundle
        line = content if isinstance(content, str) else json.dumps(content)
        if "\n" in line.strip() or not line.strip():
            raise ValueError("a bundle is one line of JSON")
        found = self._ask(line.strip())
        if "malformed" in found:
            raise NotScored(f"this is not a bundle: {found['malformed']}", fault="request")
        if found["r"] is None:
            reason = str(found.get("reason"))
            raise NotScored(reason, fault="machine" if "not the caller's fault" in reason else "request", episode=found)
        parts = {name: value for name, value in found["components"].items() if isinstance(value, (int, float))}
        all_numbers = {"reward": found["r"], **parts, "flags": len(found.get("integrity_flags", [])), "visible": found["visible"]}
        return {name: _finite(name, value) for name, value in all_numbers.items()}

    def _ask(self, line: str) -> Dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        with self._lock:
            try:
                stdin.write(line.encode() + b"\n")
                stdin.flush()
                answer = stdout.readline()
            except (OSError, ValueError) as error:
                raise ProcessError(f"lanser reward ended: {error}") from error
        if not answer:
            raise ProcessError(f"lanser reward ended with exit code {self._process.wait()}")
        found: Dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """Ends the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass
        self._process.wait()

    def __enter__(self) -> StepReward:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _head(head: Head) -> Dict[str, Any]:
    if isinstance(head, str):
        return {"diff": head}
    if isinstance(head, State):
        return {"state": head.name}
    if isinstance(head, Mapping):
        return {"files": dict(head)}
    return {"state": os.path.abspath(os.fspath(head))}


def _is_machine(episode: Episode) -> bool:
    return not episode.get("scored") and (episode.get("error") or {}).get("symbol") in MACHINE


def _unanswered(error: ProcessError) -> Reply:
    """The episode of a head that the process did not answer."""
    body = {"code": 101, "symbol": "E/INTERNAL", "message": str(error), "retryable": "yes", "hint": None, "data": None}
    return {"schema": "lanser.episode.v1", "scored": False, "reward": None, "error": body, "integrity_flags": []}


def _not_scored(episode: Episode) -> NotScored:
    error = episode.get("error")
    if error is None:
        # Only a head whose configuration differs gets no reward without an error.
        return NotScored(str(episode.get("reason")), fault="head", episode=episode)
    hint = f"\nhint: {error['hint']}" if error.get("hint") else ""
    reason = f"{error['symbol']}: {error['message']}{hint}"
    return NotScored(reason, fault="machine" if error["symbol"] in MACHINE else "request", episode=episode)


def _finite(name: str, value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise NotScored(f"{name} is {number}", fault="machine")
    return number
