"""Names to rename, drawn from projects by a seed, as cases for `trial.py`.

    python3 tools/renames/sample.py --projects DIR --seed 7 --count 20 PROJECT=SOURCES...

SOURCES is the folder from which modules are imported, such as `click=src`. The kinds of names take turns, and the projects of each
kind are drawn, so that a common kind does not crowd out the others. Prints cases without options; a person adds them after the refusal.
"""

import argparse
import ast
import random
from pathlib import Path

KINDS = ("function", "method", "class", "variable", "enum-member", "dataclass-field", "parameter", "module")


def names(root: Path, sources: str):
    """Pairs of kind and selector."""
    base = root / sources
    for path in sorted(base.rglob("*.py")):
        parts = path.relative_to(base).with_suffix("").parts
        if not (path.parent / "__init__.py").exists() or any(part in ("tests", "v1", "_vendor") for part in parts):
            continue
        module = ".".join(parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text())
        if parts[-1] not in ("__init__", "__main__"):
            yield "module", f"py://{module}"
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                yield "function", f"py://{module}#{node.name}"
                for argument in node.args.args + node.args.kwonlyargs:
                    yield "parameter", f"py://{module}#{node.name}({argument.arg})"
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                yield "variable", f"py://{module}#{node.targets[0].id}"
            elif isinstance(node, ast.ClassDef):
                yield "class", f"py://{module}#{node.name}"
                bases = {ast.unparse(base).rsplit(".")[-1] for base in node.bases}
                decorators = " ".join(map(ast.unparse, node.decorator_list))
                for member in node.body:
                    if isinstance(member, ast.FunctionDef):
                        yield "method", f"py://{module}#{node.name}.{member.name}"
                    elif isinstance(member, ast.Assign) and bases & {"Enum", "IntEnum", "Flag", "IntFlag"}:
                        yield "enum-member", f"py://{module}#{node.name}.{ast.unparse(member.targets[0])}"
                    elif isinstance(member, ast.AnnAssign) and "dataclass" in decorators:
                        yield "dataclass-field", f"py://{module}#{node.name}.{ast.unparse(member.target)}"


def renamed(kind: str, selector: str) -> str:
    if kind == "module":
        return selector.removeprefix("py://") + "_renamed"
    name = selector.replace(")", "").replace("(", ".").replace("#", ".").rsplit(".", 1)[1]
    return name + ("Renamed" if kind == "class" else "_RENAMED" if name.isupper() else "_renamed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", required=True, type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()
    drawn = random.Random(options.seed)
    found: dict[tuple[str, str], list[str]] = {}
    for project, sources in (source.split("=") for source in options.sources):
        for kind, selector in names(options.projects / project, sources):
            if "__" not in selector:
                found.setdefault((kind, project), []).append(selector)
    numbers: dict[tuple[str, str], int] = {}
    for index in range(options.count):
        kind = KINDS[index % len(KINDS)]
        project = drawn.choice(sorted(project for known, project in found if known == kind and found[known, project]))
        selector = drawn.choice(found[kind, project])
        found[kind, project].remove(selector)
        number = numbers[kind, project] = numbers.get((kind, project), 0) + 1
        print(f'[[case]]\nid = "seed-{options.seed}-{project}-{kind}-{number}"\nproject = "{project}"')
        print(f'from = "{selector}"\nto = "{renamed(kind, selector)}"\n')


if __name__ == "__main__":
    main()
