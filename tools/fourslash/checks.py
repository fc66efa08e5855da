"""What the cases verify, as requests to a language server, and how its answer differs from what they expect."""

import pathlib
import re
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cases import Call, Case, Layout, Marker, Range, located
from client import Client, ServerError

# A check and how the answer differs; `None` for an answer as expected.
Checked = tuple[str, str | None]

# The categories of Pyright's tests, by the severity of the protocol.
CATEGORIES = {1: "error", 2: "warning", 3: "information", 4: "unused"}

# What is behind a comma, a parenthesis or a line end differs with the width that a server shows.
SPACES = [(r"\s+", " "), (r"([(\[]) ", r"\1"), (r",? ([)\]])", r"\1")]

# As `Hover.comparable` says.
FORMS = [
    (r"'", '"'),
    (r"^\((variable|property|parameter|constant|field|type alias|type)\) [\w.]+(: | = )", ""),
    (r"^\(\w[\w ]*\) ?", ""),
    (r"^<(?:class|module) \"(?:[\w.]*\.)?([^\".]*)\">$", r"\1"),
    (r"\bbound method [^ (]*?(\w+)\(", r"def \1("),
    (r"\(self: \w+", "(self"),
    (r": \.\.\.(?= |$)", ""),
]

# How long a text of a difference is at most.
MAX_TEXT = 160


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."


def difference(expected: Iterable[str], actual: Iterable[str], unresolved: Iterable[str] = ()) -> str | None:
    """How two sets differ. What lanser lists as unresolved is missing, but not silently."""
    wanted, found, listed = set(expected), set(actual), set(unresolved)
    parts = {"missing": wanted - found - listed, "unresolved": (wanted - found) & listed, "extra": found - wanted}
    texts = [f"{name} {', '.join(sorted(places))}" for name, places in parts.items() if places]
    return "; ".join(texts) or None


class Hover:
    """The parts of a hover text: the signature, without the kind of symbol that Pyright puts before it, and the documentation."""

    def __init__(self, text: str, is_markdown: bool):
        if is_markdown:
            code = re.match(r"```\w*\n(.*?)\n```\s*", text, re.DOTALL)
            self.signature, rest = (code[1], text[code.end() :]) if code else ("", text)
        else:
            self.signature, _, rest = text.partition("\n\n")
        for pattern, by in SPACES:
            self.signature = re.sub(pattern, by, self.signature.strip())
        rest = re.sub(r"\\(?=[_*<>`#&])", "", rest.replace("&nbsp;", " "))
        self.documentation = " ".join(word for word in rest.split() if word != "---")

    def comparable(self) -> str:
        """The signature without what only the forms of Pyright and ty differ in: the kind of the symbol, the name of a variable or
        property, the class of a bound method, the type of `self`, the bodies of overloads, and quotes."""
        text = self.signature
        for pattern, by in FORMS:
            text = re.sub(pattern, by, text)
        return text


class Checker:
    """Checks one case with a running server."""

    def __init__(self, case: Case, layout: Layout, client: Client, is_pyright: bool):
        self.case, self.layout, self.client, self.is_pyright = case, layout, client, is_pyright
        self.opened: set[str] = set()

    def open(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.opened and name.endswith((".py", ".pyi")):
                self.opened.add(name)
                path = self.layout.path(name)
                document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": path.read_text(encoding="utf-8")}
                self.client.notify("textDocument/didOpen", {"textDocument": document})

    def shown(self, uri: str) -> str:
        return self.layout.shown(pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(uri).path)))

    def place(self, file: str, range: Range) -> str:
        start, end = range["start"], range["end"]
        last = f"{end['line'] + 1}:" if start["line"] != end["line"] else ""
        return f"{file}:{start['line'] + 1}:{start['character'] + 1}-{last}{end['character'] + 1}"

    def expected_place(self, name: str, range: Range) -> str:
        return self.place(self.layout.shown(self.layout.path(name)), range)

    def places(self, locations: list[dict[str, Any]] | dict[str, Any] | None) -> list[str]:
        found = [locations] if isinstance(locations, dict) else locations or []
        return [self.place(self.shown(one["uri"]), one["range"]) for one in found]

    def at(self, marker: Marker) -> dict[str, Any]:
        uri = self.layout.path(located(self.case, marker.file)).as_uri()
        return {"textDocument": {"uri": uri}, "position": marker.at}

    def anonymous(self, message: str) -> str:
        """The first line of a message of the server, without the folders of this run."""
        message = message.partition("\n")[0]
        for folder, name in ((self.layout.workspace, "WORKSPACE"), (self.layout.environment, "ENVIRONMENT")):
            message = message.replace(str(folder), name)
        return shortened(message)

    def check(self, call: Call) -> Iterator[Checked]:
        """Makes the requests of a verification."""
        self.open(call.open)
        method = CHECKS[call.method]
        if method is diagnostics:
            yield from diagnostics(self, call)
            return
        markers, expected = self.case.markers, call.arguments[1 if call.method in AFTER_A_MODE else 0]
        for name, wanted in expected.items():
            marker = next((marker for marker in markers if marker.name == name), None)
            if marker is None:
                # Pyright's tests pass over it, too.
                continue
            try:
                yield name, method(self, call, marker, wanted)
            except ServerError as error:
                yield name, f"error: {self.anonymous(str(error))}"


def nothing_or_error(expected: list[Any], error: ServerError) -> None:
    """An error is an answer where nothing is expected."""
    if expected:
        raise error


def definitions(checker: Checker, call: Call, marker: Marker, wanted: Any) -> str | None:
    """`preferSource` is a definition of the protocol, `preferStubs` a declaration; without a preference, both."""
    expected = [checker.expected_place(one["path"], one["range"]) for one in wanted["definitions"]]
    methods = {"preferSource": ["definition"], "preferStubs": ["declaration"]}
    found: list[str] = []
    for method in methods.get(call.arguments[1] if len(call.arguments) > 1 else "", ["definition", "declaration"]):
        try:
            found += checker.places(checker.client.request(f"textDocument/{method}", checker.at(marker)))
        except ServerError as error:
            nothing_or_error(expected, error)
    return difference(expected, found)


def type_definitions(checker: Checker, call: Call, marker: Marker, wanted: Any) -> str | None:
    expected = [checker.expected_place(one["path"], one["range"]) for one in wanted["definitions"]]
    return difference(expected, checker.places(checker.client.request("textDocument/typeDefinition", checker.at(marker))))


def references(checker: Checker, call: Call, marker: Marker, wanted: Any) -> str | None:
    expected = [checker.expected_place(one["path"], one["range"]) for one in wanted["references"]]
    params = {**checker.at(marker), "context": {"includeDeclaration": True}}
    found: list[str] = []
    try:
        found = checker.places(checker.client.request("textDocument/references", params))
    except ServerError as error:
        nothing_or_error(expected, error)
    unresolved: list[str] = []
    prefix = ""
    for note in checker.client.notifications:
        if note["method"] == "$/lanser/completeness":
            prefix = f"{note['params']['status']}: "
            unresolved += checker.places(note["params"]["unresolved"])
    differs = difference(expected, found, unresolved)
    return differs and prefix + differs


def hover(checker: Checker, call: Call, marker: Marker, wanted: str | None) -> str | None:
    range = checker.case.range_of(marker)
    assert range is not None
    answer = checker.client.request("textDocument/hover", {**checker.at(marker), "position": range["start"]})
    if wanted is None or answer is None:
        return None if wanted is answer else "nothing" if answer is None else f"extra {shortened(str(answer))}"
    expected = Hover(wanted, call.arguments[0] == "markdown")
    actual = Hover(answer["contents"]["value"], answer["contents"]["kind"] == "markdown")
    parts = []
    one, other = expected.signature, actual.signature
    if not checker.is_pyright:
        one, other = expected.comparable(), actual.comparable()
    if one != other:
        parts.append(f"signature {shortened(other)!r} for {shortened(one)!r}")
    if expected.documentation != actual.documentation:
        parts.append(f"documentation {shortened(actual.documentation)!r} for {shortened(expected.documentation)!r}")
    if answer.get("range") not in (None, range):
        parts.append(f"range {checker.place('', answer['range'])} for {checker.place('', range)}")
    return "; ".join(parts) or None


def rename(checker: Checker, call: Call, marker: Marker, wanted: Any) -> str | None:
    def edit(place: str, text: str) -> str:
        return f"{place}={text}"

    expected = [edit(checker.expected_place(one["filePath"], one["range"]), one["replacementText"]) for one in wanted["changes"]]
    found: list[str] = []
    try:
        answer = checker.client.request("textDocument/rename", {**checker.at(marker), "newName": wanted["newName"]}) or {}
    except ServerError as error:
        nothing_or_error(expected, error)
        answer = {}
    changes = dict(answer.get("changes") or {})
    for change in answer.get("documentChanges") or []:
        if "kind" in change:
            found.append(f"{change['kind']} {checker.shown(change.get('uri') or change['oldUri'])}")
        else:
            changes[change["textDocument"]["uri"]] = change["edits"]
    for uri, edits in changes.items():
        found += [edit(checker.place(checker.shown(uri), one["range"]), one["newText"]) for one in edits]
    return difference(expected, found)


def calls(end: str, method: str) -> Callable[[Checker, Call, Marker, Any], str | None]:
    """The check of a direction of the call hierarchy. Pyright's ranges are those of the names."""

    def check(checker: Checker, call: Call, marker: Marker, wanted: Any) -> str | None:
        def shown(name: str, place: str) -> str:
            return f"{name} {place}"

        expected = [shown(one["name"], checker.expected_place(one["filePath"], one["range"])) for one in wanted["items"]]
        found = []
        for item in checker.client.request("textDocument/prepareCallHierarchy", checker.at(marker)) or []:
            for one in checker.client.request(f"callHierarchy/{method}", {"item": item}) or []:
                one = one[end]
                found.append(shown(one["name"], checker.place(checker.shown(one["uri"]), one["selectionRange"])))
        return difference(expected, found)

    return check


def code_actions(checker: Checker, call: Call, marker: Marker, wanted: Any) -> str | None:
    expected = [f"{one['kind']} {one['title']}" for one in wanted["codeActions"]]
    params = {
        "textDocument": checker.at(marker)["textDocument"],
        "range": checker.case.range_of(marker),
        "context": {"diagnostics": []},
    }
    answer = checker.client.request("textDocument/codeAction", params) or []
    found = [f"{one.get('kind')} {one['title']}" for one in answer]
    if call.arguments[0] == "included":
        found = [one for one in found if one in expected]
    return difference(expected, found)


def diagnostics(checker: Checker, call: Call) -> Iterator[Checked]:
    """One check for each file. Another server than Pyright has its own messages and severities: the places are compared."""
    expected = call.arguments[0] if call.arguments else None
    for file in checker.case.files:
        if not file.is_source:
            continue
        wanted = []
        ranges = [one for one in checker.case.ranges if one.file == file.name]
        for one in ranges:
            assert one.marker is not None
            marker = checker.case.markers[one.marker]
            data = marker.data if expected is None else expected[marker.name]
            category, message = (data or {}).get("category", ""), (data or {}).get("message")
            if category != "none" and (message or expected is None):
                wanted.append(finding(checker, one.range, category, message or ""))
        try:
            uri = checker.layout.path(file.name).as_uri()
            answer = checker.client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        except ServerError as error:
            yield file.name.lstrip("/"), f"error: {checker.anonymous(str(error))}"
            continue
        found = []
        for item in answer["items"]:
            category = CATEGORIES[item.get("severity", 1)]
            # Pyright's tests look at what is not an error or warning only where the file has ranges and one is expected.
            if category in ("error", "warning") or (category == "information" and ranges and checker.is_pyright):
                found.append(finding(checker, item["range"], category, item["message"]))
        yield file.name.lstrip("/"), difference(wanted, found)


def finding(checker: Checker, range: Range, category: str, message: str) -> str:
    place = checker.place("", range).lstrip(":")
    return f"{place} {category} {shortened(message)!r}" if checker.is_pyright else place


# Methods whose first argument is how to compare.
AFTER_A_MODE = {"verifyHover", "verifyCodeActions"}

CHECKS: dict[str, Callable[..., Any]] = {
    "verifyFindDefinitions": definitions,
    "verifyFindTypeDefinitions": type_definitions,
    "verifyFindAllReferences": references,
    "verifyHover": hover,
    "verifyRename": rename,
    "verifyShowCallHierarchyGetIncomingCalls": calls("from", "incomingCalls"),
    "verifyShowCallHierarchyGetOutgoingCalls": calls("to", "outgoingCalls"),
    "verifyCodeActions": code_actions,
    "verifyDiagnostics": diagnostics,
}
