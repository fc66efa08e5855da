"""The package says the same as the schemas and the command table: types, commands, options, errors."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import unittest
from typing import Any, Dict, List, Literal, Tuple, get_args, get_origin, get_type_hints

import lanser
from lanser import types
from lanser._async_methods import AsyncMethods
from lanser._errors import BY_SYMBOL
from lanser._methods import Methods

from .support import PROGRAM, ROOT

BATCH = json.loads((ROOT / "schemas/batch.schema.json").read_text())
BUNDLE = json.loads((ROOT / "schemas/bundle.schema.json").read_text())

WHOLE_BATCH = {"index_io", "scope"}
"""Options that are arguments of a workspace."""


class Recorder(Methods):
    """Keeps the requests instead of sending them."""

    def __init__(self) -> None:
        self.requests: List[Tuple[str, Dict[str, Any]]] = []

    def _run(self, cmd: str, value: Any, selector: Any = None, **given: Any) -> Any:
        self.requests.append((cmd, given["options"]))


def argument(name: str, type_: Any) -> Any:
    """A value for a parameter: the first text of a choice, otherwise any text or a list."""
    for one in (type_, *get_args(type_)):
        if get_origin(one) is Literal:
            return get_args(one)[0]
    return "a" if name in ("edit", "action") else ["a"]


def public(owner: type) -> Dict[str, Any]:
    members = inspect.getmembers(owner, inspect.isfunction)
    return {name: member for name, member in members if not name.startswith("_")}


class SchemaTest(unittest.TestCase):
    def test_generated_files_are_up_to_date(self) -> None:
        script = ROOT / "tools/python_client/generate.py"
        done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_command_and_option_of_a_batch_line_has_a_method(self) -> None:
        recorder = Recorder()
        for name, method in public(Methods).items():
            if name == "request":
                continue
            # Each method is called with all of its arguments.
            parameters = list(inspect.signature(method).parameters)[1:]
            hints = get_type_hints(method)
            getattr(recorder, name)(**{one: argument(one, hints[one]) for one in parameters})
        commands = {variant["const"] for variant in BUNDLE["$defs"]["Command"]["oneOf"]}
        self.assertEqual({cmd for cmd, _ in recorder.requests}, commands)
        options = {name for _, options in recorder.requests for name in options}
        self.assertEqual(options | WHOLE_BATCH, set(BATCH["$defs"]["Options"]["properties"]))

    def test_a_choice_takes_one_of_its_texts(self) -> None:
        recorder = Recorder()
        given: Any
        for given in ("down", ["incoming"]):
            with self.assertRaisesRegex(ValueError, "direction is .*'incoming', 'outgoing'"):
                recorder.calls("a.py:1:1", direction=given)
        self.assertEqual(recorder.requests, [])

    def test_both_kinds_of_workspace_have_the_same_methods(self) -> None:
        both = public(Methods), public(AsyncMethods)
        self.assertEqual(set(both[0]), set(both[1]))
        for name, method in both[0].items():
            self.assertEqual(inspect.signature(method), inspect.signature(both[1][name]), name)
            self.assertTrue(inspect.iscoroutinefunction(both[1][name]), name)

    def test_every_error_symbol_has_an_exception(self) -> None:
        symbols = {variant["const"] for variant in BUNDLE["$defs"]["ErrorSymbol"]["oneOf"]}
        self.assertEqual(set(BY_SYMBOL), symbols)
        for error in BY_SYMBOL.values():
            self.assertIs(getattr(lanser, error.__name__), error)

    def test_guards_are_those_of_the_schema(self) -> None:
        self.assertEqual(set(types.GuardOptions.__annotations__), set(BATCH["$defs"]["Guards"]["properties"]))

    def test_everything_in_the_package_is_exported(self) -> None:
        self.assertEqual(sorted(set(lanser.__all__)), lanser.__all__)
        for name in lanser.__all__:
            self.assertTrue(hasattr(lanser, name), name)

    @unittest.skipUnless(PROGRAM, "LANSER_TEST_PROGRAM is not set")
    def test_the_schemas_are_those_of_the_program(self) -> None:
        printed = subprocess.run([PROGRAM, "schema", "bundle"], capture_output=True, check=True).stdout
        self.assertEqual(json.loads(printed), BUNDLE)
        self.assertEqual(BUNDLE["properties"]["version"]["const"], types.FORMAT_VERSION)
