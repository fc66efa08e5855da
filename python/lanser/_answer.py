"""Answers, and how they are made of bundles."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, Generic, List, Mapping, Optional, Protocol, Sequence, TypeVar, Union, get_args

from ._errors import IncompleteError, ProcessError
from ._types import Bundle, Completeness, Edits, Resolved

T = TypeVar("T")


class HasSelector(Protocol):
    """What has a selector of its place: a location, a symbol, a diagnostic, a resolved target."""

    @property
    def at(self) -> str: ...


Selector = Union[str, Mapping[str, Any], HasSelector]
"""A selector as text, in its JSON form, or a member of an earlier answer."""


@dataclass(frozen=True)
class Answer(Generic[T]):
    """The answer to a request that did not fail."""

    value: T
    """What was asked for: a list of locations, the hover, the edits, …"""
    bundle: Bundle
    """The bundle that has it."""
    json: Mapping[str, Any] = field(repr=False, compare=False)
    """The bundle as JSON, to store it or to compute rewards from it."""

    @property
    def bundle_id(self) -> str:
        """The digest of the content: equal requests about equal inputs have equal ones."""
        return self.bundle.bundle_id

    @property
    def completeness(self) -> Optional[Completeness]:
        """What is known about the occurrences of the name; `None` if the answer depends on one file only."""
        return self.bundle.facts.completeness if self.bundle.facts else None

    @property
    def complete(self) -> bool:
        """Whether the answer is whole: the bundle does not say that something is missing, or that this is not known."""
        stated = self.completeness
        return self.bundle.status == "ok" and (stated is None or stated.status == "complete")

    @property
    def cursor(self) -> Optional[str]:
        """The cursor of the next page; `None` on the last."""
        return self.bundle.meta.limits.cursor if self.bundle.meta.limits else None

    @property
    def warnings(self) -> List[str]:
        """Conditions that can make the answer unexpected."""
        return self.bundle.warnings

    def require_complete(self) -> Answer[T]:
        """The answer itself, or an `IncompleteError` if it is not complete."""
        if not self.complete:
            raise IncompleteError(self.bundle)
        return self


def selector_of(selector: Selector) -> Union[str, Mapping[str, Any]]:
    """A selector as a batch line has it."""
    if isinstance(selector, (str, Mapping)):
        return selector
    at = getattr(selector, "at", None)
    if not isinstance(at, str):
        kind = type(selector).__name__
        raise TypeError(f"a selector is a text, its JSON form or a part of an answer, not {kind}; files go to `paths`")
    return at


def choice(name: str, given: Any, type_: Any) -> Any:
    """An argument that is one of a few texts, or `None`. Raises `ValueError` for another."""
    known = get_args(type_)
    if given is not None and given not in known:
        raise ValueError(f"{name} is {given!r}, and one of {', '.join(map(repr, known))} is expected")
    return given


def texts(given: Sequence[str]) -> List[str]:
    """An argument that takes several texts or paths; a single one is a list of one."""
    items = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    found = [os.fspath(item) for item in items]
    if not all(isinstance(item, str) for item in found):
        raise TypeError(f"a text or a path is expected, not {found}")
    return found


def fact(name: str) -> Callable[[Bundle], Any]:
    """Reads a member of `facts`."""

    def read(bundle: Bundle) -> Any:
        value = getattr(bundle.facts, name, None)
        if value is None:
            raise ProcessError(f"the bundle {bundle.bundle_id} has no facts.{name}")
        return value

    return read


def resolved(bundle: Bundle) -> Resolved:
    """Reads the target of the selector."""
    if bundle.resolution is None or bundle.resolution.resolved is None:
        raise ProcessError(f"the bundle {bundle.bundle_id} has no target")
    return bundle.resolution.resolved


def edits(bundle: Bundle) -> Edits:
    """Reads the edits."""
    if bundle.edits is None:
        raise ProcessError(f"the bundle {bundle.bundle_id} has no edits")
    return bundle.edits
