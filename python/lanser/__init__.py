"""Facts about Python code from a pinned language server, over one `lanser batch` process.

>>> import lanser
>>> with lanser.Workspace("path/to/project") as workspace:
...     uses = workspace.refs("pkg.mod.function")
...     uses.require_complete()
"""

from __future__ import annotations

from . import _types as types
from ._answer import Answer, HasSelector, Selector
from ._errors import (
    AmbiguousError,
    ApplyConflictError,
    ContentModifiedError,
    DirtyWorktreeError,
    FilePermissionError,
    IncompleteError,
    IndexingMismatchError,
    IndexingUnsupportedError,
    InternalError,
    JailError,
    LanserError,
    NotFoundError,
    ProcessError,
    ReplayMismatchError,
    RequestCancelledError,
    RequestError,
    SelectorSyntaxError,
    ServerCrashError,
    ServerTimeoutError,
    ServerUnavailableError,
    UnsafeEditError,
    UnsupportedError,
    UsageError,
    VersionSkewError,
)
from ._find_lanser import LanserNotFound, find_lanser_bin
from ._types import Bundle
from ._workspace import AsyncWorkspace, Workspace

__all__ = [
    "AmbiguousError",
    "Answer",
    "ApplyConflictError",
    "AsyncWorkspace",
    "Bundle",
    "ContentModifiedError",
    "DirtyWorktreeError",
    "FilePermissionError",
    "HasSelector",
    "IncompleteError",
    "IndexingMismatchError",
    "IndexingUnsupportedError",
    "InternalError",
    "JailError",
    "LanserError",
    "LanserNotFound",
    "NotFoundError",
    "ProcessError",
    "ReplayMismatchError",
    "RequestCancelledError",
    "RequestError",
    "Selector",
    "SelectorSyntaxError",
    "ServerCrashError",
    "ServerTimeoutError",
    "ServerUnavailableError",
    "UnsafeEditError",
    "UnsupportedError",
    "UsageError",
    "VersionSkewError",
    "Workspace",
    "find_lanser_bin",
    "types",
]
