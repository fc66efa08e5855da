"""Writes the generated files of the Python package: the types of bundles, from schemas/, and the asyncio methods.

    python3 tools/python_client/generate.py           writes python/lanser/_types.py and _async_methods.py
    python3 tools/python_client/generate.py --check   exits with 1 if they differ from what would be written
"""

from __future__ import annotations

import json
import keyword
import pathlib
import re
import sys
import textwrap
from typing import Any, Callable, Dict, List, NamedTuple, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "lanser"
WIDTH = 120

HEAD = '''"""The types of a bundle, generated from schemas/bundle.schema.json by tools/python_client/generate.py.

A member that a bundle does not have is `None`, or empty where the schema says that it is absent when empty. Members that a newer
format adds are ignored.
"""

# ruff: noqa: E501
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Literal, Mapping, NamedTuple, Optional, Tuple, TypedDict, Union

Json = Mapping[str, Any]
'''

RANGE = '''
class Range(NamedTuple):
    """{description}."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int
'''


class Kind(NamedTuple):
    """A type: its annotation, and the expression that reads it from JSON."""

    annotation: str
    read: Callable[[str], str]
    is_plain: bool

    @staticmethod
    def plain(annotation: str) -> "Kind":
        return Kind(annotation, lambda value: value, True)


PRIMITIVES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def attribute(name: str) -> str:
    """The Python name of a JSON member."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    # The components of rewards are single capital letters.
    snake = snake.lower() if len(name) > 1 else name
    return snake + "_" if keyword.iskeyword(snake) else snake


def documentation(text: str, indent: str) -> str:
    text = re.sub(r"\s+", " ", text).replace("\\", "\\\\")
    if len(indent) + len(text) + 6 <= WIDTH:
        return f'{indent}"""{text}"""\n'
    lines = textwrap.wrap(text, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return f'{indent}"""' + f"\n{indent}".join(lines) + f'\n{indent}"""\n'


def literal(values: List[str]) -> str:
    return "Literal[" + ", ".join(json.dumps(value) for value in values) + "]"


def constants(schema: Dict[str, Any]) -> Optional[List[str]]:
    """The values of an enumeration."""
    if "enum" in schema:
        return list(schema["enum"])
    variants = schema.get("oneOf", [])
    if variants and all("const" in variant for variant in variants):
        return [variant["const"] for variant in variants]
    return None


class Types:
    """The types of one schema."""

    def __init__(self, schema: Dict[str, Any]) -> None:
        self.schema = schema
        self.definitions: Dict[str, Any] = dict(schema["$defs"], Bundle=schema)
        self.classes: List[str] = []
        self.aliases: List[str] = []
        self.done: Dict[str, Kind] = {}

    def named(self, name: str) -> Kind:
        if name not in self.done:
            # Before its members, which may refer to it.
            self.done[name] = Kind(name, lambda value: f"{name}.from_json({value})", False)
            self.done[name] = self.define(name, self.definitions[name])
        return self.done[name]

    def define(self, name: str, schema: Dict[str, Any]) -> Kind:
        values = constants(schema)
        if values is not None:
            self.aliases.append(f"{name} = {literal(values)}\n" + documentation(schema["description"], ""))
            return Kind.plain(name)
        if "properties" in schema:
            self.dataclass(name, schema)
            return self.done[name]
        variants = schema.get("oneOf") or schema.get("anyOf")
        if name == "Range":
            return Kind("Range", lambda value: f"Range(*{value})", False)
        if variants and schema.get("type") != "array":
            return self.union(name, schema, variants)
        return self.inline(schema)

    def union(self, name: str, schema: Dict[str, Any], variants: List[Dict[str, Any]]) -> Kind:
        members: List[Kind] = []
        conditions: List[str] = []
        for variant in variants:
            target = variant
            if "$ref" in variant:
                inner = variant["$ref"].rsplit("/", 1)[1]
                members.append(self.named(inner))
                target = self.definitions[inner]
            elif "properties" in variant:
                tag = variant["properties"]["kind"]["const"]
                inner = tag[0].upper() + re.sub(r"[^A-Za-z0-9]", "", tag[1:]) + name
                self.definitions[inner] = variant
                members.append(self.named(inner))
            else:
                members.append(self.inline(variant))
            kind = target.get("properties", {}).get("kind", {})
            if "const" in kind:
                conditions.append(f'value["kind"] == "{kind["const"]}"')
            elif "properties" in target:
                conditions.append(f"{json.dumps(sorted(target['required']))} == sorted(set(value) & {set_of(target)})")
            else:
                conditions.append('"kind" in value')
        annotation = f"Union[{', '.join(member.annotation for member in members)}]"
        self.aliases.append(f'{name} = {annotation.replace(chr(34), "")}\n' + documentation(schema["description"], ""))
        if all(member.is_plain for member in members):
            return Kind.plain(name)
        reader = f"_read_{attribute(name)}"
        lines = [f"\ndef {reader}(value: Any) -> {name}:\n"]
        for condition, member in list(zip(conditions, members))[:-1]:
            lines.append(f"    if {condition}:\n        return {member.read('value')}\n")
        lines.append(f"    return {members[-1].read('value')}\n")
        self.classes.append("".join(lines))
        return Kind(name, lambda value: f"{reader}({value})", False)

    def inline(self, schema: Dict[str, Any]) -> Kind:
        if "$ref" in schema:
            return self.named(schema["$ref"].rsplit("/", 1)[1])
        values = constants(schema)
        if values is not None:
            return Kind.plain(literal(values))
        if "const" in schema:
            return Kind.plain(literal([schema["const"]]))
        if "anyOf" in schema and len(schema["anyOf"]) == 2 and schema["anyOf"][1] == {"type": "null"}:
            return optional(self.inline(schema["anyOf"][0]))
        kind = schema.get("type")
        if isinstance(kind, list):
            rest = [one for one in kind if one != "null"]
            return optional(self.inline(dict(schema, type=rest[0])))
        if kind == "array":
            return self.array(schema)
        if kind == "object":
            inner = self.inline(schema["additionalProperties"])
            read = inner.read("item")
            if inner.is_plain:
                return Kind(f"Dict[str, {inner.annotation}]", lambda value: f"dict({value})", False)
            return Kind(
                f"Dict[str, {inner.annotation}]",
                lambda value: f"{{name: {read} for name, item in {value}.items()}}",
                False,
            )
        return Kind.plain(PRIMITIVES[str(kind)])

    def array(self, schema: Dict[str, Any]) -> Kind:
        items = schema.get("items")
        if not isinstance(items, dict):
            return Kind("List[Any]", lambda value: f"list({value})", False)
        inner = self.inline(items)
        if schema.get("minItems") == schema.get("maxItems") == 2 and inner.is_plain:
            pair = f"Tuple[{inner.annotation}, {inner.annotation}]"
            return Kind(pair, lambda value: f"({value}[0], {value}[1])", False)
        if inner.is_plain:
            return Kind(f"List[{inner.annotation}]", lambda value: f"list({value})", False)
        read = inner.read("item")
        return Kind(f"List[{inner.annotation}]", lambda value: f"[{read} for item in {value}]", False)

    def dataclass(self, name: str, schema: Dict[str, Any]) -> None:
        required = schema.get("required", [])
        order = list(required) + [member for member in schema["properties"] if member not in required]
        fields: List[str] = []
        reads: List[str] = []
        for member in order:
            value = schema["properties"][member]
            kind = self.inline(value)
            if name == "Bundle" and member == "version":
                kind = Kind.plain("str")
            own, text = attribute(member), value.get("description", "")
            source = f'value["{member}"]'
            if member in required:
                fields.append(f"    {own}: {kind.annotation}\n")
                reads.append(f"            {own}={kind.read(source)},\n")
            elif "Absent when empty" in text or "absent when empty" in text:
                is_dict = kind.annotation.startswith("Dict")
                fields.append(f"    {own}: {kind.annotation} = field(default_factory={'dict' if is_dict else 'list'})\n")
                absent = "{}" if is_dict else "()"
                reads.append(f"            {own}={kind.read(f'value.get({json.dumps(member)}, {absent})')},\n")
            elif "Absent when false" in text:
                fields.append(f"    {own}: bool = False\n")
                reads.append(f'            {own}=value.get("{member}", False),\n')
            else:
                fields.append(f"    {own}: {optional(kind).annotation} = None\n")
                if kind.is_plain:
                    reads.append(f'            {own}=value.get("{member}"),\n')
                else:
                    reads.append(
                        f'            {own}={kind.read(source)} if value.get("{member}") is not None else None,\n'
                    )
            if text:
                fields.append(documentation(text, "    "))
        body = documentation(schema.get("description", name), "    ") + "\n" + "".join(fields)
        self.classes.append(
            f"\n@dataclass(frozen=True)\nclass {name}:\n{body}\n"
            f"    @classmethod\n    def from_json(cls, value: Json) -> {name}:\n"
            f'        """Reads it from its JSON form."""\n'
            f"        return cls(\n{''.join(reads)}        )\n"
        )


def set_of(schema: Dict[str, Any]) -> str:
    return "{" + ", ".join(json.dumps(name) for name in sorted(schema["required"])) + "}"


def optional(kind: Kind) -> Kind:
    if kind.annotation.startswith("Optional["):
        return kind
    return Kind(
        f"Optional[{kind.annotation}]",
        kind.read if kind.is_plain else lambda value: f"None if {value} is None else {kind.read(value)}",
        kind.is_plain,
    )


def guards(schema: Dict[str, Any], types: Types) -> str:
    """The guards of an edit as they are given: a dictionary, whose members can all be left out."""
    members = schema["$defs"]["Guards"]
    lines = ["\nclass GuardOptions(TypedDict, total=False):\n", documentation(members["description"], "    "), "\n"]
    for name, value in members["properties"].items():
        lines.append(f"    {name}: {types.inline(value).annotation}\n")
        lines.append(documentation(value["description"], "    "))
    return "".join(lines)


def types() -> str:
    """The content of `_types.py`."""
    bundle = json.loads((ROOT / "schemas/bundle.schema.json").read_text())
    batch = json.loads((ROOT / "schemas/batch.schema.json").read_text())
    written = Types(bundle)
    written.named("Bundle")
    given = guards(batch, written)
    version = bundle["properties"]["version"]["const"]
    head = f'{HEAD}\nFORMAT_VERSION = "{version}"\n"""The version of the bundle format that these types describe."""\n'
    # At run time an alias needs the classes that it names, so aliases of classes come last.
    plain = sorted(alias for alias in written.aliases if " = Literal" in alias)
    unions = [alias for alias in written.aliases if alias not in plain]
    names = sorted({line for text in plain + unions + written.classes + [given] for line in declared(text)} | {"Range"})
    exported = "\n__all__ = [\n" + "".join(f'    "{name}",\n' for name in names + ["FORMAT_VERSION"]) + "]\n"
    ranges = RANGE.format(description=bundle["$defs"]["Range"]["description"])
    parts = [head, exported, *("\n" + alias for alias in plain), "\n", ranges, "\n"]
    parts += ["\n".join(written.classes), "\n", given, "\n", *("\n" + alias for alias in unions)]
    return "".join(parts)


def declared(text: str) -> List[str]:
    return re.findall(r"^(?:class )?([A-Z]\w+)(?: = |:|\()", text, re.M)


ASYNC_HEAD = '''"""The commands as coroutines, generated from _methods.py by tools/python_client/generate.py."""
'''


def async_methods() -> str:
    """The content of `_async_methods.py`: each method awaits what that of `_methods.py` returns."""
    text = (PACKAGE / "_methods.py").read_text()
    head, body = text.split('"""\n', 1)[1].split("class Methods:", 1)
    body = re.sub(r"^    def (?!_)", "    async def ", body, flags=re.M)
    body = body.replace("return self._run(", "return await self._run(")
    body = re.sub(r"^    def _run\(", "    async def _run(", body, flags=re.M)
    return ASYNC_HEAD + head + "class AsyncMethods:" + body


def main() -> int:
    stale = []
    for path, content in [(PACKAGE / "_types.py", types()), (PACKAGE / "_async_methods.py", async_methods())]:
        if not path.exists() or path.read_text() != content:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(content)
    if stale and "--check" in sys.argv:
        print(f"{', '.join(stale)}: run python3 tools/python_client/generate.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
