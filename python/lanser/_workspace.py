"""Workspaces: the connection to one `lanser batch` process, with the commands as methods or as coroutines."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from concurrent.futures import Future
from typing import Any, Callable, Dict, List, Mapping, Optional, TypeVar, Union

from ._answer import Answer, Selector, selector_of
from ._async_methods import AsyncMethods
from ._errors import LanserError, ProcessError, error_of
from ._find_lanser import find_lanser_bin
from ._methods import Methods
from ._process import BatchProcess, Reply, whole_seconds
from ._types import FORMAT_VERSION, Bundle, ColumnUnit, Scope

T = TypeVar("T")

WITHOUT = ("LANSER_FIELDS", "LANSER_JSON", "LANSER_LIMIT", "LANSER_VERBOSE")
"""Variables that would change the form of the bundles."""


class Connection:
    """Starts the process with the first request, and again after it ended. Safe to use from several threads."""

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"] = ".",
        *,
        server: Optional[str] = None,
        python: Union[str, "os.PathLike[str]", None] = None,
        timeout: Optional[float] = None,
        scope: Optional[Scope] = None,
        index_io: Optional[ColumnUnit] = None,
        concurrency: Optional[int] = None,
        offline: bool = False,
        trust_workspace: bool = False,
        program: Union[str, "os.PathLike[str]", None] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> None:
        """`path` is the folder of the workspace. The other arguments are the options of `lanser batch` of the same names; what is
        not given is taken from the environment and the configuration files. `timeout` is that of requests without one of their
        own, in seconds, rounded up to whole ones. `program` is another `lanser` than that of this package, and `env` are the
        environment variables of the process.
        """
        self._root = os.path.abspath(os.fspath(path))
        self._program = None if program is None else os.fspath(program)
        self._arguments: List[str] = []
        for name, value in [
            ("--server", server),
            ("--python", None if python is None else os.path.abspath(os.fspath(python))),
            ("--timeout", None if timeout is None else str(whole_seconds(timeout))),
            ("--scope", scope),
            ("--index-io", index_io),
            ("--concurrency", None if concurrency is None else str(concurrency)),
        ]:
            self._arguments += [] if value is None else [name, value]
        self._arguments += ["--offline"] if offline else []
        self._arguments += ["--trust-workspace"] if trust_workspace else []
        self._default_timeout = timeout
        self._env = env
        self._lock = threading.Lock()
        self._closed = False
        self._process: Optional[BatchProcess] = None

    @property
    def path(self) -> str:
        """The absolute path of the workspace."""
        return self._root

    def submit(
        self,
        cmd: str,
        selector: Optional[Selector] = None,
        *,
        new_name: Optional[str] = None,
        options: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> "Future[Reply]":
        """Sends a request without waiting. The future has the bundle as JSON, also when the request fails; `cancel()` on it
        cancels the request. For many requests at a time, and for requests of several threads."""
        line: Dict[str, Any] = {"cmd": cmd}
        if selector is not None:
            line["selector"] = selector_of(selector)
        if new_name is not None:
            line["newName"] = new_name
        if timeout is not None:
            line["timeout"] = whole_seconds(timeout)
        given = {name: value for name, value in (options or {}).items() if value not in (None, False, [], {})}
        if given:
            line["options"] = given
        return self._running().submit(line, self._default_timeout if timeout is None else timeout)

    def _running(self) -> BatchProcess:
        with self._lock:
            if self._closed:
                raise ProcessError("the workspace is closed")
            if self._process is None or not self._process.is_running:
                program = self._program or find_lanser_bin()
                env = {name: value for name, value in (self._env or os.environ).items() if name not in WITHOUT}
                self._process = BatchProcess([program, "-C", self._root, "batch", *self._arguments], env)
                # Without `close`, the process ends when the workspace is collected or the interpreter exits.
                weakref.finalize(self, self._process.close)
            return self._process

    def _end(self) -> None:
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        if process is not None:
            process.close()


class Workspace(Connection, Methods):
    """The code in a folder.

    >>> with Workspace("path/to/project") as workspace:
    ...     uses = workspace.refs("pkg.mod.function")
    ...     [use.at for use in uses.value], uses.complete
    """

    def _run(
        self,
        cmd: str,
        value: Callable[[Bundle], T],
        selector: Optional[Selector] = None,
        *,
        new_name: Optional[str] = None,
        options: Mapping[str, Any],
        timeout: Optional[float],
    ) -> Answer[T]:
        future = self.submit(cmd, selector, new_name=new_name, options=options, timeout=timeout)
        try:
            reply = future.result()
        except BaseException:
            # Ctrl-C, or an exception of another signal handler.
            future.cancel()
            raise
        return answer_of(reply, value)

    def close(self) -> None:
        """Ends the process. What is not answered yet is canceled."""
        self._end()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class AsyncWorkspace(Connection, AsyncMethods):
    """The code in a folder, with coroutines. Canceling one cancels its request, and so does `asyncio.wait_for`.

    >>> async with AsyncWorkspace("path/to/project") as workspace:
    ...     uses = await workspace.refs("pkg.mod.function")
    """

    async def _run(
        self,
        cmd: str,
        value: Callable[[Bundle], T],
        selector: Optional[Selector] = None,
        *,
        new_name: Optional[str] = None,
        options: Mapping[str, Any],
        timeout: Optional[float],
    ) -> Answer[T]:
        future = self.submit(cmd, selector, new_name=new_name, options=options, timeout=timeout)
        return answer_of(await asyncio.wrap_future(future), value)

    async def close(self) -> None:
        """Ends the process. What is not answered yet is canceled."""
        await asyncio.get_running_loop().run_in_executor(None, self._end)

    async def __aenter__(self) -> AsyncWorkspace:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


def answer_of(reply: Reply, value: Callable[[Bundle], T]) -> Answer[T]:
    """The answer that a bundle is, or the exception for its error."""
    major = str(reply.get("version")).split(".")[0]
    if major != FORMAT_VERSION.split(".")[0]:
        raise LanserError(f"the bundle has format {reply.get('version')}, and {FORMAT_VERSION} is expected")
    bundle = Bundle.from_json(reply)
    if bundle.error is not None:
        raise error_of(bundle.error, bundle, reply)
    return Answer(value(bundle), bundle, reply)
