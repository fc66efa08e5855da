"""Errors: one class for each error symbol of lanser, and those of the connection to its process."""

from __future__ import annotations

from typing import Dict, List, Optional, Type

from ._types import Bundle, ErrorBody, ErrorData, Json, Retryable

HINT = "hint: "
"""What the line of a hint starts with."""

MOST_CANDIDATES = 5
"""How many selectors to use instead the text of an error lists."""


class LanserError(Exception):
    """The base of all errors of this package."""

    hint: Optional[str] = None
    """What to do next, if lanser says it."""


class ProcessError(LanserError):
    """The `lanser` process could not be started, ended, or wrote something else than bundles."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        # The process ends its errors with one.
        hints = [line for line in message.splitlines() if line.startswith(HINT)]
        self.hint = hints[-1][len(HINT) :] if hints else None


class IncompleteError(LanserError):
    """The answer is known to be incomplete, or it is not known whether it is."""

    def __init__(self, bundle: Bundle) -> None:
        stated = bundle.facts.completeness if bundle.facts else None
        limits = bundle.meta.limits
        if stated is not None and stated.status != "complete":
            reason = stated.reason or f"{stated.unresolved.count} unresolved"
            message = f"completeness is {stated.status}: {reason}"
        elif limits is not None and limits.truncated:
            message = f"this is one page of {limits.total} items"
        else:
            message = f"the status is {bundle.status}"
        super().__init__(message)
        self.bundle = bundle


class RequestError(LanserError):
    """A request failed. `code` is the exit code that the command line has for the error."""

    symbol: Optional[str] = None
    """The error symbol of the class."""

    def __init__(self, body: ErrorBody, bundle: Bundle, json: Optional[Json] = None) -> None:
        self.symbol = body.symbol
        self.code: int = body.code
        self.message: str = body.message
        self.hint = body.hint
        self.retryable: Retryable = body.retryable
        self.data: Optional[ErrorData] = body.data
        self.bundle: Bundle = bundle
        """The whole answer. Some errors have facts (what was found before a timeout) or edits (a plan that is not safe)."""
        self.json: Optional[Json] = json
        """The bundle as JSON."""
        lines = [f"{body.symbol}: {body.message}"]
        # The hint refers to them.
        candidates = self.candidates
        lines += [f"  {candidate}" for candidate in candidates[:MOST_CANDIDATES]]
        if len(candidates) > MOST_CANDIDATES:
            lines.append(f"  and {len(candidates) - MOST_CANDIDATES} more")
        if body.hint:
            lines.append(f"{HINT}{body.hint}")
        super().__init__("\n".join(lines))

    @property
    def candidates(self) -> List[str]:
        """Selectors to use instead: suggestions, or the candidates of an ambiguous selector."""
        suggested = getattr(self.data, "selectors", None)
        if suggested is not None:
            return list(suggested)
        resolution = self.bundle.resolution
        return [candidate.at for candidate in resolution.disambiguation] if resolution else []


class UsageError(RequestError):
    """The request is not valid."""

    symbol = "E/USAGE"


class SelectorSyntaxError(RequestError):
    """The selector cannot be parsed."""

    symbol = "E/BAD_SELECTOR_SYNTAX"


class NotFoundError(RequestError):
    """The selector has no target, or the server has no answer there."""

    symbol = "E/NOT_FOUND"


class AmbiguousError(RequestError):
    """Several candidates; see `candidates`."""

    symbol = "E/AMBIGUOUS"


class VersionSkewError(RequestError):
    """The revision of the selector is not available."""

    symbol = "E/VERSION_SKEW"


class ServerTimeoutError(RequestError):
    """The server did not answer in time."""

    symbol = "E/LS_TIMEOUT"


class ServerCrashError(RequestError):
    """The server crashed."""

    symbol = "E/LS_CRASH"


class ServerUnavailableError(RequestError):
    """No server was found, and none could be installed."""

    symbol = "E/LS_UNAVAILABLE"


class ApplyConflictError(RequestError):
    """The edit does not fit the content of the files."""

    symbol = "E/APPLY_CONFLICT"


class FilePermissionError(RequestError):
    """The operating system denied access."""

    symbol = "E/FS_PERMISSIONS"


class JailError(RequestError):
    """The edit may not touch this file."""

    symbol = "E/JAIL"


class UnsupportedError(RequestError):
    """The server lacks the capability."""

    symbol = "E/UNSUPPORTED_CAP"


class RequestCancelledError(RequestError):
    """The request was canceled. Nothing is half-done."""

    symbol = "E/REQUEST_CANCELLED"


class ContentModifiedError(RequestError):
    """The workspace changed while the request ran."""

    symbol = "E/CONTENT_MODIFIED"


class IndexingUnsupportedError(RequestError):
    """Unknown unit of columns."""

    symbol = "E/INDEXING_UNSUPPORTED"


class IndexingMismatchError(RequestError):
    """The server uses a position encoding that was not offered."""

    symbol = "E/INDEXING_MISMATCH"


class ReplayMismatchError(RequestError):
    """A replay differs from its record."""

    symbol = "E/REPLAY_MISMATCH"


class DirtyWorktreeError(RequestError):
    """Uncommitted changes prevent the edit."""

    symbol = "E/DIRTY_WORKTREE"


class UnsafeEditError(RequestError):
    """A check of the edit failed. `bundle.edits.safety` has all checks."""

    symbol = "E/UNSAFE_EDIT"


class InternalError(RequestError):
    """A defect of lanser."""

    symbol = "E/INTERNAL"


BY_SYMBOL: Dict[str, Type[RequestError]] = {
    str(error.symbol): error for error in RequestError.__subclasses__() if error.symbol
}


def error_of(body: ErrorBody, bundle: Bundle, json: Json) -> RequestError:
    """The exception for the error of a bundle."""
    return BY_SYMBOL.get(body.symbol, RequestError)(body, bundle, json)
