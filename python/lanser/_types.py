"""The types of a bundle, generated from schemas/bundle.schema.json by tools/python_client/generate.py.

A member that a bundle does not have is `None`, or empty where the schema says that it is absent when empty. Members that a newer
format adds are ignored.
"""

# ruff: noqa: E501
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Literal, Mapping, NamedTuple, Optional, Tuple, TypedDict, Union

Json = Mapping[str, Any]

FORMAT_VERSION = "1.6"
"""The version of the bundle format that these types describe."""

__all__ = [
    "Action",
    "Agreement",
    "AgreementCounts",
    "AnalysisScope",
    "AnalyzerKind",
    "AnchorPositionSpec",
    "AstPositionSpec",
    "BaseComparison",
    "Bundle",
    "Call",
    "Candidate",
    "ChangeAnnotation",
    "ChangedErrorData",
    "Check",
    "CheckName",
    "CheckScope",
    "ChecksErrorData",
    "ColumnUnit",
    "Command",
    "Completeness",
    "CompletenessStatus",
    "Components",
    "ConflictsErrorData",
    "Counts",
    "CreateFileOperation",
    "CsfComponents",
    "CursorPositionSpec",
    "DecidingCommit",
    "Decision",
    "DeleteFileOperation",
    "Diagnostic",
    "DiagnosticFingerprint",
    "DiagnosticSource",
    "Diagnostics",
    "DiagnosticsDelta",
    "Direction",
    "DirtyPolicy",
    "DocumentChange",
    "DualCoordinates",
    "EarlierDiagnostics",
    "EditConflict",
    "EditInput",
    "EditedFile",
    "Edits",
    "Environment",
    "ErrorBody",
    "ErrorData",
    "ErrorSymbol",
    "EvidenceStep",
    "ExplainedCounts",
    "Facts",
    "FamilyRelation",
    "Features",
    "FileChangeKind",
    "FileCounts",
    "FileDiagnostics",
    "FileOperation",
    "FilesErrorData",
    "FormulaWeights",
    "GoneDiagnostics",
    "GuardOptions",
    "Guards",
    "Hashing",
    "Hover",
    "Integrity",
    "Lanser",
    "Limits",
    "LinePositionSpec",
    "Location",
    "LspPosition",
    "LspRange",
    "Meta",
    "MismatchErrorData",
    "NamePositionSpec",
    "NotChecked",
    "Occurrence",
    "OperationOptions",
    "Options",
    "OtherTool",
    "OutstandingDiagnostic",
    "OutstandingReason",
    "Override",
    "PlaceDecision",
    "PositionSpec",
    "PrComponents",
    "PrWeights",
    "Preset",
    "ProcessReward",
    "Provenance",
    "Python",
    "Range",
    "RangePositionSpec",
    "Related",
    "Relocation",
    "RelocationRules",
    "RelocationVia",
    "Renamable",
    "RenameFileOperation",
    "Request",
    "RequestId",
    "Residue",
    "Resolution",
    "Resolved",
    "Retryable",
    "RewardScope",
    "RewardSource",
    "RewardState",
    "Role",
    "Scope",
    "SelectorForm",
    "ServedFrom",
    "ServerKind",
    "Severity",
    "SourceCount",
    "SourceReport",
    "Status",
    "StderrErrorData",
    "Strategy",
    "SuggestionsErrorData",
    "Supplement",
    "Symbol",
    "SymbolPositionSpec",
    "SymidPositionSpec",
    "SyntaxErrorData",
    "TextDocumentEdit",
    "TextEdit",
    "Tool",
    "Transaction",
    "TransactionState",
    "TriedErrorData",
    "TypeDirection",
    "TypeEdge",
    "UnaffectedFiles",
    "Unresolved",
    "UnresolvedOccurrence",
    "UseProvenance",
    "Verdict",
    "VersionedDocument",
    "Via",
    "Volatile",
    "Weights",
    "WorkspaceEdit",
    "WorkspaceState",
    "FORMAT_VERSION",
]

Agreement = Literal["both", "pyright", "basedpyright", "ty"]
"""The servers by whose answers a location is known."""

AnalysisScope = Literal["requested", "configured"]
"""The files that an analyzer analyzes."""

AnalyzerKind = Literal["compile", "ruff", "mypy"]
"""A program besides the language server that finds diagnostics."""

CheckName = Literal["target", "prepareRename", "identifier", "shadowing", "collision", "overrides", "completeness", "agreement", "jail", "filters", "overlap", "content", "git", "diagnostics", "roundTrip"]
"""The safety checks, in the order of `edits.safety`."""

CheckScope = Literal["affected", "importers"]
"""The files whose diagnostics a rename compares."""

ColumnUnit = Literal["utf-8", "utf-16", "codepoint"]
"""The unit of columns: bytes of UTF-8, code units of UTF-16 (the default of LSP), or Unicode scalar values (the default
of lanser), which LSP calls utf-32.
"""

Command = Literal["definition", "declaration", "typeDefinition", "implementation", "references", "hover", "symbols", "calls", "typeHierarchy", "diagnostics", "locate", "prepareRename", "rename", "actions", "apply", "check", "undo"]
"""The commands, by their long names."""

CompletenessStatus = Literal["complete", "partial", "unknown"]
"""The verdict on completeness."""

Decision = Literal["include", "exclude"]
"""A decision about an unresolved place."""

DiagnosticSource = Literal["lsp", "compile", "ruff", "mypy"]
"""What reports a diagnostic."""

Direction = Literal["incoming", "outgoing"]
"""The direction of a call hierarchy."""

DirtyPolicy = Literal["none", "elsewhere", "all"]
"""Which uncommitted changes are accepted when an edit is applied, strictest first."""

ErrorSymbol = Literal["E/BAD_SELECTOR_SYNTAX", "E/USAGE", "E/NOT_FOUND", "E/AMBIGUOUS", "E/VERSION_SKEW", "E/LS_TIMEOUT", "E/LS_CRASH", "E/LS_UNAVAILABLE", "E/APPLY_CONFLICT", "E/FS_PERMISSIONS", "E/JAIL", "E/UNSUPPORTED_CAP", "E/REQUEST_CANCELLED", "E/CONTENT_MODIFIED", "E/INDEXING_UNSUPPORTED", "E/INDEXING_MISMATCH", "E/REPLAY_MISMATCH", "E/DIRTY_WORKTREE", "E/UNSAFE_EDIT", "E/INTERNAL"]
"""Every kind of failure. The exit code of each is its [`code`](ErrorSymbol::code)."""

FamilyRelation = Literal["base", "derived", "sibling"]
"""How a class is related to the class of the symbol."""

FileChangeKind = Literal["modify", "create", "delete", "rename"]
"""What happens to a file."""

OutstandingReason = Literal["file_gone", "suppressed", "syntax_error", "unreachable", "code_gone", "declared", "replaced"]
"""Why a diagnostic disappeared without being repaired."""

Preset = Literal["rl-csf-v1", "pr-v1", "rl-csf-guarded-v1"]
"""A formula with its default weights."""

Provenance = Literal["lsp", "syntax", "index+lsp", "compiler+lsp"]
"""Where facts come from."""

RelocationVia = Literal["history"]
"""What a relocation is based on besides the old and the new state."""

Retryable = Literal["no", "yes", "sometimes", "manual"]
"""Whether a retry can succeed."""

RewardSource = Literal["lsp", "compiler", "compiler+lsp"]
"""Where diagnostics come from."""

Role = Literal["def", "sig", "body", "doc"]
"""A part of a definition."""

Scope = Literal["workspace", "configured"]
"""The files that may be opened in the server."""

SelectorForm = Literal["cursor", "py", "ast", "anchor", "sym"]
"""A form of selector."""

ServedFrom = Literal["server", "warm_server", "memo", "syntax"]
"""Where an answer came from."""

ServerKind = Literal["pyright", "basedpyright", "ty"]
"""A kind of language server that lanser can find, start and query."""

Severity = Literal["hint", "information", "warning", "error"]
"""The severity of a diagnostic, in ascending order."""

Status = Literal["ok", "error", "partial"]
"""Whether the answer is whole."""

Strategy = Literal["rename", "3way"]
"""How an edit is applied to files."""

TransactionState = Literal["applied", "undone", "damaged"]
"""The state of a transaction."""

TypeDirection = Literal["supertypes", "subtypes"]
"""The direction of a type hierarchy."""

UseProvenance = Literal["definition", "scope", "import-alias", "alias", "stub", "dispatch", "exported", "replace", "class-keyword", "subscript", "pytest-fixture", "decorator", "fixture-request", "other-server"]
"""The rule that establishes a reference that the server does not report itself."""

Verdict = Literal["pass", "fail"]
"""The result of `--fail-on`."""

Via = Literal["coordinates", "name", "ast", "anchor", "structure", "unchanged", "shifted", "edited", "signatureChanged", "moved", "renamed", "split", "merged"]
"""How a target was found."""


class Range(NamedTuple):
    """[startLine, startColumn, endLine, endColumn], 0-based, end exclusive, columns in environment.positionEncoding."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class EditInput:
    """An edit as it was given."""

    text: str
    """A `WorkspaceEdit` as JSON, a bundle with edits, or a unified diff."""
    latin1: bool = False
    """Whether `text` holds the bytes of the edit decoded as Latin-1, because they are not UTF-8. Absent when false."""

    @classmethod
    def from_json(cls, value: Json) -> EditInput:
        """Reads it from its JSON form."""
        return cls(
            text=value["text"],
            latin1=value.get("latin1", False),
        )


@dataclass(frozen=True)
class Guards:
    """What an edit may touch, and which checks are overridden. Every member is absent when it has its default, the
    strictest value.
    """

    allow: Optional[List[str]] = None
    """Globs of the only files that may be edited. Default: all files."""
    deny: Optional[List[str]] = None
    """Globs of files that may not be edited. Default: none."""
    dirty: Optional[DirtyPolicy] = None
    """Which uncommitted changes are accepted. Default: `none`."""
    hard_links: Optional[bool] = None
    """Whether a file with several hard links may be replaced; the other names keep the old content. Default: false."""
    outside: Optional[bool] = None
    """Whether files outside of the workspace may be edited, through links. Default: false."""
    overrides: Optional[List[CheckName]] = None
    """Names of checks that the caller overrides: the edit is applied even if they fail. Sorted. Default: none."""
    strategy: Optional[Strategy] = None
    """How an edit is applied to files that changed since it was planned. Default: `rename`."""
    workspace_allow: Optional[List[str]] = None
    """Globs of the only files that the configuration of the workspace permits to be edited, in addition to `allow`.
    Default: all files.
    """

    @classmethod
    def from_json(cls, value: Json) -> Guards:
        """Reads it from its JSON form."""
        return cls(
            allow=list(value["allow"]) if value.get("allow") is not None else None,
            deny=list(value["deny"]) if value.get("deny") is not None else None,
            dirty=value.get("dirty"),
            hard_links=value.get("hard_links"),
            outside=value.get("outside"),
            overrides=list(value["overrides"]) if value.get("overrides") is not None else None,
            strategy=value.get("strategy"),
            workspace_allow=list(value["workspace_allow"]) if value.get("workspace_allow") is not None else None,
        )


@dataclass(frozen=True)
class Options:
    """Options that change the answer. Every member is absent when it has its default value."""

    action_kind: Optional[str] = None
    """`actions`: only actions of this LSP kind or a sub-kind. Default: all."""
    agree: Optional[ServerKind] = None
    """`definition`, `references`, `rename`: another server that is asked the same. Default: none."""
    apply: Optional[bool] = None
    """`rename`, `actions`, `apply`: write the edit if no check prevents it. Default: false."""
    as_: Optional[SelectorForm] = None
    """`locate`: the form of the selector in `at`. Default: a cursor."""
    base: Optional[str] = None
    """`diagnostics` with `new`: the git revision to compare with. Default: `HEAD`."""
    check: Optional[CheckScope] = None
    """`rename`: the files whose diagnostics are compared. Default: `affected`."""
    cursor: Optional[str] = None
    """The cursor of the previous page, from `meta.limits.cursor`. Default: the first page."""
    depth: Optional[int] = None
    """`calls`, `typeHierarchy`: the maximum distance from the target. Default: 1."""
    direction: Optional[Direction] = None
    """`calls`: callers or callees."""
    edit: Optional[EditInput] = None
    """`apply`, `check`: the edit."""
    exclude: Optional[List[str]] = None
    """`rename`: unresolved places that are something else, in the same form. Sorted. Default: none."""
    exclude_declaration: Optional[bool] = None
    """`references`: leave out the declaration. Default: false."""
    fail_on: Optional[Severity] = None
    """`diagnostics`: the lowest severity that makes the verdict `fail`; `check`: the same for introduced diagnostics.
    Default: no verdict.
    """
    family: Optional[bool] = None
    """`rename`: rename a method, or a parameter of one, in all related classes. Default: false."""
    guards: Optional[Guards] = None
    """What an edit may touch, and which checks are overridden."""
    include: Optional[List[str]] = None
    """`rename`: places that are renamed although they are unresolved, as selectors, or `unresolved` for all of them.
    Sorted. Default: none.
    """
    index_io: Optional[ColumnUnit] = None
    """The unit of columns in selectors, such as `at`. Default: `codepoint`."""
    limit: Optional[int] = None
    """The maximum number of items in the list of facts. Default and maximum: 100,000."""
    list: Optional[bool] = None
    """`undo`: list the transactions instead. Default: false."""
    module: Optional[str] = None
    """`rename`: the module to rename, as a dotted name or a path relative to the workspace; then there is no selector,
    and the new name has the same form. Default: none.
    """
    new: Optional[bool] = None
    """`diagnostics`: report only those that are new since `base`. Default: false."""
    paths: Optional[List[str]] = None
    """`symbols`, `diagnostics`: files or folders relative to the workspace, sorted. Default: the whole workspace."""
    preview: Optional[int] = None
    """`locate`: the number of source lines in `preview`. Default: 1."""
    query: Optional[str] = None
    """`symbols`: the name to search for in the workspace. Default: no search."""
    run: Optional[str] = None
    """`actions`: the action to run, by title or by number counted from 1. Default: list the actions."""
    scope: Optional[Scope] = None
    """The files that may be opened in the server. Default: `workspace`."""
    severity: Optional[Severity] = None
    """`diagnostics`: the lowest severity to list; all are counted. Default: `information`."""
    transaction: Optional[str] = None
    """`undo`: the transaction. Default: the latest."""
    types: Optional[TypeDirection] = None
    """`typeHierarchy`: base classes or subclasses."""
    with_: Optional[List[AnalyzerKind]] = None
    """`diagnostics`, `check`: analyzers whose diagnostics are added to those of the language server, sorted. Default:
    none.
    """

    @classmethod
    def from_json(cls, value: Json) -> Options:
        """Reads it from its JSON form."""
        return cls(
            action_kind=value.get("action_kind"),
            agree=value.get("agree"),
            apply=value.get("apply"),
            as_=value.get("as"),
            base=value.get("base"),
            check=value.get("check"),
            cursor=value.get("cursor"),
            depth=value.get("depth"),
            direction=value.get("direction"),
            edit=EditInput.from_json(value["edit"]) if value.get("edit") is not None else None,
            exclude=list(value["exclude"]) if value.get("exclude") is not None else None,
            exclude_declaration=value.get("exclude_declaration"),
            fail_on=value.get("fail_on"),
            family=value.get("family"),
            guards=Guards.from_json(value["guards"]) if value.get("guards") is not None else None,
            include=list(value["include"]) if value.get("include") is not None else None,
            index_io=value.get("index_io"),
            limit=value.get("limit"),
            list=value.get("list"),
            module=value.get("module"),
            new=value.get("new"),
            paths=list(value["paths"]) if value.get("paths") is not None else None,
            preview=value.get("preview"),
            query=value.get("query"),
            run=value.get("run"),
            scope=value.get("scope"),
            severity=value.get("severity"),
            transaction=value.get("transaction"),
            types=value.get("types"),
            with_=list(value["with"]) if value.get("with") is not None else None,
        )


@dataclass(frozen=True)
class CursorPositionSpec:
    """A position in a file: `src/app.py@L42:C7`."""

    kind: Literal["cursor"]
    uri: str
    """The file."""
    line: int
    """1-based line."""
    col: int
    """1-based column in `indexing` units."""
    indexing: ColumnUnit
    """The unit of columns."""
    doc_version: Optional[str] = None
    """The version that the selector was made from."""

    @classmethod
    def from_json(cls, value: Json) -> CursorPositionSpec:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            uri=value["uri"],
            line=value["line"],
            col=value["col"],
            indexing=value["indexing"],
            doc_version=value.get("docVersion"),
        )


@dataclass(frozen=True)
class RangePositionSpec:
    """A range of a file: `src/app.py@R(42,7->44,1)`."""

    kind: Literal["range"]
    uri: str
    """The file."""
    start: Tuple[int, int]
    """1-based line and column of the first character."""
    end: Tuple[int, int]
    """1-based line and column after the last character."""
    indexing: ColumnUnit
    """The unit of columns."""
    doc_version: Optional[str] = None
    """The version that the selector was made from."""

    @classmethod
    def from_json(cls, value: Json) -> RangePositionSpec:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            uri=value["uri"],
            start=(value["start"][0], value["start"][1]),
            end=(value["end"][0], value["end"][1]),
            indexing=value["indexing"],
            doc_version=value.get("docVersion"),
        )


@dataclass(frozen=True)
class LinePositionSpec:
    """A line of a file: `src/app.py@L42`."""

    kind: Literal["line"]
    uri: str
    """The file."""
    line: int
    """1-based line."""
    doc_version: Optional[str] = None
    """The version that the selector was made from."""

    @classmethod
    def from_json(cls, value: Json) -> LinePositionSpec:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            uri=value["uri"],
            line=value["line"],
            doc_version=value.get("docVersion"),
        )


@dataclass(frozen=True)
class SymbolPositionSpec:
    """A definition by its name: `py://pkg.mod#Class.method:sig`."""

    kind: Literal["symbol"]
    qualname: str
    """The module and the name inside it, `pkg.mod:Class.method`."""
    role: Role
    """The part of the definition."""
    doc_version: Optional[str] = None
    """The version that the selector was made from."""
    overload: Optional[int] = None
    """The index of an overload, 0-based in source order; the implementation is last."""
    param: Optional[str] = None
    """The parameter, if a parameter of the function is selected."""

    @classmethod
    def from_json(cls, value: Json) -> SymbolPositionSpec:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            qualname=value["qualname"],
            role=value["role"],
            doc_version=value.get("docVersion"),
            overload=value.get("overload"),
            param=value.get("param"),
        )


@dataclass(frozen=True)
class NamePositionSpec:
    """A definition by a name without a module, or with its file: `Class.method`, `tests/test_x.py::TestC::test_m`."""

    kind: Literal["name"]
    name: str
    """The name."""
    role: Role
    """The part of the definition."""
    doc_version: Optional[str] = None
    """The version that the selector was made from."""
    overload: Optional[int] = None
    """The index of an overload, 0-based in source order; the implementation is last."""
    param: Optional[str] = None
    """The parameter, if a parameter of the function is selected."""
    uri: Optional[str] = None
    """The Python file that defines it. Without it the name is a module with a name inside it, `pkg.mod.Class`, or else
    the name of a definition of the workspace.
    """

    @classmethod
    def from_json(cls, value: Json) -> NamePositionSpec:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            name=value["name"],
            role=value["role"],
            doc_version=value.get("docVersion"),
            overload=value.get("overload"),
            param=value.get("param"),
            uri=value.get("uri"),
        )


@dataclass(frozen=True)
class AstPositionSpec:
    """A construct by its path in the syntax tree: `ast://[module=pkg.mod]/[class=C]/[def=m]`."""

    kind: Literal["ast"]
    path: List[List[Any]]
    """The steps, outermost first; at least one."""
    doc_version: Optional[str] = None
    """The version that the path was made from."""

    @classmethod
    def from_json(cls, value: Json) -> AstPositionSpec:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            path=[list(item) for item in value["path"]],
            doc_version=value.get("docVersion"),
        )


@dataclass(frozen=True)
class AnchorPositionSpec:
    """A snippet of a file: `anchor://src/app.py#"return%20view"`."""

    kind: Literal["anchor"]
    uri: str
    """The file that contained it."""
    snippet: str
    """The exact text; not empty."""
    ctx: int
    """The number of characters before and after it that `hash` covers."""
    doc_version: Optional[str] = None
    """The version that the snippet was taken from."""
    hash: Optional[str] = None
    """The hash of the snippet with its context, see [`ContextHash::of`]."""

    @classmethod
    def from_json(cls, value: Json) -> AnchorPositionSpec:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            uri=value["uri"],
            snippet=value["snippet"],
            ctx=value["ctx"],
            doc_version=value.get("docVersion"),
            hash=value.get("hash"),
        )


@dataclass(frozen=True)
class SymidPositionSpec:
    """A definition by its structure: `sym://method:C.m:p:…`."""

    kind: Literal["symid"]
    id: str
    """The id."""
    doc_version: Optional[str] = None
    """The version that the id was made from."""

    @classmethod
    def from_json(cls, value: Json) -> SymidPositionSpec:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            id=value["id"],
            doc_version=value.get("docVersion"),
        )


def _read_position_spec(value: Any) -> PositionSpec:
    if value["kind"] == "cursor":
        return CursorPositionSpec.from_json(value)
    if value["kind"] == "range":
        return RangePositionSpec.from_json(value)
    if value["kind"] == "line":
        return LinePositionSpec.from_json(value)
    if value["kind"] == "symbol":
        return SymbolPositionSpec.from_json(value)
    if value["kind"] == "name":
        return NamePositionSpec.from_json(value)
    if value["kind"] == "ast":
        return AstPositionSpec.from_json(value)
    if value["kind"] == "anchor":
        return AnchorPositionSpec.from_json(value)
    return SymidPositionSpec.from_json(value)


@dataclass(frozen=True)
class Request:
    """A request, as it is sent and as the bundle repeats it."""

    cmd: Command
    """The command."""
    options: Options
    """Options that change the answer. Members that have their default value are absent."""
    new_name: Optional[str] = None
    """`rename`: the new name; absent for other commands."""
    original: Optional[str] = None
    """The selector as it was given, where that is not its canonical string; `resolution.original` repeats it."""
    selector: Optional[PositionSpec] = None
    """The selector; absent when the command is not about one place."""

    @classmethod
    def from_json(cls, value: Json) -> Request:
        """Reads it from its JSON form."""
        return cls(
            cmd=value["cmd"],
            options=Options.from_json(value["options"]),
            new_name=value.get("newName"),
            original=value.get("original"),
            selector=_read_position_spec(value["selector"]) if value.get("selector") is not None else None,
        )


@dataclass(frozen=True)
class EvidenceStep:
    """A step from a selector to its target."""

    step: str
    """The kind of step: `import`, `starImport`, `inherited`, `alias`, `submodule` or `unresolvedImport`."""
    at: str
    """A selector of the code that makes the step."""
    to: str
    """The module or definition that the step leads to."""

    @classmethod
    def from_json(cls, value: Json) -> EvidenceStep:
        """Reads it from its JSON form."""
        return cls(
            step=value["step"],
            at=value["at"],
            to=value["to"],
        )


@dataclass(frozen=True)
class DecidingCommit:
    """A commit in which the location of a target did not follow with certainty."""

    commit: str
    """The ID of the commit, or of the transaction in lanser's operation log."""
    via: Via
    """How the target changed in it."""
    score: float
    """The score of the match, from 0 to 1."""
    reason: str
    """The reason for the choice, in one line."""

    @classmethod
    def from_json(cls, value: Json) -> DecidingCommit:
        """Reads it from its JSON form."""
        return cls(
            commit=value["commit"],
            via=value["via"],
            score=value["score"],
            reason=value["reason"],
        )


@dataclass(frozen=True)
class Features:
    """The features of a score, each from 0 to 1."""

    ast: float
    """Structure: 1 for the same chain of names or the same body."""
    module: float
    """The similarity of the module paths."""
    token_jaccard: float
    """The Jaccard index of the tokens."""
    proximity: float
    """The similarity of the surrounding code."""

    @classmethod
    def from_json(cls, value: Json) -> Features:
        """Reads it from its JSON form."""
        return cls(
            ast=value["ast"],
            module=value["module"],
            token_jaccard=value["tokenJaccard"],
            proximity=value["proximity"],
        )


@dataclass(frozen=True)
class Relocation:
    """The scores behind the choice of a target."""

    score: float
    """The weighted sum of the features, or 1 for a certified target."""
    margin: float
    """The distance to the score of the next candidate."""
    reason: str
    """The reason for the choice, in one line."""
    commits: List[DecidingCommit] = field(default_factory=list)
    """The commits in which the location did not follow with certainty, the oldest first. The confidence is the product
    of their scores, unless the two states alone support the same location better. Absent when empty.
    """
    features: Optional[Features] = None
    """The features of the score; absent when there was no other candidate."""
    via: Optional[RelocationVia] = None
    """What the choice is based on besides the two states; absent when they alone decided."""

    @classmethod
    def from_json(cls, value: Json) -> Relocation:
        """Reads it from its JSON form."""
        return cls(
            score=value["score"],
            margin=value["margin"],
            reason=value["reason"],
            commits=[DecidingCommit.from_json(item) for item in value.get("commits", ())],
            features=Features.from_json(value["features"]) if value.get("features") is not None else None,
            via=value.get("via"),
        )


@dataclass(frozen=True)
class Resolved:
    """The target of a selector."""

    uri: str
    """The file."""
    range: Range
    """The range of the part that the selector refers to."""
    at: str
    """A selector of the target."""
    doc_version: str
    """The digest of the file's content."""
    via: Via
    """How the target was found."""
    confidence: float
    """The confidence, from 0 to 1; 1 is certain."""
    certified: bool
    """Whether the target follows from the selector with certainty."""
    preview: str
    """The source line."""
    evidence: List[EvidenceStep] = field(default_factory=list)
    """The steps from the selector to the target, such as re-exports and base classes. Absent when empty."""
    qualname: Optional[str] = None
    """The qualified name, as `module:Class.method`; absent when the target is not the name of a definition."""
    relocation: Optional[Relocation] = None
    """The scores behind the choice; absent when no candidates were scored."""
    symbol_id: Optional[str] = None
    """The stable ID of the definition; absent when the target is not the name of a workspace definition."""
    symbol_kind: Optional[str] = None
    """The kind of definition; absent when the target is not the name of a definition."""

    @classmethod
    def from_json(cls, value: Json) -> Resolved:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            range=Range(*value["range"]),
            at=value["at"],
            doc_version=value["docVersion"],
            via=value["via"],
            confidence=value["confidence"],
            certified=value["certified"],
            preview=value["preview"],
            evidence=[EvidenceStep.from_json(item) for item in value.get("evidence", ())],
            qualname=value.get("qualname"),
            relocation=Relocation.from_json(value["relocation"]) if value.get("relocation") is not None else None,
            symbol_id=value.get("symbolId"),
            symbol_kind=value.get("symbol_kind"),
        )


@dataclass(frozen=True)
class Candidate:
    """A candidate for the target of a selector."""

    uri: str
    """The file."""
    range: Range
    """The range of the name."""
    at: str
    """A selector of the candidate."""
    score: float
    """The score, from 0 to 1."""
    reason: str
    """Why it is a candidate, in one line."""
    preview: str
    """The source line."""
    features: Optional[Features] = None
    """The features of the score; absent when the candidate was not scored by features."""
    qualname: Optional[str] = None
    """The qualified name, as `module:Class.method`; absent when the candidate is not the name of a definition."""
    symbol_kind: Optional[str] = None
    """The kind of definition; absent when the candidate is not the name of a definition."""

    @classmethod
    def from_json(cls, value: Json) -> Candidate:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            range=Range(*value["range"]),
            at=value["at"],
            score=value["score"],
            reason=value["reason"],
            preview=value["preview"],
            features=Features.from_json(value["features"]) if value.get("features") is not None else None,
            qualname=value.get("qualname"),
            symbol_kind=value.get("symbol_kind"),
        )


@dataclass(frozen=True)
class Resolution:
    """What a selector resolved to."""

    original: str
    """The selector in canonical form."""
    resolved: Optional[Resolved]
    """The target; `null` when none was found, or when the candidates are ambiguous."""
    disambiguation: List[Candidate]
    """Other candidates, best first."""
    ambiguous: bool
    """Whether the caller has to choose a candidate."""
    candidates: Optional[int] = None
    """The number of all candidates, including those not in `disambiguation`; absent when there is only one."""

    @classmethod
    def from_json(cls, value: Json) -> Resolution:
        """Reads it from its JSON form."""
        return cls(
            original=value["original"],
            resolved=None if value["resolved"] is None else Resolved.from_json(value["resolved"]),
            disambiguation=[Candidate.from_json(item) for item in value["disambiguation"]],
            ambiguous=value["ambiguous"],
            candidates=value.get("candidates"),
        )


@dataclass(frozen=True)
class Action:
    """A code action that the server offers."""

    number: int
    """The number of the action for `--run`, counted from 1."""
    title: str
    """The title."""
    disabled: Optional[str] = None
    """Why the action cannot be run; absent when it can be."""
    kind: Optional[str] = None
    """The LSP kind, as in `quickfix` or `source.organizeImports`; absent if the server gives none."""
    preferred: bool = False
    """Whether the server prefers this action. Absent when false."""

    @classmethod
    def from_json(cls, value: Json) -> Action:
        """Reads it from its JSON form."""
        return cls(
            number=value["number"],
            title=value["title"],
            disabled=value.get("disabled"),
            kind=value.get("kind"),
            preferred=value.get("preferred", False),
        )


@dataclass(frozen=True)
class Symbol:
    """A symbol: a class, function, variable or other definition."""

    name: str
    """The name."""
    symbol_kind: str
    """The LSP symbol kind in lower camel case, as in `enumMember`."""
    uri: str
    """The file."""
    range: Range
    """The range of the whole definition."""
    at: str
    """A selector of the name."""
    container: Optional[str] = None
    """The names of the enclosing definitions, outermost first, joined by dots; absent at the top level."""
    preview: Optional[str] = None
    """The source line; absent when the file cannot be read."""
    selection_range: Optional[Range] = None
    """The range of the name; absent if the server gives none."""
    symbol_id: Optional[str] = None
    """The stable ID of the symbol; absent for a symbol outside of the workspace."""

    @classmethod
    def from_json(cls, value: Json) -> Symbol:
        """Reads it from its JSON form."""
        return cls(
            name=value["name"],
            symbol_kind=value["symbol_kind"],
            uri=value["uri"],
            range=Range(*value["range"]),
            at=value["at"],
            container=value.get("container"),
            preview=value.get("preview"),
            selection_range=Range(*value["selectionRange"]) if value.get("selectionRange") is not None else None,
            symbol_id=value.get("symbolId"),
        )


@dataclass(frozen=True)
class Location:
    """A range in a file."""

    uri: str
    """The file."""
    range: Range
    """The range."""
    at: str
    """A selector of the location."""
    agreement: Optional[Agreement] = None
    """With `agree`: the servers by whose answers the location is known; absent otherwise."""
    preview: Optional[str] = None
    """The source line; absent when the file cannot be read."""
    provenance: Optional[UseProvenance] = None
    """The rule that establishes the reference; absent when the server reports it itself, and outside of `references`.
    """
    symbol_id: Optional[str] = None
    """The stable ID of the definition whose name this is; absent when the location is not the name of a workspace
    definition.
    """
    via: Optional[str] = None
    """The alias, or the member of a related class, through which the symbol is reached; absent when it is reached
    directly.
    """

    @classmethod
    def from_json(cls, value: Json) -> Location:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            range=Range(*value["range"]),
            at=value["at"],
            agreement=value.get("agreement"),
            preview=value.get("preview"),
            provenance=value.get("provenance"),
            symbol_id=value.get("symbolId"),
            via=value.get("via"),
        )


@dataclass(frozen=True)
class Call:
    """An edge of a call hierarchy."""

    direction: Direction
    """The direction in which the edge was followed."""
    depth: int
    """The distance from the target in calls, beginning with 1."""
    caller: Symbol
    """The symbol that calls."""
    callee: Symbol
    """The symbol that is called."""
    sites: List[Location]
    """The locations of the calls, all in the caller's file."""

    @classmethod
    def from_json(cls, value: Json) -> Call:
        """Reads it from its JSON form."""
        return cls(
            direction=value["direction"],
            depth=value["depth"],
            caller=Symbol.from_json(value["caller"]),
            callee=Symbol.from_json(value["callee"]),
            sites=[Location.from_json(item) for item in value["sites"]],
        )


@dataclass(frozen=True)
class UnresolvedOccurrence:
    """An unresolved occurrence."""

    uri: str
    """The file."""
    range: Range
    """The range of the name."""
    at: str
    """A selector of the name."""
    kind: str
    """The kind of syntax: `identifier`, `attribute`, `keyword` or `string`."""
    reason: str
    """Why the occurrence is unresolved."""
    preview: Optional[str] = None
    """The source line; absent when the file cannot be read."""
    receiver: Optional[str] = None
    """The source text before the dot; absent when it is not an attribute."""

    @classmethod
    def from_json(cls, value: Json) -> UnresolvedOccurrence:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            range=Range(*value["range"]),
            at=value["at"],
            kind=value["kind"],
            reason=value["reason"],
            preview=value.get("preview"),
            receiver=value.get("receiver"),
        )


@dataclass(frozen=True)
class Unresolved:
    """Occurrences that are neither confirmed as references nor explained otherwise."""

    count: int
    """The number of unresolved occurrences, on all pages."""
    items: List[UnresolvedOccurrence]
    """The unresolved occurrences of this page, sorted by location."""

    @classmethod
    def from_json(cls, value: Json) -> Unresolved:
        """Reads it from its JSON form."""
        return cls(
            count=value["count"],
            items=[UnresolvedOccurrence.from_json(item) for item in value["items"]],
        )


@dataclass(frozen=True)
class AgreementCounts:
    """How the answers of two servers compare. `main` is the server of `environment.tool`, `other` that of
    `environment.otherTool`.
    """

    both: int
    """References by the answers of both."""
    main: int
    """References by the answers of the main server only."""
    other: int
    """References by the answers of the other server only."""
    other_symbols: int
    """Occurrences that only the other server resolves, to another symbol; they are among `explained.other`."""
    contradictions: int
    """Occurrences that are the symbol for one server and another symbol for the other; they are unresolved."""

    @classmethod
    def from_json(cls, value: Json) -> AgreementCounts:
        """Reads it from its JSON form."""
        return cls(
            both=value["both"],
            main=value["main"],
            other=value["other"],
            other_symbols=value["otherSymbols"],
            contradictions=value["contradictions"],
        )


@dataclass(frozen=True)
class ExplainedCounts:
    """The number of occurrences of a name by explanation."""

    reference: int
    """References to the symbol, on all pages."""
    override: int
    """Definitions of the same member in related classes."""
    other: int
    """Occurrences that resolve to another symbol of the same name."""
    text: int
    """Words in comments and strings."""

    @classmethod
    def from_json(cls, value: Json) -> ExplainedCounts:
        """Reads it from its JSON form."""
        return cls(
            reference=value["reference"],
            override=value["override"],
            other=value["other"],
            text=value["text"],
        )


@dataclass(frozen=True)
class Completeness:
    """Whether every occurrence of a name in the workspace is accounted for."""

    status: CompletenessStatus
    """The verdict."""
    scope: Scope
    """The files that could be opened in the server."""
    files_with_name: int
    """The number of workspace files that contain the name, or an alias of it, as an identifier."""
    files_searched: int
    """The number of these files that were opened in the server."""
    unresolved: Unresolved
    """Occurrences that are neither confirmed as references nor explained otherwise."""
    agreement: Optional[AgreementCounts] = None
    """With `agree`: how the answers of the two servers compare; absent otherwise."""
    explained: Optional[ExplainedCounts] = None
    """The number of occurrences of the name and its aliases by explanation; absent when occurrences were not counted.
    """
    reason: Optional[str] = None
    """Why the status is not `complete`; absent when it is."""

    @classmethod
    def from_json(cls, value: Json) -> Completeness:
        """Reads it from its JSON form."""
        return cls(
            status=value["status"],
            scope=value["scope"],
            files_with_name=value["files_with_name"],
            files_searched=value["files_searched"],
            unresolved=Unresolved.from_json(value["unresolved"]),
            agreement=AgreementCounts.from_json(value["agreement"]) if value.get("agreement") is not None else None,
            explained=ExplainedCounts.from_json(value["explained"]) if value.get("explained") is not None else None,
            reason=value.get("reason"),
        )


@dataclass(frozen=True)
class Related:
    """A location related to a diagnostic."""

    location: Location
    """The location."""
    message: str
    """How it is related."""

    @classmethod
    def from_json(cls, value: Json) -> Related:
        """Reads it from its JSON form."""
        return cls(
            location=Location.from_json(value["location"]),
            message=value["message"],
        )


@dataclass(frozen=True)
class Diagnostic:
    """A diagnostic."""

    uri: str
    """The file."""
    range: Range
    """The range."""
    at: str
    """A selector of the location."""
    severity: Severity
    """The severity."""
    message: str
    """The source's message; paths in it are replaced as in `uri`."""
    preview: Optional[str] = None
    """The source line; absent when the file cannot be read."""
    related: List[Related] = field(default_factory=list)
    """Related locations. Absent when empty."""
    rule: Optional[str] = None
    """The source's name of the rule; absent if it gives none."""
    source: Optional[DiagnosticSource] = None
    """What reports it; absent when only the language server was asked."""
    symbol: Optional[str] = None
    """`diagnostics`: the dotted name of the definition that contains it, without the module; absent outside of
    definitions, and for hints.
    """
    tags: List[str] = field(default_factory=list)
    """LSP tags: `unnecessary`, `deprecated`. Absent when empty."""

    @classmethod
    def from_json(cls, value: Json) -> Diagnostic:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            range=Range(*value["range"]),
            at=value["at"],
            severity=value["severity"],
            message=value["message"],
            preview=value.get("preview"),
            related=[Related.from_json(item) for item in value.get("related", ())],
            rule=value.get("rule"),
            source=value.get("source"),
            symbol=value.get("symbol"),
            tags=list(value.get("tags", ())),
        )


@dataclass(frozen=True)
class Counts:
    """The number of diagnostics by severity."""

    error: int
    """The number of errors."""
    warning: int
    """The number of warnings."""
    information: int
    """The number of informational diagnostics."""
    hint: int
    """The number of hints, such as unreachable and unused code."""

    @classmethod
    def from_json(cls, value: Json) -> Counts:
        """Reads it from its JSON form."""
        return cls(
            error=value["error"],
            warning=value["warning"],
            information=value["information"],
            hint=value["hint"],
        )


@dataclass(frozen=True)
class FileCounts:
    """The number of diagnostics in one file."""

    uri: str
    """The file."""
    counts: Counts
    """The number of diagnostics by severity."""

    @classmethod
    def from_json(cls, value: Json) -> FileCounts:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            counts=Counts.from_json(value["counts"]),
        )


@dataclass(frozen=True)
class BaseComparison:
    """How the diagnostics of the workspace compare with those of a git revision. Hints are not compared."""

    commit: str
    """The commit ID of the revision."""
    fixed: Counts
    """The number of diagnostics that are only at the base."""
    kept: Counts
    """The number of diagnostics that are in both."""
    caveat: Optional[str] = None
    """Why the diagnostics at the base may not be exact; absent when nothing is known against them."""

    @classmethod
    def from_json(cls, value: Json) -> BaseComparison:
        """Reads it from its JSON form."""
        return cls(
            commit=value["commit"],
            fixed=Counts.from_json(value["fixed"]),
            kept=Counts.from_json(value["kept"]),
            caveat=value.get("caveat"),
        )


@dataclass(frozen=True)
class NotChecked:
    """A file that could not be checked."""

    uri: str
    """The file."""
    reason: str
    """Why it could not be checked."""

    @classmethod
    def from_json(cls, value: Json) -> NotChecked:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            reason=value["reason"],
        )


@dataclass(frozen=True)
class SourceReport:
    """A source of diagnostics, and what it analyzed."""

    source: DiagnosticSource
    """The source."""
    tool: str
    """The name of the program."""
    version: str
    """Its version."""
    config_digest: str
    """The digest of the configuration files that change its diagnostics, and of the options that lanser passes."""
    scope: AnalysisScope
    """The files that it analyzed."""
    complete: bool
    """Whether it analyzed all of them, and as configured."""
    reason: Optional[str] = None
    """Why it is not complete; absent when it is."""

    @classmethod
    def from_json(cls, value: Json) -> SourceReport:
        """Reads it from its JSON form."""
        return cls(
            source=value["source"],
            tool=value["tool"],
            version=value["version"],
            config_digest=value["configDigest"],
            scope=value["scope"],
            complete=value["complete"],
            reason=value.get("reason"),
        )


@dataclass(frozen=True)
class Diagnostics:
    """The diagnostics of a set of files."""

    items: List[Diagnostic]
    """The diagnostics of the requested severity or worse."""
    counts: Counts
    """The number of all diagnostics by severity, listed or not. With `--new`, like `files` and `verdict`, only of new
    ones.
    """
    files_checked: int
    """The number of files checked."""
    files: List[FileCounts]
    """The counts of every file that has diagnostics."""
    base: Optional[BaseComparison] = None
    """With `--new`: how the diagnostics compare with those at the base; absent otherwise."""
    not_checked: List[NotChecked] = field(default_factory=list)
    """Requested files that could not be checked. Absent when empty."""
    sources: Optional[List[SourceReport]] = None
    """The sources of the diagnostics; absent when the language server is the only one."""
    verdict: Optional[Verdict] = None
    """Whether the files pass `--fail-on`; absent without `--fail-on`."""

    @classmethod
    def from_json(cls, value: Json) -> Diagnostics:
        """Reads it from its JSON form."""
        return cls(
            items=[Diagnostic.from_json(item) for item in value["items"]],
            counts=Counts.from_json(value["counts"]),
            files_checked=value["files_checked"],
            files=[FileCounts.from_json(item) for item in value["files"]],
            base=BaseComparison.from_json(value["base"]) if value.get("base") is not None else None,
            not_checked=[NotChecked.from_json(item) for item in value.get("not_checked", ())],
            sources=[SourceReport.from_json(item) for item in value["sources"]] if value.get("sources") is not None else None,
            verdict=value.get("verdict"),
        )


@dataclass(frozen=True)
class Hover:
    """Signature and documentation; with `definitions` the signature alone."""

    markdown: str
    """The text as Markdown; paths in it are replaced as in `uri`."""
    provenance: Optional[Provenance] = None
    """`syntax` for the signature as it is written in the source; absent for the server's text."""
    range: Optional[Range] = None
    """The range that the text is about; absent if the server gives none."""

    @classmethod
    def from_json(cls, value: Json) -> Hover:
        """Reads it from its JSON form."""
        return cls(
            markdown=value["markdown"],
            provenance=value.get("provenance"),
            range=Range(*value["range"]) if value.get("range") is not None else None,
        )


@dataclass(frozen=True)
class Override:
    """The definition of the same member in a related class."""

    uri: str
    """The file."""
    range: Range
    """The range of the name."""
    at: str
    """A selector of the name."""
    class_: str
    """The qualified name of the class in its module."""
    relation: FamilyRelation
    """How the class is related to the class of the symbol."""
    preview: Optional[str] = None
    """The source line; absent when the file cannot be read."""

    @classmethod
    def from_json(cls, value: Json) -> Override:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            range=Range(*value["range"]),
            at=value["at"],
            class_=value["class"],
            relation=value["relation"],
            preview=value.get("preview"),
        )


@dataclass(frozen=True)
class Renamable:
    """What can be renamed."""

    name: str
    """The current name."""
    location: Location
    """The location of the name."""

    @classmethod
    def from_json(cls, value: Json) -> Renamable:
        """Reads it from its JSON form."""
        return cls(
            name=value["name"],
            location=Location.from_json(value["location"]),
        )


@dataclass(frozen=True)
class Transaction:
    """A transaction: an edit that was written."""

    id: str
    """The ID, for `lanser undo ID`."""
    state: TransactionState
    """Whether the edit is applied, undone, or cannot be undone."""
    files: int
    """The number of paths that changed: two for a file that moved."""
    summary: Optional[str] = None
    """The command that made the edit, in one line; for a damaged transaction, what is wrong with it. Absent when it is
    not known.
    """

    @classmethod
    def from_json(cls, value: Json) -> Transaction:
        """Reads it from its JSON form."""
        return cls(
            id=value["id"],
            state=value["state"],
            files=value["files"],
            summary=value.get("summary"),
        )


@dataclass(frozen=True)
class TypeEdge:
    """An edge of a type hierarchy: a class and one of its direct bases."""

    direction: TypeDirection
    """The direction in which the edge was followed."""
    depth: int
    """The distance from the target, beginning with 1."""
    subtype: Symbol
    """The class that inherits."""
    supertype: Symbol
    """The base class."""

    @classmethod
    def from_json(cls, value: Json) -> TypeEdge:
        """Reads it from its JSON form."""
        return cls(
            direction=value["direction"],
            depth=value["depth"],
            subtype=Symbol.from_json(value["subtype"]),
            supertype=Symbol.from_json(value["supertype"]),
        )


@dataclass(frozen=True)
class Facts:
    """The facts of a bundle. The members from `definitions` to `verdict` hold the answer; only those that the command
    asks for are present.
    """

    provenance: Provenance
    """Where the facts come from."""
    actions: Optional[List[Action]] = None
    """`actions`: the code actions that the server offers."""
    calls: Optional[List[Call]] = None
    """`calls`: edges of the call hierarchy."""
    completeness: Optional[Completeness] = None
    """Whether the answer covers the whole workspace; absent when the answer depends on one file only."""
    declarations: Optional[List[Location]] = None
    """`declaration`: where the symbol is declared."""
    definitions: Optional[List[Location]] = None
    """`definition`: where the symbol is defined."""
    diagnostics: Optional[Diagnostics] = None
    """`diagnostics`: the diagnostics of a set of files."""
    hover: Optional[Hover] = None
    """`hover`: signature and documentation. `definition`: the signature of the first definition, as it is written."""
    implementations: Optional[List[Location]] = None
    """`implementation`: what implements the symbol."""
    overrides: List[Override] = field(default_factory=list)
    """Definitions of the same member in related classes; only with `references` and `implementations`. Absent when
    empty.
    """
    references: Optional[List[Location]] = None
    """`references`: every reference to the symbol."""
    renamable: Optional[Renamable] = None
    """`prepareRename`: what can be renamed."""
    symbols: Optional[List[Symbol]] = None
    """`symbols`: the outline of files, or the result of a search."""
    transactions: Optional[List[Transaction]] = None
    """`undo` with `list`: the transactions, latest first."""
    type_definitions: Optional[List[Location]] = None
    """`typeDefinition`: where the type of the expression is defined."""
    types: Optional[List[TypeEdge]] = None
    """`typeHierarchy`: edges of the type hierarchy."""
    verdict: Optional[Verdict] = None
    """`check`: whether the edit passes `--fail-on`."""

    @classmethod
    def from_json(cls, value: Json) -> Facts:
        """Reads it from its JSON form."""
        return cls(
            provenance=value["provenance"],
            actions=[Action.from_json(item) for item in value["actions"]] if value.get("actions") is not None else None,
            calls=[Call.from_json(item) for item in value["calls"]] if value.get("calls") is not None else None,
            completeness=Completeness.from_json(value["completeness"]) if value.get("completeness") is not None else None,
            declarations=[Location.from_json(item) for item in value["declarations"]] if value.get("declarations") is not None else None,
            definitions=[Location.from_json(item) for item in value["definitions"]] if value.get("definitions") is not None else None,
            diagnostics=Diagnostics.from_json(value["diagnostics"]) if value.get("diagnostics") is not None else None,
            hover=Hover.from_json(value["hover"]) if value.get("hover") is not None else None,
            implementations=[Location.from_json(item) for item in value["implementations"]] if value.get("implementations") is not None else None,
            overrides=[Override.from_json(item) for item in value.get("overrides", ())],
            references=[Location.from_json(item) for item in value["references"]] if value.get("references") is not None else None,
            renamable=Renamable.from_json(value["renamable"]) if value.get("renamable") is not None else None,
            symbols=[Symbol.from_json(item) for item in value["symbols"]] if value.get("symbols") is not None else None,
            transactions=[Transaction.from_json(item) for item in value["transactions"]] if value.get("transactions") is not None else None,
            type_definitions=[Location.from_json(item) for item in value["type_definitions"]] if value.get("type_definitions") is not None else None,
            types=[TypeEdge.from_json(item) for item in value["types"]] if value.get("types") is not None else None,
            verdict=value.get("verdict"),
        )


@dataclass(frozen=True)
class ChangeAnnotation:
    """A description of edits."""

    label: str
    """A short description for the user."""
    description: Optional[str] = None
    """A longer description for the user; absent if there is none."""
    needs_confirmation: Optional[bool] = None
    """Whether the user has to confirm the edit; absent means `false`."""

    @classmethod
    def from_json(cls, value: Json) -> ChangeAnnotation:
        """Reads it from its JSON form."""
        return cls(
            label=value["label"],
            description=value.get("description"),
            needs_confirmation=value.get("needsConfirmation"),
        )


@dataclass(frozen=True)
class LspPosition:
    """A position in LSP's form."""

    line: int
    """The line, 0-based."""
    character: int
    """The column, 0-based, in the negotiated position encoding."""

    @classmethod
    def from_json(cls, value: Json) -> LspPosition:
        """Reads it from its JSON form."""
        return cls(
            line=value["line"],
            character=value["character"],
        )


@dataclass(frozen=True)
class LspRange:
    """A range in LSP's form."""

    start: LspPosition
    """The first position."""
    end: LspPosition
    """The position after the last character."""

    @classmethod
    def from_json(cls, value: Json) -> LspRange:
        """Reads it from its JSON form."""
        return cls(
            start=LspPosition.from_json(value["start"]),
            end=LspPosition.from_json(value["end"]),
        )


@dataclass(frozen=True)
class TextEdit:
    """Replaces a range of a text."""

    range: LspRange
    """The range to replace."""
    new_text: str
    """The replacement."""
    annotation_id: Optional[str] = None
    """The ID of an annotation in `changeAnnotations`; absent if there is none."""

    @classmethod
    def from_json(cls, value: Json) -> TextEdit:
        """Reads it from its JSON form."""
        return cls(
            range=LspRange.from_json(value["range"]),
            new_text=value["newText"],
            annotation_id=value.get("annotationId"),
        )


@dataclass(frozen=True)
class OperationOptions:
    """Options of a file operation. An absent member means `false`."""

    ignore_if_exists: Optional[bool] = None
    """Create, rename: do nothing if the file exists."""
    ignore_if_not_exists: Optional[bool] = None
    """Delete: do nothing if the file does not exist."""
    overwrite: Optional[bool] = None
    """Create, rename: replace an existing file. Takes precedence over `ignoreIfExists`."""
    recursive: Optional[bool] = None
    """Delete: delete a folder with its content."""

    @classmethod
    def from_json(cls, value: Json) -> OperationOptions:
        """Reads it from its JSON form."""
        return cls(
            ignore_if_exists=value.get("ignoreIfExists"),
            ignore_if_not_exists=value.get("ignoreIfNotExists"),
            overwrite=value.get("overwrite"),
            recursive=value.get("recursive"),
        )


@dataclass(frozen=True)
class CreateFileOperation:
    """Creates an empty file."""

    kind: Literal["create"]
    uri: str
    """The file's URI."""
    annotation_id: Optional[str] = None
    """The ID of an annotation in `changeAnnotations`; absent if there is none."""
    options: Optional[OperationOptions] = None
    """What to do if the file exists; absent for the default."""

    @classmethod
    def from_json(cls, value: Json) -> CreateFileOperation:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            uri=value["uri"],
            annotation_id=value.get("annotationId"),
            options=OperationOptions.from_json(value["options"]) if value.get("options") is not None else None,
        )


@dataclass(frozen=True)
class RenameFileOperation:
    """Renames a file or folder."""

    kind: Literal["rename"]
    old_uri: str
    """The old URI."""
    new_uri: str
    """The new URI."""
    annotation_id: Optional[str] = None
    """The ID of an annotation in `changeAnnotations`; absent if there is none."""
    options: Optional[OperationOptions] = None
    """What to do if the new name exists; absent for the default."""

    @classmethod
    def from_json(cls, value: Json) -> RenameFileOperation:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            old_uri=value["oldUri"],
            new_uri=value["newUri"],
            annotation_id=value.get("annotationId"),
            options=OperationOptions.from_json(value["options"]) if value.get("options") is not None else None,
        )


@dataclass(frozen=True)
class DeleteFileOperation:
    """Deletes a file or folder."""

    kind: Literal["delete"]
    uri: str
    """The URI."""
    annotation_id: Optional[str] = None
    """The ID of an annotation in `changeAnnotations`; absent if there is none."""
    options: Optional[OperationOptions] = None
    """What to do if it does not exist, and whether folders may be deleted; absent for the default."""

    @classmethod
    def from_json(cls, value: Json) -> DeleteFileOperation:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            uri=value["uri"],
            annotation_id=value.get("annotationId"),
            options=OperationOptions.from_json(value["options"]) if value.get("options") is not None else None,
        )


def _read_file_operation(value: Any) -> FileOperation:
    if value["kind"] == "create":
        return CreateFileOperation.from_json(value)
    if value["kind"] == "rename":
        return RenameFileOperation.from_json(value)
    return DeleteFileOperation.from_json(value)


@dataclass(frozen=True)
class VersionedDocument:
    """A document at a version."""

    uri: str
    """The document's URI."""
    version: Optional[int]
    """The version of the open document that the edit is for; `null` for the file on disk."""

    @classmethod
    def from_json(cls, value: Json) -> VersionedDocument:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            version=value["version"],
        )


@dataclass(frozen=True)
class TextDocumentEdit:
    """Text edits of one document."""

    text_document: VersionedDocument
    """The document."""
    edits: List[TextEdit]
    """The edits. All positions refer to the document before any of them."""

    @classmethod
    def from_json(cls, value: Json) -> TextDocumentEdit:
        """Reads it from its JSON form."""
        return cls(
            text_document=VersionedDocument.from_json(value["textDocument"]),
            edits=[TextEdit.from_json(item) for item in value["edits"]],
        )


def _read_document_change(value: Any) -> DocumentChange:
    if "kind" in value:
        return _read_file_operation(value)
    return TextDocumentEdit.from_json(value)


@dataclass(frozen=True)
class WorkspaceEdit:
    """LSP's `WorkspaceEdit`."""

    change_annotations: Dict[str, ChangeAnnotation] = field(default_factory=dict)
    """Descriptions of edits, by the ID that `annotationId` refers to. Absent when empty."""
    changes: Dict[str, List[TextEdit]] = field(default_factory=dict)
    """Edits by document URI. Ignored if `documentChanges` is present; absent when empty."""
    document_changes: Optional[List[DocumentChange]] = None
    """Text edits and file operations, in the order in which they are applied; absent when `changes` is used."""

    @classmethod
    def from_json(cls, value: Json) -> WorkspaceEdit:
        """Reads it from its JSON form."""
        return cls(
            change_annotations={name: ChangeAnnotation.from_json(item) for name, item in value.get("changeAnnotations", {}).items()},
            changes={name: [TextEdit.from_json(item) for item in item] for name, item in value.get("changes", {}).items()},
            document_changes=[_read_document_change(item) for item in value["documentChanges"]] if value.get("documentChanges") is not None else None,
        )


@dataclass(frozen=True)
class EditedFile:
    """A file that an edit writes."""

    uri: str
    """The file, by its new name if it is renamed."""
    change: FileChangeKind
    """What happens to the file."""
    insertions: int
    """The number of lines added."""
    deletions: int
    """The number of lines removed."""
    after: Optional[str] = None
    """The digest of the content after the edit; absent for a deleted file."""
    before: Optional[str] = None
    """The digest of the current content; absent for a new file."""
    from_: Optional[str] = None
    """The old name; absent unless the file is renamed."""

    @classmethod
    def from_json(cls, value: Json) -> EditedFile:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            change=value["change"],
            insertions=value["insertions"],
            deletions=value["deletions"],
            after=value.get("after"),
            before=value.get("before"),
            from_=value.get("from"),
        )


@dataclass(frozen=True)
class PlaceDecision:
    """What the caller decided about an unresolved place."""

    at: str
    """A selector of the place."""
    decision: Decision
    """The decision."""

    @classmethod
    def from_json(cls, value: Json) -> PlaceDecision:
        """Reads it from its JSON form."""
        return cls(
            at=value["at"],
            decision=value["decision"],
        )


@dataclass(frozen=True)
class Check:
    """A safety check of an edit, made before anything is written."""

    name: CheckName
    """The condition that was checked."""
    passed: bool
    """Whether the condition holds."""
    detail: str
    """What was checked, or what is wrong, as text."""
    decisions: List[PlaceDecision] = field(default_factory=list)
    """`completeness`: what the caller decided about unresolved places, sorted by location. Absent when empty."""
    locations: List[str] = field(default_factory=list)
    """Selectors of the locations that fail the check, or only the first of them when there are many. Absent when empty.
    """
    overridden: bool = False
    """Whether the check failed and the caller chose to apply the edit anyway. Absent when false."""
    previews: List[str] = field(default_factory=list)
    """`completeness`: the source lines of `locations`, in the same order. Absent when empty."""

    @classmethod
    def from_json(cls, value: Json) -> Check:
        """Reads it from its JSON form."""
        return cls(
            name=value["name"],
            passed=value["passed"],
            detail=value["detail"],
            decisions=[PlaceDecision.from_json(item) for item in value.get("decisions", ())],
            locations=list(value.get("locations", ())),
            overridden=value.get("overridden", False),
            previews=list(value.get("previews", ())),
        )


@dataclass(frozen=True)
class UnaffectedFiles:
    """Files whose diagnostics a rename cannot change: neither name is written in them, and they import an edited module
    neither with `*` nor as an object that they pass on.
    """

    count: int
    """How many there are."""
    files: List[str]
    """The first of them, sorted by path."""

    @classmethod
    def from_json(cls, value: Json) -> UnaffectedFiles:
        """Reads it from its JSON form."""
        return cls(
            count=value["count"],
            files=list(value["files"]),
        )


@dataclass(frozen=True)
class DiagnosticsDelta:
    """How an edit changes the diagnostics."""

    introduced: List[Diagnostic]
    """Diagnostics that the edit introduces, at their locations after the edit."""
    resolved: List[Diagnostic]
    """Diagnostics that the edit resolves, at their locations before the edit. Always empty for a rename, which does not
    look for them.
    """
    unchanged: Counts
    """The number of diagnostics that are the same with and without the edit, by severity."""
    files_checked: int
    """The number of files compared: edited files, and files that import them."""
    files_left_out: int
    """The number of files that the edit could affect and that were not compared, because there are too many."""
    sources: Optional[List[SourceReport]] = None
    """The analyzers besides the language server, and what they analyzed after the edit; absent when there are none."""
    unaffected: Optional[UnaffectedFiles] = None
    """`rename`: files that import an edited module and that were not compared, because the renamed symbol cannot matter
    to them; absent when there are none.
    """

    @classmethod
    def from_json(cls, value: Json) -> DiagnosticsDelta:
        """Reads it from its JSON form."""
        return cls(
            introduced=[Diagnostic.from_json(item) for item in value["introduced"]],
            resolved=[Diagnostic.from_json(item) for item in value["resolved"]],
            unchanged=Counts.from_json(value["unchanged"]),
            files_checked=value["files_checked"],
            files_left_out=value["files_left_out"],
            sources=[SourceReport.from_json(item) for item in value["sources"]] if value.get("sources") is not None else None,
            unaffected=UnaffectedFiles.from_json(value["unaffected"]) if value.get("unaffected") is not None else None,
        )


@dataclass(frozen=True)
class Occurrence:
    """An occurrence of a name in a text."""

    at: str
    """A selector of the location."""
    kind: str
    """The kind of syntax."""
    preview: Optional[str] = None
    """The source line; absent when it is not known."""

    @classmethod
    def from_json(cls, value: Json) -> Occurrence:
        """Reads it from its JSON form."""
        return cls(
            at=value["at"],
            kind=value["kind"],
            preview=value.get("preview"),
        )


@dataclass(frozen=True)
class Residue:
    """Occurrences of the old name that a rename leaves."""

    count: int
    """The number of occurrences."""
    kinds: Dict[str, int]
    """The number of occurrences by kind: `identifier`, `attribute`, `string`, `comment` and others."""
    items: List[Occurrence]
    """Some of the occurrences: identifiers and attributes before strings and comments, then sorted by location."""

    @classmethod
    def from_json(cls, value: Json) -> Residue:
        """Reads it from its JSON form."""
        return cls(
            count=value["count"],
            kinds=dict(value["kinds"]),
            items=[Occurrence.from_json(item) for item in value["items"]],
        )


@dataclass(frozen=True)
class Edits:
    """An edit that was planned, or written."""

    workspace_edit: Optional[WorkspaceEdit]
    """The edit as an LSP `WorkspaceEdit`; `null` for an edit that was given as a diff."""
    diff: str
    """The edit as a unified diff in git's format, with paths relative to the workspace."""
    files: List[EditedFile]
    """Every file that the edit writes, sorted by path."""
    safety: List[Check]
    """Every check that was made, in a fixed order."""
    transaction: Optional[Transaction]
    """The transaction that wrote the edit; `null` when nothing was written."""
    diagnostics: Optional[DiagnosticsDelta] = None
    """How the edit changes the diagnostics; absent when they were not compared."""
    notes: List[str] = field(default_factory=list)
    """Functions that an edit removes, or whose parameters it changes so that calls may no longer fit; and how hunks of
    a diff were placed that do not apply as they are: recounted, or with context that differs. Absent when empty.
    """
    residue: Optional[Residue] = None
    """`rename`: occurrences of the old name that the rename leaves; absent for other commands."""

    @classmethod
    def from_json(cls, value: Json) -> Edits:
        """Reads it from its JSON form."""
        return cls(
            workspace_edit=None if value["workspaceEdit"] is None else WorkspaceEdit.from_json(value["workspaceEdit"]),
            diff=value["diff"],
            files=[EditedFile.from_json(item) for item in value["files"]],
            safety=[Check.from_json(item) for item in value["safety"]],
            transaction=None if value["transaction"] is None else Transaction.from_json(value["transaction"]),
            diagnostics=DiagnosticsDelta.from_json(value["diagnostics"]) if value.get("diagnostics") is not None else None,
            notes=list(value.get("notes", ())),
            residue=Residue.from_json(value["residue"]) if value.get("residue") is not None else None,
        )


@dataclass(frozen=True)
class GoneDiagnostics:
    """What became of the diagnostics that went, in numbers, by what became of the expressions that they were about.
    Diagnostics that are only suppressed are in none of them.
    """

    in_place: int
    """The same callee or receiver is still used for the same purpose, and now resolves."""
    replaced: int
    """Another expression took its role."""
    removed: int
    """Its statement, branch or caller is gone or cannot run, or part of what it used was thrown away."""
    declared: int
    """Only a definition, annotation or stub appeared for it."""

    @classmethod
    def from_json(cls, value: Json) -> GoneDiagnostics:
        """Reads it from its JSON form."""
        return cls(
            in_place=value["in_place"],
            replaced=value["replaced"],
            removed=value["removed"],
            declared=value["declared"],
        )


@dataclass(frozen=True)
class CsfComponents:
    """The components of `rl-csf-v1` and `rl-csf-guarded-v1`."""

    diag_delta: Optional[float]
    """The diagnostics (`D`) before the step minus those after it."""
    safety_delta: Optional[float]
    """The safety (`S`) after the step minus that before it."""
    confidence_delta: Optional[float]
    """The confidence (`A`) after the step minus that before it."""
    tool_error: Optional[float]
    """1 if the caller made an error, else 0."""
    gone: Optional[GoneDiagnostics] = None
    """What became of the diagnostics that went, of an edit under the guarded formula; absent otherwise."""

    @classmethod
    def from_json(cls, value: Json) -> CsfComponents:
        """Reads it from its JSON form."""
        return cls(
            diag_delta=value["diag_delta"],
            safety_delta=value["safety_delta"],
            confidence_delta=value["confidence_delta"],
            tool_error=value["tool_error"],
            gone=GoneDiagnostics.from_json(value["gone"]) if value.get("gone") is not None else None,
        )


@dataclass(frozen=True)
class PrComponents:
    """The components of `pr-v1`."""

    diag_delta: Optional[float]
    """The diagnostics before the step minus those after it."""
    safety: Optional[float]
    """1 if the step checks an edit and every check passes, else 0."""
    ambiguity_penalty: Optional[float]
    """1 minus the confidence of the selector's best target; 0 for a step without a selector."""

    @classmethod
    def from_json(cls, value: Json) -> PrComponents:
        """Reads it from its JSON form."""
        return cls(
            diag_delta=value["diag_delta"],
            safety=value["safety"],
            ambiguity_penalty=value["ambiguity_penalty"],
        )


def _read_components(value: Any) -> Components:
    if ["confidence_delta", "diag_delta", "safety_delta", "tool_error"] == sorted(set(value) & {"confidence_delta", "diag_delta", "safety_delta", "tool_error"}):
        return CsfComponents.from_json(value)
    return PrComponents.from_json(value)


@dataclass(frozen=True)
class DiagnosticFingerprint:
    """What identifies a diagnostic independently of its position."""

    message: str
    """The first 16 hexadecimal digits of the digest of the message with normalized numbers."""
    symbol: str
    """The dotted name of the enclosing definition; empty at module level."""
    severity: Severity
    """The severity."""
    count: int
    """The number of diagnostics with this fingerprint in the file."""
    rule: Optional[str] = None
    """The server's name of the rule; absent if it gives none."""
    source: Optional[DiagnosticSource] = None
    """The analyzer that reports it; absent for the language server."""

    @classmethod
    def from_json(cls, value: Json) -> DiagnosticFingerprint:
        """Reads it from its JSON form."""
        return cls(
            message=value["message"],
            symbol=value["symbol"],
            severity=value["severity"],
            count=value["count"],
            rule=value.get("rule"),
            source=value.get("source"),
        )


@dataclass(frozen=True)
class FileDiagnostics:
    """A file with its diagnostics."""

    uri: str
    """The file."""
    counts: Counts
    """The number of diagnostics by severity."""
    fingerprints: List[DiagnosticFingerprint]
    """The fingerprints of the diagnostics, without hints."""

    @classmethod
    def from_json(cls, value: Json) -> FileDiagnostics:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            counts=Counts.from_json(value["counts"]),
            fingerprints=[DiagnosticFingerprint.from_json(item) for item in value["fingerprints"]],
        )


@dataclass(frozen=True)
class OutstandingDiagnostic:
    """A diagnostic that disappeared without being repaired."""

    uri: str
    """The file."""
    symbol: str
    """The dotted name of the definition that enclosed it; empty at module level."""
    severity: Severity
    """The severity."""
    reason: OutstandingReason
    """Why the diagnostic disappeared."""
    rule: Optional[str] = None
    """The source's name of the rule; absent if it gives none."""
    source: Optional[DiagnosticSource] = None
    """The analyzer that reported it; absent for the language server."""

    @classmethod
    def from_json(cls, value: Json) -> OutstandingDiagnostic:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            symbol=value["symbol"],
            severity=value["severity"],
            reason=value["reason"],
            rule=value.get("rule"),
            source=value.get("source"),
        )


@dataclass(frozen=True)
class RewardScope:
    """Files with their diagnostics as fingerprints."""

    files: List[FileDiagnostics]
    """Files with diagnostics, sorted by path."""
    clean: List[str]
    """Files without diagnostics, sorted by path."""
    outstanding: List[OutstandingDiagnostic] = field(default_factory=list)
    """Guarded formula: diagnostics that disappeared without being repaired, and still count. Absent when empty."""

    @classmethod
    def from_json(cls, value: Json) -> RewardScope:
        """Reads it from its JSON form."""
        return cls(
            files=[FileDiagnostics.from_json(item) for item in value["files"]],
            clean=list(value["clean"]),
            outstanding=[OutstandingDiagnostic.from_json(item) for item in value.get("outstanding", ())],
        )


@dataclass(frozen=True)
class SourceCount:
    """The part of one source in the number of diagnostics."""

    source: DiagnosticSource
    """The source."""
    weight: float
    """Its weight."""
    D: float
    """Its diagnostics, as the formula counts them."""

    @classmethod
    def from_json(cls, value: Json) -> SourceCount:
        """Reads it from its JSON form."""
        return cls(
            source=value["source"],
            weight=value["weight"],
            D=value["D"],
        )


@dataclass(frozen=True)
class RewardState:
    """The state that a step leads to."""

    D: Optional[float]
    """The diagnostics in the scope: their number, or their weight under the guarded formula; `null` when they were not
    measured.
    """
    S: float
    """The share of safety checks that passed, from 0 to 1. A step that checks no edit keeps the value of the step
    before it; 0 when there is none.
    """
    A: float
    """The confidence of the best candidate of the selector, from 0 to 1; 0 when there is no candidate. A step without a
    selector keeps the value of the step before it; 0 when there is none.
    """
    E: Optional[float]
    """1 if the caller made an error, else 0; `null` when the request failed for another reason."""
    scope: Optional[RewardScope]
    """The files whose diagnostics were measured; `null` when none were."""
    sources: Optional[List[SourceCount]] = None
    """The part of each source in `D`; absent when the language server is the only one."""

    @classmethod
    def from_json(cls, value: Json) -> RewardState:
        """Reads it from its JSON form."""
        return cls(
            D=value["D"],
            S=value["S"],
            A=value["A"],
            E=value["E"],
            scope=None if value["scope"] is None else RewardScope.from_json(value["scope"]),
            sources=[SourceCount.from_json(item) for item in value["sources"]] if value.get("sources") is not None else None,
        )


@dataclass(frozen=True)
class Weights:
    """The weights of a formula; none is negative."""

    w_d: float
    """The weight of a diagnostic."""
    w_s: float
    """The weight of safety."""
    w_a: float
    """The weight of confidence."""
    w_e: float
    """The weight of an error of the caller."""
    gamma: float
    """The discount factor."""

    @classmethod
    def from_json(cls, value: Json) -> Weights:
        """Reads it from its JSON form."""
        return cls(
            w_d=value["wD"],
            w_s=value["wS"],
            w_a=value["wA"],
            w_e=value["wE"],
            gamma=value["gamma"],
        )


@dataclass(frozen=True)
class PrWeights:
    """The weights of `pr-v1`; none is negative."""

    alpha: float
    """The weight of a diagnostic."""
    beta: float
    """The weight of safety."""
    gamma: float
    """The weight of ambiguity."""

    @classmethod
    def from_json(cls, value: Json) -> PrWeights:
        """Reads it from its JSON form."""
        return cls(
            alpha=value["alpha"],
            beta=value["beta"],
            gamma=value["gamma"],
        )


def _read_formula_weights(value: Any) -> FormulaWeights:
    if ["gamma", "wA", "wD", "wE", "wS"] == sorted(set(value) & {"gamma", "wA", "wD", "wE", "wS"}):
        return Weights.from_json(value)
    return PrWeights.from_json(value)


@dataclass(frozen=True)
class Integrity:
    """Properties of an edit that could be mistaken for a repair, with counts. A count of 0 is absent."""

    annotations_removed: Optional[int] = None
    """The number of annotations that were removed or became less specific, and of classes that lost a base class."""
    any_casts_added: Optional[int] = None
    """The number of uses of `Any`, casts and type guards added."""
    bodies_stubbed: Optional[int] = None
    """The number of functions that lost their body, and of removed spans of code that had a diagnostic."""
    config_changed: Optional[int] = None
    """The number of changed configuration files of the server."""
    exec_added: Optional[int] = None
    """The number of uses added of code or names given as strings: `exec`, `getattr` and similar."""
    files_removed: Optional[int] = None
    """The number of Python files that were removed or are no longer checked, and whose definitions are in no other
    file.
    """
    parse_errors: Optional[int] = None
    """The number of files that can no longer be parsed as Python."""
    stubs_added: Optional[int] = None
    """The number of stub files added, and of functions and declarations added without content."""
    suppressions_added: Optional[int] = None
    """The number of comments and decorators added that suppress diagnostics."""
    symbols_removed: Optional[int] = None
    """The number of functions and classes that were removed and are in no other place."""
    tests_touched: Optional[int] = None
    """The number of edited test files."""
    types_erased: Optional[int] = None
    """The number of expressions whose types the checker lost: of new code, or where a diagnostic was."""
    unreachable_added: Optional[int] = None
    """The number of spans of code that became unreachable."""

    @classmethod
    def from_json(cls, value: Json) -> Integrity:
        """Reads it from its JSON form."""
        return cls(
            annotations_removed=value.get("annotations_removed"),
            any_casts_added=value.get("any_casts_added"),
            bodies_stubbed=value.get("bodies_stubbed"),
            config_changed=value.get("config_changed"),
            exec_added=value.get("exec_added"),
            files_removed=value.get("files_removed"),
            parse_errors=value.get("parse_errors"),
            stubs_added=value.get("stubs_added"),
            suppressions_added=value.get("suppressions_added"),
            symbols_removed=value.get("symbols_removed"),
            tests_touched=value.get("tests_touched"),
            types_erased=value.get("types_erased"),
            unreachable_added=value.get("unreachable_added"),
        )


@dataclass(frozen=True)
class EarlierDiagnostics:
    """The diagnostics of an earlier state, as the difference to a later one. Files that are not listed are the same."""

    files: List[FileDiagnostics]
    """Files whose diagnostics were different, with the earlier ones, sorted by path."""
    absent: List[str] = field(default_factory=list)
    """Files that are only in the later state, sorted by path. Absent when empty."""
    clean: List[str] = field(default_factory=list)
    """Files that had no diagnostics and have some later, or are not in the later state, sorted by path. Absent when
    empty.
    """
    outstanding: List[OutstandingDiagnostic] = field(default_factory=list)
    """Guarded formula: diagnostics that had disappeared without being repaired. Absent when empty."""

    @classmethod
    def from_json(cls, value: Json) -> EarlierDiagnostics:
        """Reads it from its JSON form."""
        return cls(
            files=[FileDiagnostics.from_json(item) for item in value["files"]],
            absent=list(value.get("absent", ())),
            clean=list(value.get("clean", ())),
            outstanding=[OutstandingDiagnostic.from_json(item) for item in value.get("outstanding", ())],
        )


@dataclass(frozen=True)
class Supplement:
    """Diagnostics that were measured additionally so that two bundles can be compared over the same files."""

    previous: RewardScope
    """In the state that the previous bundle leads to."""
    current: RewardScope
    """In the state that this bundle leads to."""

    @classmethod
    def from_json(cls, value: Json) -> Supplement:
        """Reads it from its JSON form."""
        return cls(
            previous=RewardScope.from_json(value["previous"]),
            current=RewardScope.from_json(value["current"]),
        )


@dataclass(frozen=True)
class ProcessReward:
    """The reward of one step."""

    version: Preset
    """The formula."""
    previous_bundle_id: Optional[str]
    """The bundle that the step starts from; `null` when it starts from the state before this bundle's own edit."""
    r: Optional[float]
    """The reward; `null` when it cannot be computed."""
    components: Components
    """The components that `r` is the weighted sum of."""
    state: RewardState
    """The state that the step leads to."""
    visible: bool
    """Whether the checker reports anything in these files, before or after. If not, a reward of 0 carries no
    information.
    """
    weights: FormulaWeights
    """The weights of the formula."""
    source: RewardSource
    """Where the diagnostics come from."""
    integrity: Integrity
    """Properties of the edit that could be mistaken for a repair, with counts; empty when nothing is edited."""
    explanation: str
    """The reward explained in one line."""
    before: Optional[EarlierDiagnostics] = None
    """The diagnostics before this bundle's own edit, as the difference to `state.scope`; absent when nothing is edited.
    """
    digest: Optional[str] = None
    """The SHA-256 of the RFC 8785 form of `[bundleId, this object without digest]`. A reward that does not match is not
    used. Absent in bundles of format 1.5 and before.
    """
    reason: Optional[str] = None
    """Why `r` is `null`; absent otherwise."""
    supplement: Optional[Supplement] = None
    """Diagnostics that were measured additionally for this step, in files that only one of the two bundles covers;
    absent when none were.
    """

    @classmethod
    def from_json(cls, value: Json) -> ProcessReward:
        """Reads it from its JSON form."""
        return cls(
            version=value["version"],
            previous_bundle_id=value["previousBundleId"],
            r=value["r"],
            components=_read_components(value["components"]),
            state=RewardState.from_json(value["state"]),
            visible=value["visible"],
            weights=_read_formula_weights(value["weights"]),
            source=value["source"],
            integrity=Integrity.from_json(value["integrity"]),
            explanation=value["explanation"],
            before=EarlierDiagnostics.from_json(value["before"]) if value.get("before") is not None else None,
            digest=value.get("digest"),
            reason=value.get("reason"),
            supplement=Supplement.from_json(value["supplement"]) if value.get("supplement") is not None else None,
        )


@dataclass(frozen=True)
class Tool:
    """The language server, as reported by the server itself."""

    name: ServerKind
    """The kind of server."""
    version: str
    """The server's version."""

    @classmethod
    def from_json(cls, value: Json) -> Tool:
        """Reads it from its JSON form."""
        return cls(
            name=value["name"],
            version=value["version"],
        )


@dataclass(frozen=True)
class Lanser:
    """This program."""

    version: str
    """The program's version."""

    @classmethod
    def from_json(cls, value: Json) -> Lanser:
        """Reads it from its JSON form."""
        return cls(
            version=value["version"],
        )


@dataclass(frozen=True)
class Python:
    """The Python interpreter."""

    version: str
    """The version, as in `3.13.1`."""
    exe: str
    """The interpreter's path relative to its environment, as in `env://bin/python3`."""
    venv: bool
    """Whether it belongs to a virtual environment."""

    @classmethod
    def from_json(cls, value: Json) -> Python:
        """Reads it from its JSON form."""
        return cls(
            version=value["version"],
            exe=value["exe"],
            venv=value["venv"],
        )


@dataclass(frozen=True)
class WorkspaceState:
    """The content of the workspace."""

    digest: str
    """The digest of the path and content of every Python file, and of the identity of the Python environment."""

    @classmethod
    def from_json(cls, value: Json) -> WorkspaceState:
        """Reads it from its JSON form."""
        return cls(
            digest=value["digest"],
        )


@dataclass(frozen=True)
class OtherTool:
    """Another language server that was asked the same."""

    name: ServerKind
    """The kind of server."""
    version: str
    """The server's version."""
    config_digest: str
    """The digest of every configuration file and setting that changes this server's answers."""

    @classmethod
    def from_json(cls, value: Json) -> OtherTool:
        """Reads it from its JSON form."""
        return cls(
            name=value["name"],
            version=value["version"],
            config_digest=value["configDigest"],
        )


@dataclass(frozen=True)
class Environment:
    """The environment that an answer was computed with. It contains no absolute path and no name of the machine."""

    tool: Optional[Tool]
    """The language server; `null` when none was used."""
    lanser: Lanser
    """This program."""
    position_encoding: str
    """The unit of columns in this bundle: `utf-8`, `utf-16` or `utf-32`."""
    python: Optional[Python]
    """The Python interpreter that the server was configured with; `null` if none was found."""
    config_digest: str
    """The digest of every configuration file and setting that changes the server's answers."""
    platform: str
    """Operating system and architecture, as in `linux-x86_64`."""
    workspace: WorkspaceState
    """The content of the workspace."""
    other_tool: Optional[OtherTool] = None
    """The other server, with `agree`; absent when none was used."""

    @classmethod
    def from_json(cls, value: Json) -> Environment:
        """Reads it from its JSON form."""
        return cls(
            tool=None if value["tool"] is None else Tool.from_json(value["tool"]),
            lanser=Lanser.from_json(value["lanser"]),
            position_encoding=value["positionEncoding"],
            python=None if value["python"] is None else Python.from_json(value["python"]),
            config_digest=value["configDigest"],
            platform=value["platform"],
            workspace=WorkspaceState.from_json(value["workspace"]),
            other_tool=OtherTool.from_json(value["otherTool"]) if value.get("otherTool") is not None else None,
        )


@dataclass(frozen=True)
class SuggestionsErrorData:
    """Targets or titles similar to the one that was not found."""

    kind: Literal["suggestions"]
    selectors: List[str]
    """The suggestions, most similar first: selectors, or titles of code actions."""

    @classmethod
    def from_json(cls, value: Json) -> SuggestionsErrorData:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            selectors=list(value["selectors"]),
        )


@dataclass(frozen=True)
class SyntaxErrorData:
    """The part of a text that cannot be parsed."""

    kind: Literal["syntax"]
    text: str
    """The text."""
    span: Tuple[int, int]
    """The byte span in `text` that cannot be parsed, `[start, end]`."""
    expected: str
    """What was expected there."""

    @classmethod
    def from_json(cls, value: Json) -> SyntaxErrorData:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            text=value["text"],
            span=(value["span"][0], value["span"][1]),
            expected=value["expected"],
        )


@dataclass(frozen=True)
class StderrErrorData:
    """The last lines of the server's standard error."""

    kind: Literal["stderr"]
    lines: List[str]
    """The lines."""

    @classmethod
    def from_json(cls, value: Json) -> StderrErrorData:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            lines=list(value["lines"]),
        )


@dataclass(frozen=True)
class TriedErrorData:
    """Where a server was looked for."""

    kind: Literal["tried"]
    attempts: List[str]
    """One line for each attempt."""

    @classmethod
    def from_json(cls, value: Json) -> TriedErrorData:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            attempts=list(value["attempts"]),
        )


@dataclass(frozen=True)
class ChecksErrorData:
    """The checks that prevented an edit."""

    kind: Literal["checks"]
    failed: List[CheckName]
    """The names of the checks."""

    @classmethod
    def from_json(cls, value: Json) -> ChecksErrorData:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            failed=list(value["failed"]),
        )


@dataclass(frozen=True)
class EditConflict:
    """A conflict between an edit and the content of a file."""

    path: str
    """The file."""
    line: int
    """The first conflicting line, 1-based."""
    ours: str
    """The text in the file."""
    theirs: str
    """The text that the edit would write."""
    base: str
    """The text that the edit was made from."""
    at: Optional[int] = None
    """The first line that differs from `base`, 1-based; absent when the edit is no diff, or fits in several places."""
    expected: Optional[str] = None
    """What the diff expects in that line; absent with `at`."""
    found: Optional[str] = None
    """What the file has in that line; absent with `at`."""

    @classmethod
    def from_json(cls, value: Json) -> EditConflict:
        """Reads it from its JSON form."""
        return cls(
            path=value["path"],
            line=value["line"],
            ours=value["ours"],
            theirs=value["theirs"],
            base=value["base"],
            at=value.get("at"),
            expected=value.get("expected"),
            found=value.get("found"),
        )


@dataclass(frozen=True)
class ConflictsErrorData:
    """Where an edit conflicts with the content of the files."""

    kind: Literal["conflicts"]
    hunks: List[EditConflict]
    """The conflicts."""

    @classmethod
    def from_json(cls, value: Json) -> ConflictsErrorData:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            hunks=[EditConflict.from_json(item) for item in value["hunks"]],
        )


@dataclass(frozen=True)
class FilesErrorData:
    """The files that prevent the request."""

    kind: Literal["files"]
    paths: List[str]
    """Their paths."""

    @classmethod
    def from_json(cls, value: Json) -> FilesErrorData:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            paths=list(value["paths"]),
        )


@dataclass(frozen=True)
class MismatchErrorData:
    """Where a replay differs from the recording."""

    kind: Literal["mismatch"]
    op: int
    """The operation, counted from 1."""
    event: Optional[int]
    """The event in the operation, counted from 1; `null` if no event can be identified."""
    field: Optional[str]
    """The member of the event, as a JSONPath; `null` for the whole event."""

    @classmethod
    def from_json(cls, value: Json) -> MismatchErrorData:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            op=value["op"],
            event=value["event"],
            field=value["field"],
        )


@dataclass(frozen=True)
class ChangedErrorData:
    """A file that changed."""

    kind: Literal["changed"]
    path: str
    """Its path."""

    @classmethod
    def from_json(cls, value: Json) -> ChangedErrorData:
        """Reads it from its JSON form."""
        return cls(
            kind=value["kind"],
            path=value["path"],
        )


def _read_error_data(value: Any) -> ErrorData:
    if value["kind"] == "suggestions":
        return SuggestionsErrorData.from_json(value)
    if value["kind"] == "syntax":
        return SyntaxErrorData.from_json(value)
    if value["kind"] == "stderr":
        return StderrErrorData.from_json(value)
    if value["kind"] == "tried":
        return TriedErrorData.from_json(value)
    if value["kind"] == "checks":
        return ChecksErrorData.from_json(value)
    if value["kind"] == "conflicts":
        return ConflictsErrorData.from_json(value)
    if value["kind"] == "files":
        return FilesErrorData.from_json(value)
    if value["kind"] == "mismatch":
        return MismatchErrorData.from_json(value)
    return ChangedErrorData.from_json(value)


@dataclass(frozen=True)
class ErrorBody:
    """Why a request failed."""

    code: int
    """The exit code."""
    symbol: ErrorSymbol
    """The kind of failure."""
    message: str
    """What failed, and on what."""
    retryable: Retryable
    """Whether a retry can succeed."""
    hint: Optional[str]
    """What to do next; `null` if there is no advice."""
    data: Optional[ErrorData]
    """Details for programs; `null` if there are none."""

    @classmethod
    def from_json(cls, value: Json) -> ErrorBody:
        """Reads it from its JSON form."""
        return cls(
            code=value["code"],
            symbol=value["symbol"],
            message=value["message"],
            retryable=value["retryable"],
            hint=value["hint"],
            data=None if value["data"] is None else _read_error_data(value["data"]),
        )


@dataclass(frozen=True)
class Hashing:
    """How `bundleId` is computed."""

    algo: str
    """`sha256-jcs-v1`: SHA-256 over RFC 8785 canonical JSON."""

    @classmethod
    def from_json(cls, value: Json) -> Hashing:
        """Reads it from its JSON form."""
        return cls(
            algo=value["algo"],
        )


@dataclass(frozen=True)
class RelocationRules:
    """Weights and thresholds of relocation."""

    weights: Features
    """The weight of each feature."""
    tau: float
    """The minimum score of an answer (τ)."""
    delta: float
    """The minimum distance to the score of the next candidate (δ)."""
    floor: float
    """The minimum score of a candidate."""
    k: int
    """The number of tokens in a k-gram of an anchor."""
    w: int
    """The winnowing window: one of `w` consecutive k-grams is kept."""
    normalization: str
    """How a text is normalized before it is compared."""

    @classmethod
    def from_json(cls, value: Json) -> RelocationRules:
        """Reads it from its JSON form."""
        return cls(
            weights=Features.from_json(value["weights"]),
            tau=value["tau"],
            delta=value["delta"],
            floor=value["floor"],
            k=value["k"],
            w=value["w"],
            normalization=value["normalization"],
        )


@dataclass(frozen=True)
class Limits:
    """Paging of a list of facts."""

    cap: int
    """The maximum number of items in one bundle of this request."""
    total: int
    """The number of items on all pages."""
    truncated: bool
    """Whether there are more items after this page."""
    cursor: Optional[str]
    """The value of `--cursor` for the next page; `null` on the last page."""

    @classmethod
    def from_json(cls, value: Json) -> Limits:
        """Reads it from its JSON form."""
        return cls(
            cap=value["cap"],
            total=value["total"],
            truncated=value["truncated"],
            cursor=value["cursor"],
        )


@dataclass(frozen=True)
class DualCoordinates:
    """One location in both coordinate systems."""

    uri: str
    """The file."""
    server: List[int]
    """`[start line, start column, end line, end column]`, 0-based, columns in `server_unit`."""
    server_unit: ColumnUnit
    """The unit of columns that the server uses."""
    io: List[int]
    """`[start line, start column, end line, end column]`, 1-based, columns in `io_unit`."""
    io_unit: ColumnUnit
    """The unit of columns that `--index-io` sets."""

    @classmethod
    def from_json(cls, value: Json) -> DualCoordinates:
        """Reads it from its JSON form."""
        return cls(
            uri=value["uri"],
            server=list(value["server"]),
            server_unit=value["server_unit"],
            io=list(value["io"]),
            io_unit=value["io_unit"],
        )


@dataclass(frozen=True)
class Volatile:
    """Data that differs between runs. Not hashed."""

    absolute: Dict[str, str] = field(default_factory=dict)
    """With `--absolute`: the absolute path of every `uri` in this bundle. Absent when empty."""
    coordinates: List[DualCoordinates] = field(default_factory=list)
    """With `-v`: every location in the server's and in the caller's coordinates. Absent when empty."""
    elapsed_ms: Optional[int] = None
    """How long the answer took, in milliseconds; absent when it was not measured."""
    id: Optional[RequestId] = None
    """The `id` of the batch request; absent outside of a batch, or when the request has none."""
    line: Optional[int] = None
    """The line of the batch input that this bundle answers, counted from 1; absent outside of a batch."""
    pid: Optional[int] = None
    """The process ID of the process that computed the answer; absent when it is not known."""
    root: Optional[str] = None
    """The absolute path of the workspace; absent when no workspace was found."""
    served_from: Optional[ServedFrom] = None
    """Where the answer came from; absent when nothing was computed."""
    trace_op: Optional[int] = None
    """The number of the operation in the trace; absent when none is written."""

    @classmethod
    def from_json(cls, value: Json) -> Volatile:
        """Reads it from its JSON form."""
        return cls(
            absolute=dict(value.get("absolute", {})),
            coordinates=[DualCoordinates.from_json(item) for item in value.get("coordinates", ())],
            elapsed_ms=value.get("elapsed_ms"),
            id=value.get("id"),
            line=value.get("line"),
            pid=value.get("pid"),
            root=value.get("root"),
            served_from=value.get("served_from"),
            trace_op=value.get("trace_op"),
        )


@dataclass(frozen=True)
class Meta:
    """Data about the bundle itself."""

    exit_code: int
    """The exit code of the program."""
    sorting_keys: List[str]
    """The keys that lists of locations are sorted by; ties are broken by the canonical JSON form of the item."""
    hashing: Hashing
    """How `bundleId` is computed."""
    relocation: Optional[RelocationRules]
    """Weights and thresholds of relocation; `null` when no candidates were scored."""
    limits: Optional[Limits]
    """Paging of the list in `facts`; `null` when `facts` has no list."""
    volatile: Volatile
    """Data that differs between runs. Not hashed."""
    measured: Optional[str] = None
    """The digest of the diagnostics that the reward is computed from: SHA-256 of the RFC 8785 form of `[state.scope,
    before, integrity]` of `processReward`. Absent when none were measured.
    """

    @classmethod
    def from_json(cls, value: Json) -> Meta:
        """Reads it from its JSON form."""
        return cls(
            exit_code=value["exit_code"],
            sorting_keys=list(value["sorting_keys"]),
            hashing=Hashing.from_json(value["hashing"]),
            relocation=None if value["relocation"] is None else RelocationRules.from_json(value["relocation"]),
            limits=None if value["limits"] is None else Limits.from_json(value["limits"]),
            volatile=Volatile.from_json(value["volatile"]),
            measured=value.get("measured"),
        )


@dataclass(frozen=True)
class Bundle:
    """The answer to one request. `bundleId` is the SHA-256 of the RFC 8785 form of an object with `request`,
    `resolution`, `facts`, `edits`, `environment`, `capabilities`, `error`, `warnings` (unless empty) and `meta`
    without `volatile`.
    """

    version: str
    """The version of the bundle format."""
    bundle_id: str
    """The digest of the hashed members; see `meta.hashing`."""
    status: Status
    """Whether the answer is whole, partial, or an error."""
    request: Optional[Request]
    """The request, normalized; `null` when it could not be parsed."""
    resolution: Optional[Resolution]
    """What the selector resolved to; `null` for a request without a selector, or when resolution was not reached."""
    facts: Optional[Facts]
    """The answer; `null` when nothing is known, as with most errors."""
    edits: Optional[Edits]
    """The edit that was planned or written; `null` for read-only requests."""
    process_reward: Optional[ProcessReward]
    """The reward of the step that this bundle is; `null` when it was not computed. Not hashed."""
    environment: Optional[Environment]
    """The server, interpreter and workspace that the answer was computed with; `null` when nothing was computed."""
    capabilities: Dict[str, bool]
    """The server capabilities that the request depends on, and whether the server has each."""
    error: Optional[ErrorBody]
    """Why the request failed; `null` when it succeeded."""
    meta: Meta
    """Data about the bundle itself."""
    warnings: List[str] = field(default_factory=list)
    """Conditions that can make the answer unexpected: an unreadable configuration, a virtual environment that is not
    used, imports that cannot be resolved. Absent when empty.
    """

    @classmethod
    def from_json(cls, value: Json) -> Bundle:
        """Reads it from its JSON form."""
        return cls(
            version=value["version"],
            bundle_id=value["bundleId"],
            status=value["status"],
            request=None if value["request"] is None else Request.from_json(value["request"]),
            resolution=None if value["resolution"] is None else Resolution.from_json(value["resolution"]),
            facts=None if value["facts"] is None else Facts.from_json(value["facts"]),
            edits=None if value["edits"] is None else Edits.from_json(value["edits"]),
            process_reward=None if value["processReward"] is None else ProcessReward.from_json(value["processReward"]),
            environment=None if value["environment"] is None else Environment.from_json(value["environment"]),
            capabilities=dict(value["capabilities"]),
            error=None if value["error"] is None else ErrorBody.from_json(value["error"]),
            meta=Meta.from_json(value["meta"]),
            warnings=list(value.get("warnings", ())),
        )


class GuardOptions(TypedDict, total=False):
    """What an edit may touch, and which checks are overridden. Every member is absent when it has its default, the
    strictest value.
    """

    allow: List[str]
    """Globs of the only files that may be edited. Default: all files."""
    deny: List[str]
    """Globs of files that may not be edited. Default: none."""
    dirty: DirtyPolicy
    """Which uncommitted changes are accepted. Default: `none`."""
    hard_links: bool
    """Whether a file with several hard links may be replaced; the other names keep the old content. Default: false."""
    outside: bool
    """Whether files outside of the workspace may be edited, through links. Default: false."""
    overrides: List[CheckName]
    """Names of checks that the caller overrides: the edit is applied even if they fail. Sorted. Default: none."""
    strategy: Strategy
    """How an edit is applied to files that changed since it was planned. Default: `rename`."""
    workspace_allow: List[str]
    """Globs of the only files that the configuration of the workspace permits to be edited, in addition to `allow`.
    Default: all files.
    """


PositionSpec = Union[CursorPositionSpec, RangePositionSpec, LinePositionSpec, SymbolPositionSpec, NamePositionSpec, AstPositionSpec, AnchorPositionSpec, SymidPositionSpec]
"""A selector."""

FileOperation = Union[CreateFileOperation, RenameFileOperation, DeleteFileOperation]
"""An operation on a file."""

DocumentChange = Union[FileOperation, TextDocumentEdit]
"""Text edits of one document, or an operation on a file."""

Components = Union[CsfComponents, PrComponents]
"""The components that a reward is the weighted sum of, under the names of their formula. Each is `null` when it is not
known.
"""

FormulaWeights = Union[Weights, PrWeights]
"""The weights under the names of their formula."""

ErrorData = Union[SuggestionsErrorData, SyntaxErrorData, StderrErrorData, TriedErrorData, ChecksErrorData, ConflictsErrorData, FilesErrorData, MismatchErrorData, ChangedErrorData]
"""Details of an error for programs."""

RequestId = Union[int, str]
"""The caller's identifier of a request."""
