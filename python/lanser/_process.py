"""One `lanser batch` process: requests go in as lines, bundles come out as lines, in any order.

Threads write, read and drain standard error, so that neither a caller nor an event loop ever waits for a pipe. A request is a
`concurrent.futures.Future`; canceling it cancels the request in the process.
"""

from __future__ import annotations

import json
import math
import queue
import subprocess
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Any, Deque, Dict, List, Mapping, Optional

from ._errors import ProcessError

MAX_LINE_BYTES = 64 << 20
"""The longest line that `lanser batch` reads."""

LONGEST_TIMEOUT = 86400
"""The longest timeout of a request, in seconds."""

FIRST_START_LIMIT = 1800.0
"""How long a request without `timeout` may stay unanswered, in seconds: the first one may install a server."""

STALL_MARGIN = 60.0
"""How much longer than its `timeout` a request may stay unanswered while the process answers no other either."""

CHECK_INTERVAL = 1.0
"""How often the limits are checked, in seconds."""

STDERR_LINES = 20
"""How many of the last lines on standard error are kept for messages."""

Reply = Dict[str, Any]


def _line(request: Mapping[str, Any]) -> bytes:
    """A request as a line. Raises `ValueError` for text that is no Unicode, such as a lone surrogate, which no JSON can hold."""
    return json.dumps(request, ensure_ascii=False).encode() + b"\n"


class BatchProcess:
    """A running process."""

    def __init__(self, command: List[str], env: Mapping[str, str]) -> None:
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(env),
                # Ctrl-C reaches the caller, which cancels what it waits for; the process goes on.
                start_new_session=True,
            )
        except OSError as error:
            raise ProcessError(f"cannot start {command[0]}: {error}") from error
        self._lock = threading.Lock()
        self._pending: Dict[int, Future[Reply]] = {}
        self._limits: Dict[int, float] = {}
        self._last_id = 0
        self._active = time.monotonic()
        self._failure: Optional[str] = None
        self._lines: "queue.SimpleQueue[Optional[bytes]]" = queue.SimpleQueue()
        self._stderr: Deque[str] = deque(maxlen=STDERR_LINES)
        self._ended = threading.Event()
        # The thread of the output waits for that of the errors, which has to run by then.
        self._errors = threading.Thread(target=self._drain, name="lanser stderr", daemon=True)
        self._threads = [
            self._errors,
            *(
                threading.Thread(target=work, name=f"lanser {name}", daemon=True)
                for name, work in [("input", self._write), ("output", self._read), ("limits", self._check_limits)]
            ),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_running(self) -> bool:
        """Whether requests can be sent."""
        return self._failure is None

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    def submit(self, request: Mapping[str, Any], timeout: Optional[float]) -> Future[Reply]:
        """Sends a request. The future has the bundle as JSON; it fails if the process ends."""
        future: Future[Reply] = Future()
        with self._lock:
            if self._failure is not None:
                raise ProcessError(self._failure)
            self._last_id += 1
            number = self._last_id
            line = _line({"id": number, **request})
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(f"the request has {len(line)} bytes, and {MAX_LINE_BYTES} are possible")
            if not self._pending:
                self._active = time.monotonic()
            self._pending[number] = future
            self._limits[number] = FIRST_START_LIMIT if timeout is None else timeout + STALL_MARGIN
            self._lines.put(line)
        future.add_done_callback(lambda done: self._cancel(number) if done.cancelled() else None)
        return future

    def close(self, grace: float = 5.0) -> None:
        """Cancels what is not answered and ends the process: by the end of its input, then by signals."""
        with self._lock:
            pending = list(self._pending.values())
        for future in pending:
            future.cancel()
        self._lines.put(None)
        for end in (self._process.terminate, self._process.kill, None):
            try:
                self._process.wait(grace)
                break
            except subprocess.TimeoutExpired:
                if end is not None:
                    end()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(grace)

    def _cancel(self, number: int) -> None:
        with self._lock:
            if self._pending.pop(number, None) is not None:
                self._limits.pop(number, None)
                self._lines.put(_line({"cancel": number}))

    def _write(self) -> None:
        stream = self._process.stdin
        assert stream is not None
        try:
            # `None` ends the input.
            for line in iter(self._lines.get, None):
                stream.write(line)
                if self._lines.empty():
                    stream.flush()
        except OSError:
            # The process ended; the reader reports it.
            pass
        finally:
            try:
                stream.close()
            except OSError:
                pass

    def _check_limits(self) -> None:
        """Kills a process that answers nothing although every limit has passed."""
        while not self._ended.wait(CHECK_INTERVAL):
            with self._lock:
                limit = max(self._limits.values(), default=0.0)
                is_stalled = bool(self._pending) and time.monotonic() - self._active > limit
            if is_stalled:
                self._fail(f"lanser answered nothing for {limit:.0f} s and was killed")

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        try:
            for line in stream:
                self._take(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._fail(f"lanser wrote something else than a bundle: {error!r}")
        finally:
            stream.close()
            code = self._process.wait()
            self._errors.join(CHECK_INTERVAL)
            self._fail(f"lanser ended with exit code {code}")

    def _take(self, bundle: Reply) -> None:
        number = bundle["meta"]["volatile"].get("id")
        with self._lock:
            self._active = time.monotonic()
            future = self._pending.pop(number, None)
            self._limits.pop(number, None)
        if future is not None and future.set_running_or_notify_cancel():
            future.set_result(bundle)

    def _fail(self, reason: str) -> None:
        """Fails all requests. The first reason is the one that is reported."""
        with self._lock:
            if self._failure is None:
                stderr = "".join(f"\n{line}" for line in self._stderr)
                self._failure = reason + stderr
            reason = self._failure
            pending = list(self._pending.values())
            self._pending.clear()
            self._limits.clear()
        if self._process.poll() is None:
            self._process.kill()
        for future in pending:
            if future.set_running_or_notify_cancel():
                future.set_exception(ProcessError(reason))
        self._ended.set()
        self._lines.put(None)

    def _drain(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        for line in stream:
            self._stderr.append(line.decode("utf-8", "replace").rstrip("\n"))
        stream.close()


def whole_seconds(timeout: float) -> int:
    """A timeout as lanser takes it: whole seconds, at least one and at most a day."""
    if not isinstance(timeout, (int, float)) or not 0 < timeout <= LONGEST_TIMEOUT:
        raise ValueError(f"timeout is {timeout!r}, and a number of seconds is expected, at most {LONGEST_TIMEOUT}")
    return math.ceil(timeout)
