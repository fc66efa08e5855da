"""Compares `lanser refs` with calls that really happened.

    python tools/oracle/compare.py --lanser target/release/lanser --project DIR --calls calls.json [--count 60] [--seed 1]

`calls.json` is written by `lanser_calls.py` while the project's own tests run in DIR. A sample of the called functions and methods
is taken; for each, every executed call line that contains the function's name (or an alias from an import in that file) must be
among the references. A missing line is *listed* if it is one of the answer's unresolved occurrences, otherwise *lost*. The worst
case is an answer that is labeled complete and lost a line.

Lines that call a function without its name (callbacks, decorators, operators) are counted separately and not judged.
"""

import argparse
import ast
import collections
import glob
import io
import json
import pathlib
import random
import re
import subprocess
import sys
import tokenize


class File:
    """The positions of names in one file."""

    def __init__(self, path):
        self.text = path.read_text(encoding="utf-8", errors="replace")
        self.names = collections.defaultdict(list)
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if token.type == tokenize.NAME:
                    self.names[token.string].append(token.start)
            tree = ast.parse(self.text)
        except (SyntaxError, tokenize.TokenError, IndentationError):
            tree = ast.parse("")
        self.statements = []
        self.functions = {}
        self.aliases = collections.defaultdict(set)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for name in node.names:
                    if name.asname:
                        self.aliases[name.name].add(name.asname)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                self.functions[first, node.name] = node
            if isinstance(node, ast.stmt):
                self.statements.append((node.lineno, self.end(node)))

    @staticmethod
    def end(node):
        """The last line of a statement; of a compound one, the last line before its body."""
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            return max(node.lineno, body[0].lineno - 1)
        return node.end_lineno

    def written(self, name, line):
        """The positions of a name or its aliases on a line, or else in the statement that contains the line."""
        names = {name} | self.aliases.get(name, set())
        places = [place for one in names for place in self.names.get(one, ())]
        here = [place for place in places if place[0] == line]
        if here:
            return here
        around = [span for span in self.statements if span[0] <= line <= span[1]]
        if not around:
            return []
        low, high = max(around)
        return [place for place in places if low <= place[0] <= high]


def name_token(file, node):
    """The line and column, from 1, of the name in a function definition."""
    for line, column in file.names[node.name]:
        if line >= node.lineno:
            return line, column + 1
    return None


def read_calls(pattern):
    calls = collections.defaultdict(set)
    for path in sorted(glob.glob(pattern + "*")):
        for file, line, qualname, callers in json.load(open(path, encoding="utf-8")):
            calls[file, line, qualname].update(map(tuple, callers))
    return calls


def sample(root, calls, count, seed, cache):
    """The sampled functions, with the positions of their names on executed call lines."""
    found = []
    for (path, line, qualname), callers in sorted(calls.items()):
        name = qualname.rsplit(".", 1)[-1]
        if name.startswith("__") and name.endswith("__") or "<" in qualname.rsplit(".", 1)[-1]:
            continue
        file = cache(path)
        node = file and file.functions.get((line, name))
        at = node and name_token(file, node)
        # Fixtures are not called by name, and tests are called by pytest.
        if not at or name.startswith("test_") or "test" in pathlib.PurePath(path).parts[0]:
            continue
        lines, indirect = {}, 0
        for caller, number in sorted(callers):
            other = cache(caller)
            places = other.written(name, number) if other else []
            if places:
                lines[caller, number] = places
            else:
                indirect += 1
        if lines:
            found.append((path, at, qualname, lines, indirect))
    random.Random(seed).shuffle(found)
    return found[:count]


def ask(lanser, root, selectors, extra, timeout, cmd="references"):
    requests = [
        {"id": number, "cmd": cmd, "selector": at, "options": {"limit": 100000}, "timeout": timeout}
        for number, at in enumerate(selectors)
    ]
    text = "\n".join(map(json.dumps, requests))
    run = subprocess.run(
        [lanser, "-C", str(root), "batch", "--concurrency", "1", *extra], input=text, capture_output=True, text=True
    )
    if run.returncode:
        sys.exit(run.stderr)
    answers = {}
    for line in run.stdout.splitlines():
        bundle = json.loads(line)
        answers[bundle["meta"]["volatile"]["id"]] = bundle
    return answers


def places_of(items):
    """File and 1-based line of each location's selector."""
    found = set()
    for item in items or ():
        at = re.match(r"(.*)@L(\d+):C(\d+)", item["at"])
        if at:
            found.add((at[1], int(at[2]), int(at[3])))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lanser", required=True)
    parser.add_argument("--project", required=True, type=pathlib.Path)
    parser.add_argument("--calls", required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=120)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--save", help="file for the answers, as JSON")
    arguments, extra = parser.parse_known_args()
    root = arguments.project.resolve()
    files = {}

    def cache(path):
        if path not in files:
            full = root / path
            files[path] = File(full) if full.is_file() else None
        return files[path]

    chosen = sample(root, read_calls(arguments.calls), arguments.count, arguments.seed, cache)
    selectors = [f"{path}:{at[0]}:{at[1]}" for path, at, *_ in chosen]
    answers = ask(arguments.lanser, root, selectors, extra, arguments.timeout)
    total = collections.Counter()
    for number, (path, at, qualname, lines, indirect) in enumerate(chosen):
        bundle = answers[number]
        facts = bundle.get("facts") or {}
        verdict = facts.get("completeness") or {}
        status = verdict.get("status", "error")
        claimed = places_of(facts.get("references"))
        claimed = {place[:2] for place in claimed}
        listed = {place[:2] for place in places_of((verdict.get("unresolved") or {}).get("items"))}
        lost, only_listed = [], 0
        for (caller, line), places in lines.items():
            rows = {(caller, place[0]) for place in places}
            if rows & claimed:
                continue
            if rows & listed:
                only_listed += 1
            else:
                lost.append((caller, line))
        total["functions"] += 1
        total[status] += 1
        total["lines"] += len(lines)
        total["listed"] += only_listed
        total["lost"] += len(lost)
        total["indirect"] += indirect
        unresolved = (verdict.get("unresolved") or {}).get("count", 0)
        total["unresolved"] += unresolved if status != "complete" else 0
        if "." not in qualname:
            total["module-level"] += 1
            total["module-level complete"] += status == "complete"
        total["complete and lost"] += status == "complete" and bool(lost)
        if not arguments.quiet and (lost or status != "complete"):
            print(f"{status:9} {qualname} {path}:{at[0]}:{at[1]} lines {len(lines)} listed {only_listed} lost {len(lost)} unresolved {unresolved} {verdict.get('reason') or (bundle.get('error') or {}).get('message') or ''}")
            for caller, line in lost[:6]:
                source = files[caller].text.splitlines()[line - 1].strip()
                print(f"    lost {caller}:{line}: {source[:140]}")
    if arguments.save:
        json.dump(answers, open(arguments.save, "w"))
    lines = max(total["lines"], 1)
    print(
        f"{root.name}: {total['functions']} functions, {total['complete']} complete, {total['partial']} partial, "
        f"{total['unknown']} unknown, {total['error']} errors; module-level {total['module-level complete']} of "
        f"{total['module-level']} complete; {total['lines']} executed call lines, recall {1 - (total['lost'] + total['listed']) / lines:.3f}, "
        f"with listed {1 - total['lost'] / lines:.3f}; COMPLETE AND LOST {total['complete and lost']}; "
        f"{total['unresolved']} unresolved, {total['indirect']} indirect lines"
    )


if __name__ == "__main__":
    main()
