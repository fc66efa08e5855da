"""Reads fourslash cases of Pyright, and lays them out as workspaces.

A case is a TypeScript file: comments that begin with `////` are the text of files, each after a line `// @filename: NAME`. In them,
`/*NAME*/` is a marker, `[|TEXT|]` a range, and `{| JSON |}` a marker with data. What follows verifies answers at the markers. The rules
are those of `harness/fourslash/fourSlashParser.ts` in Pyright's tests.
"""

import bisect
import json
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

# A range begins or ends, a marker, or a marker with data.
MARK = re.compile(r"\[\||\|\]|/\*([\w$]*)\*/|\{\|(.*?)\|\}", re.ASCII | re.DOTALL)

DIRECTIVE = re.compile(r"\s*@(\w+)\s*:\s*(.*?)\s*$")

OPTIONS_OF_FILES = {"filename", "library", "distlibrary", "ipythonmode", "chainedto"}

SITE_PACKAGES = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"

Position = dict[str, int]
Range = dict[str, Position]


@dataclass
class SourceFile:
    """A file of a case. Its name is absolute in the case: `/test.py`."""

    name: str
    text: str
    options: dict[str, str]

    def __post_init__(self) -> None:
        self.starts = [0] + [at.end() for at in re.finditer("\n", self.text)]

    def position(self, offset: int) -> Position:
        """An offset as a position of the protocol, in UTF-16."""
        line = bisect.bisect_right(self.starts, offset) - 1
        before = self.text[self.starts[line] : offset]
        return {"line": line, "character": len(before.encode("utf-16-le")) // 2}

    @property
    def is_library(self) -> bool:
        return self.options.get("library", "") == "true"

    @property
    def is_source(self) -> bool:
        """Whether it is code of the workspace."""
        return not self.is_library and self.name.endswith((".py", ".pyi"))


@dataclass
class Marker:
    name: str
    file: str
    at: Position
    data: dict[str, Any] | None


@dataclass
class MarkedRange:
    file: str
    text: str
    range: Range
    # The number of the marker in it.
    marker: int | None


@dataclass
class Call:
    """A verification: the name of the method, its arguments, and the files that are open by then."""

    method: str
    arguments: list[Any]
    open: list[str]


@dataclass
class Case:
    name: str
    files: list[SourceFile] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    ranges: list[MarkedRange] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    # Why the verifications could not be read.
    error: str | None = None

    def range_of(self, marker: Marker) -> Range | None:
        found = [one.range for one in self.ranges if one.marker is not None and self.markers[one.marker] is marker]
        return found[0] if found else None


def without_margin(lines: list[str]) -> list[str]:
    """Removes one leading space from each line if all have one."""
    if any(line and not line.startswith(" ") for line in lines):
        return lines
    return [line[1:] for line in lines]


def add_file(case: Case, name: str, lines: list[str], options: dict[str, str]) -> None:
    """Adds a file with its markers and ranges."""
    content = "\n".join(without_margin(lines))
    text, last = "", 0
    opened: list[tuple[int, int | None]] = []
    marks: list[tuple[int, str, dict[str, Any] | None]] = []
    ranges: list[tuple[int, int, int | None]] = []
    for found in MARK.finditer(content):
        text += content[last : found.start()]
        last = found.end()
        if found[0] == "[|":
            opened.append((len(text), None))
        elif found[0] == "|]":
            start, marker = opened.pop()
            ranges.append((start, len(text), marker))
        else:
            data = None if found[2] is None else json.loads("{" + found[2] + "}")
            marks.append((len(text), found[1] if data is None else data.get("name", ""), data))
            if opened:
                opened[-1] = (opened[-1][0], len(case.markers) + len(marks) - 1)
    text += content[last:]
    if opened:
        raise ValueError(f"{case.name}: {name}: a range has no end")
    file = SourceFile(name, text, options)
    case.files.append(file)
    case.markers += [Marker(marker, name, file.position(at), data) for at, marker, data in marks]
    for start, end, inner in sorted(ranges, key=lambda one: (one[0], -one[1])):
        place = {"start": file.position(start), "end": file.position(end)}
        case.ranges.append(MarkedRange(name, text[start:end], place, inner))


def parse(name: str, source: str) -> Case:
    """Reads the files of a case."""
    case = Case(name)
    current = f"/{name}"
    lines: list[str] | None = None
    options: dict[str, str] = {}

    def end() -> None:
        nonlocal lines, options, current
        if lines is not None:
            add_file(case, current, lines, options)
            lines, options, current = None, {}, f"/{name}"

    for line in source.split("\n"):
        line = line.removesuffix("\r")
        if line.startswith("////"):
            lines = [*(lines or []), line[4:]]
        elif line.startswith("//"):
            directive = DIRECTIVE.match(line[2:])
            key = directive[1].lower() if directive else ""
            if directive and key == "filename":
                end()
                current = "/" + directive[2].lstrip("/")
            if directive and key in OPTIONS_OF_FILES:
                options[key] = directive[2].lower() if key == "library" else directive[2]
        elif line:
            end()
    end()
    return case


def as_javascript(source: str) -> str:
    """Removes what of TypeScript the cases use: assertions that a value is not null, type arguments, and the types of a function."""
    source = re.sub(r"\)!(?=\s*[.,;)\]])", ")", source)
    source = re.sub(r"(\.\w+|new Map)<[^>]*>\(", r"\1(", source)
    return re.sub(r"function \((\w+): \w+\): [\w.\[\]]+ \{", r"function (\1) {", source)


def read(folder: pathlib.Path, node: str) -> list[Case]:
    """The cases of a folder that Pyright runs, with their verifications, which Node.js evaluates."""
    cases, inputs = [], []
    for path in sorted(folder.glob("*.fourslash.ts")):
        source = path.read_text(encoding="utf-8")
        case = parse(path.name.removesuffix(".fourslash.ts"), source)
        cases.append(case)
        inputs.append(
            {
                "source": as_javascript(source),
                "files": [file.name for file in case.files if file.is_source],
                "markers": [{"name": m.name, "fileName": located(case, m.file), "data": m.data} for m in case.markers],
                "ranges": [
                    {"fileName": located(case, r.file), "text": r.text, "range": r.range, "marker": r.marker} for r in case.ranges
                ],
            }
        )
    script = pathlib.Path(__file__).parent / "verifications.js"
    done = subprocess.run([node, str(script)], input=json.dumps(inputs), stdout=subprocess.PIPE, text=True, check=True)
    for case, found in zip(cases, json.loads(done.stdout), strict=True):
        case.error = found["error"]
        case.calls = [Call(call["method"], call["arguments"], call["open"]) for call in found["calls"]]
    return cases


def located(case: Case, name: str) -> str:
    """The name of a file as the verifications have it: a file of a library is in the environment."""
    is_library = any(file.name == name and file.is_library for file in case.files)
    return f"/lib/site-packages{name}" if is_library else name


class Layout:
    """A case on the disk: the workspace, and a virtual environment with its libraries."""

    def __init__(self, case: Case, folder: pathlib.Path):
        self.case = case
        self.workspace = folder / "workspace"
        self.environment = folder / "environment"
        self.library = self.environment / SITE_PACKAGES
        self.library.mkdir(parents=True)
        self.workspace.mkdir()
        python = pathlib.Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}"
        (self.environment / "bin").mkdir()
        (self.environment / "bin" / "python").symlink_to(python)
        version = ".".join(map(str, sys.version_info[:3]))
        (self.environment / "pyvenv.cfg").write_text(f"home = {python.parent}\nversion = {version}\n")
        for file in case.files:
            path = self.path(located(case, file.name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")

    @property
    def python(self) -> pathlib.Path:
        return self.environment / "bin" / "python"

    def path(self, name: str) -> pathlib.Path:
        """Where a file of the case is, by the name in the verifications."""
        if name.startswith("/lib/site-packages/"):
            return self.library / name.removeprefix("/lib/site-packages/")
        return self.workspace / name.lstrip("/")

    def shown(self, path: pathlib.Path) -> str:
        """A short name for a file."""
        for folder, prefix in ((self.workspace, ""), (self.library, "site-packages/")):
            if path.is_relative_to(folder):
                return prefix + path.relative_to(folder).as_posix()
        # A file of the server or of Python.
        return f".../{'/'.join(path.parts[-2:])}"
