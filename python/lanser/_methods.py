"""The commands of a workspace, one method each. Every method returns an `Answer`, or raises a `RequestError`.

`_async_methods.py` is generated from this file by tools/python_client/generate.py.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

from ._answer import Answer, Selector, choice, edits, fact, resolved, texts
from ._types import (
    Action,
    AnalyzerKind,
    Bundle,
    Call,
    CheckScope,
    Diagnostics,
    Direction,
    Edits,
    GuardOptions,
    Hover,
    Location,
    Renamable,
    Resolved,
    SelectorForm,
    ServerKind,
    Severity,
    Symbol,
    Transaction,
    TypeDirection,
    TypeEdge,
)

T = TypeVar("T")


class Methods:
    """The commands. `timeout` is in seconds, rounded up, counted from when the request starts; `limit` and `cursor` page a list."""

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
        raise NotImplementedError

    def definition(
        self,
        selector: Selector,
        *,
        agree: Optional[ServerKind] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Answer[List[Location]]:
        """Where a symbol is defined. `agree` is another server that is asked, too."""
        options = {"agree": agree, "limit": limit, "cursor": cursor}
        return self._run("definition", fact("definitions"), selector, options=options, timeout=timeout)

    def declaration(
        self, selector: Selector, *, limit: Optional[int] = None, cursor: Optional[str] = None, timeout: Optional[float] = None
    ) -> Answer[List[Location]]:
        """Where a symbol is declared; stubs come before sources."""
        options = {"limit": limit, "cursor": cursor}
        return self._run("declaration", fact("declarations"), selector, options=options, timeout=timeout)

    def type_definition(
        self, selector: Selector, *, limit: Optional[int] = None, cursor: Optional[str] = None, timeout: Optional[float] = None
    ) -> Answer[List[Location]]:
        """Where the type of an expression is defined."""
        options = {"limit": limit, "cursor": cursor}
        return self._run("typeDefinition", fact("type_definitions"), selector, options=options, timeout=timeout)

    def implementation(
        self, selector: Selector, *, limit: Optional[int] = None, cursor: Optional[str] = None, timeout: Optional[float] = None
    ) -> Answer[List[Location]]:
        """What implements a symbol."""
        options = {"limit": limit, "cursor": cursor}
        return self._run("implementation", fact("implementations"), selector, options=options, timeout=timeout)

    def refs(
        self,
        selector: Selector,
        *,
        exclude_declaration: bool = False,
        agree: Optional[ServerKind] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Answer[List[Location]]:
        """Every reference to a symbol. `Answer.complete` says whether they are all. `agree` is another server that is asked, too."""
        options = {"exclude_declaration": exclude_declaration, "agree": agree, "limit": limit, "cursor": cursor}
        return self._run("references", fact("references"), selector, options=options, timeout=timeout)

    def hover(self, selector: Selector, *, timeout: Optional[float] = None) -> Answer[Hover]:
        """The signature and documentation of a symbol."""
        return self._run("hover", fact("hover"), selector, options={}, timeout=timeout)

    def symbols(
        self,
        selector: Optional[Selector] = None,
        *,
        query: Optional[str] = None,
        paths: Sequence[str] = (),
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Answer[List[Symbol]]:
        """The outline of the workspace, of files or of a definition; with `query`, the symbols with such a name."""
        options = {"query": query, "paths": texts(paths), "limit": limit, "cursor": cursor}
        return self._run("symbols", fact("symbols"), selector, options=options, timeout=timeout)

    def calls(
        self,
        selector: Selector,
        direction: Direction = "incoming",
        *,
        depth: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Answer[List[Call]]:
        """The callers (`incoming`) or callees (`outgoing`) of a function."""
        options = {"direction": choice("direction", direction, Direction), "depth": depth, "limit": limit, "cursor": cursor}
        return self._run("calls", fact("calls"), selector, options=options, timeout=timeout)

    def types(
        self,
        selector: Selector,
        direction: TypeDirection = "subtypes",
        *,
        depth: Optional[int] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Answer[List[TypeEdge]]:
        """The base classes (`supertypes`) or subclasses (`subtypes`) of a class."""
        options = {"types": choice("direction", direction, TypeDirection), "depth": depth, "limit": limit, "cursor": cursor}
        return self._run("typeHierarchy", fact("types"), selector, options=options, timeout=timeout)

    def diag(
        self,
        selector: Optional[Selector] = None,
        *,
        paths: Sequence[str] = (),
        severity: Optional[Severity] = None,
        fail_on: Optional[Severity] = None,
        new: bool = False,
        base: Optional[str] = None,
        with_: Sequence[AnalyzerKind] = (),
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Answer[Diagnostics]:
        """The diagnostics of files. With `new` or `base`, only those that are new since a git revision."""
        options = {
            "paths": texts(paths),
            "severity": choice("severity", severity, Severity),
            "fail_on": choice("fail_on", fail_on, Severity),
            "new": new or base is not None,
            "base": base,
            "with": sorted(texts(with_)),
            "limit": limit,
            "cursor": cursor,
        }
        return self._run("diagnostics", fact("diagnostics"), selector, options=options, timeout=timeout)

    def locate(
        self,
        selector: Selector,
        *,
        as_: Optional[SelectorForm] = None,
        preview: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> Answer[Resolved]:
        """What a selector resolves to, without a server. `as_` is the form of the selector in `at`."""
        options = {"as": as_, "preview": preview}
        return self._run("locate", resolved, selector, options=options, timeout=timeout)

    def prepare_rename(self, selector: Selector, *, timeout: Optional[float] = None) -> Answer[Renamable]:
        """Whether a symbol can be renamed."""
        return self._run("prepareRename", fact("renamable"), selector, options={}, timeout=timeout)

    def rename(
        self,
        selector: Selector,
        new_name: str,
        *,
        apply: bool = False,
        family: bool = False,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        check: Optional[CheckScope] = None,
        agree: Optional[ServerKind] = None,
        guards: Optional[GuardOptions] = None,
        timeout: Optional[float] = None,
    ) -> Answer[Edits]:
        """Renames a symbol in the whole workspace. Without `apply`, only plans and checks; nothing is written.

        Raises `UnsafeEditError` if a check fails; its `bundle.edits` has the plan.
        """
        options = {
            "apply": apply,
            "family": family,
            "include": sorted(texts(include)),
            "exclude": sorted(texts(exclude)),
            "check": choice("check", check, CheckScope),
            "agree": agree,
            "guards": guards,
        }
        return self._run("rename", edits, selector, new_name=new_name, options=options, timeout=timeout)

    def move(
        self,
        module: str,
        new_name: str,
        *,
        apply: bool = False,
        check: Optional[CheckScope] = None,
        guards: Optional[GuardOptions] = None,
        timeout: Optional[float] = None,
    ) -> Answer[Edits]:
        """Moves a module or package: `pkg.old` to `pkg.new`, or a path to a path. Without `apply`, nothing is written."""
        options = {"module": module, "apply": apply, "check": choice("check", check, CheckScope), "guards": guards}
        return self._run("rename", edits, new_name=new_name, options=options, timeout=timeout)

    def actions(
        self, selector: Selector, *, action_kind: Optional[str] = None, timeout: Optional[float] = None
    ) -> Answer[List[Action]]:
        """The code actions that the server offers at a place."""
        options = {"action_kind": action_kind}
        return self._run("actions", fact("actions"), selector, options=options, timeout=timeout)

    def run_action(
        self,
        selector: Selector,
        action: Union[str, int],
        *,
        apply: bool = False,
        action_kind: Optional[str] = None,
        guards: Optional[GuardOptions] = None,
        timeout: Optional[float] = None,
    ) -> Answer[Edits]:
        """Plans a code action, by its title or number; with `apply`, writes it."""
        options = {"run": str(action), "apply": apply, "action_kind": action_kind, "guards": guards}
        return self._run("actions", edits, selector, options=options, timeout=timeout)

    def apply(
        self,
        edit: Union[str, bytes],
        *,
        apply: bool = False,
        guards: Optional[GuardOptions] = None,
        timeout: Optional[float] = None,
    ) -> Answer[Edits]:
        """Checks a unified diff, a `WorkspaceEdit` as JSON or a bundle with edits; with `apply`, writes it."""
        options = {"edit": _edit(edit), "apply": apply, "guards": guards}
        return self._run("apply", edits, options=options, timeout=timeout)

    def check(
        self,
        edit: Union[str, bytes],
        *,
        fail_on: Optional[Severity] = None,
        with_: Sequence[AnalyzerKind] = (),
        guards: Optional[GuardOptions] = None,
        timeout: Optional[float] = None,
    ) -> Answer[Edits]:
        """The diagnostics that an edit introduces and resolves, in `value.diagnostics`. Writes nothing."""
        options = {
            "edit": _edit(edit),
            "fail_on": choice("fail_on", fail_on, Severity),
            "with": sorted(texts(with_)),
            "guards": guards,
        }
        return self._run("check", edits, options=options, timeout=timeout)

    def undo(
        self,
        transaction: Optional[str] = None,
        *,
        guards: Optional[GuardOptions] = None,
        timeout: Optional[float] = None,
    ) -> Answer[Edits]:
        """Undoes a transaction, by default the latest."""
        options = {"transaction": transaction, "guards": guards}
        return self._run("undo", edits, options=options, timeout=timeout)

    def transactions(self, *, timeout: Optional[float] = None) -> Answer[List[Transaction]]:
        """The transactions of the workspace, latest first."""
        return self._run("undo", fact("transactions"), options={"list": True}, timeout=timeout)

    def request(
        self,
        cmd: str,
        selector: Optional[Selector] = None,
        *,
        new_name: Optional[str] = None,
        options: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Answer[Bundle]:
        """Any request of `lanser batch`, with its options as they are written there."""
        return self._run(cmd, _whole, selector, new_name=new_name, options=options or {}, timeout=timeout)


def _edit(edit: Union[str, bytes]) -> Dict[str, Any]:
    """An edit as the option `edit`: bytes that are not UTF-8 are passed as Latin-1."""
    if isinstance(edit, str):
        return {"text": edit}
    try:
        return {"text": edit.decode("utf-8")}
    except UnicodeDecodeError:
        return {"text": edit.decode("latin-1"), "latin1": True}


def _whole(bundle: Bundle) -> Bundle:
    return bundle


