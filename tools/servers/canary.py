"""Looks for answers that depend on what a server was asked before, on the order, or on what happens at the same time.

    python tools/servers/canary.py --lanser target/release/lanser [--server ty] [--count 200] [--seed 1] [--keep DIR] PROJECT…

Every project is copied. The same requests (`definition`, `hover`, `references` of names chosen by the seed, `diagnostics` of their
files) are answered by fresh servers in three orders, the last with many at a time; by one process per request, for a part of
them; by a warm server a second time; and by the same server after files were edited and restored, and while they are edited: then
a fresh server is asked in the same state. Every bundle must have the same `bundleId` each time. Where ty has a cycle to infer, the
answer may depend on where it enters it (https://github.com/astral-sh/ty/issues/1670).

Exit code 0: no difference. 1: differences, which are listed; with `--keep`, both bundles of each are written there.
"""

import argparse
import collections
import io
import json
import keyword
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import tokenize

# Random names and their files are asked about: most of them with cheap requests, a few with expensive ones.
COMMANDS = {"definition": 1, "hover": 1, "references": 5, "diagnostics": 5}

SKIPPED = {"__pycache__", "node_modules", ".git", ".venv", "venv", ".tox", ".nox"}


def sources(root):
    """The Python files of a folder, sorted."""
    found = (path for path in root.rglob("*.py") if not SKIPPED.intersection(path.relative_to(root).parts))
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def names(path):
    """The selectors of the identifiers of a file: line and column from 1."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline))
    except (SyntaxError, tokenize.TokenError, UnicodeDecodeError):
        return []
    words = (token for token in tokens if token.type == tokenize.NAME and not keyword.iskeyword(token.string))
    return [f"L{token.start[0]}:C{token.start[1] + 1}" for token in words]


def questions(root, count, rng):
    """Requests about random names; equal for equal contents and seeds."""
    places = [(path.relative_to(root).as_posix(), name) for path in sources(root) for name in names(path)]
    chosen = rng.sample(places, min(count, len(places)))
    asked = []
    for number, (path, name) in enumerate(chosen):
        for command, every in COMMANDS.items():
            if number % every:
                continue
            request = {"id": f"{command} {path}@{name}", "cmd": command}
            if command == "diagnostics":
                request["options"] = {"paths": [path]}
            else:
                request["selector"] = f"{path}@{name}"
            asked.append(request)
    return asked


class Batch:
    """A running `lanser batch`, which keeps its server."""

    def __init__(self, arguments, root, concurrency):
        self.concurrency = concurrency
        self.process = subprocess.Popen(
            [
                *[arguments.lanser, "-C", str(root), "--server", arguments.server, "--timeout", "600"],
                *["batch", "--no-cache", "--concurrency", str(concurrency)],
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, asked):
        """The bundles of requests, by the id of the request."""

        def write():
            for request in asked:
                self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()

        writer = threading.Thread(target=write)
        writer.start()
        found = {}
        for _ in asked:
            line = self.process.stdout.readline()
            if not line:
                sys.exit(f"`lanser batch` ended with {self.process.wait()}")
            bundle = json.loads(line)
            error = bundle["error"] or {}
            if error.get("symbol") in ("E/USAGE", "E/LS_UNAVAILABLE", "E/LS_TIMEOUT"):
                # Equal errors would prove nothing.
                sys.exit(f"{bundle['request'] or line}: {error['symbol']}: {error['message']}")
            found[bundle["meta"]["volatile"]["id"]] = bundle
        writer.join()
        return found


def fresh(arguments, root, asked, concurrency=1):
    with Batch(arguments, root, concurrency) as batch:
        return batch.ask(asked)


class Report:
    """Counts comparisons and keeps the differences."""

    def __init__(self, keep):
        self.keep = keep
        self.counts = collections.Counter()
        self.differences = []

    def compare(self, project, way, first, other):
        """Compares the bundles of two ways to ask the same requests."""
        for key, bundle in other.items():
            self.counts[project, way] += 1
            if bundle["bundleId"] == first[key]["bundleId"]:
                continue
            self.differences.append((project, way, key))
            if self.keep:
                for name, one in (("first", first[key]), ("other", bundle)):
                    target = self.keep / f"{len(self.differences)}-{name}.json"
                    target.write_text(json.dumps(one, indent=1))
        print(f"{project}: {way}: {len(other)} compared, {len(self.differences)} differences so far", flush=True)


def edit(paths, rng):
    """Edits files: a function is added before all else, which moves everything, or behind all else. Returns the old contents."""
    before = {path: path.read_bytes() for path in paths}
    for number, (path, content) in enumerate(before.items()):
        added = f"def _canary_{rng.randrange(10**6)}(x):\n    return _canary_other(x)\n".encode()
        at_start = number % 2 and not content.startswith((b'"', b"'", b"from __future__", b"\xef\xbb\xbf"))
        path.write_bytes(added + content if at_start else content + b"\n\n" + added)
    return before


def measure(arguments, original, report, rng, scratch):
    project = original.name
    root = scratch / project
    shutil.copytree(original, root, symlinks=True, ignore=shutil.ignore_patterns(*SKIPPED))
    asked = questions(root, arguments.count, rng)
    first = fresh(arguments, root, asked)
    answered = sum(bundle["error"] is None for bundle in first.values())
    print(f"{project}: {len(asked)} requests, {answered} answered without an error", flush=True)
    report.compare(project, "reversed", first, fresh(arguments, root, asked[::-1]))
    shuffled = rng.sample(asked, len(asked))
    report.compare(project, "shuffled, 8 at a time", first, fresh(arguments, root, shuffled, 8))
    single = {}
    for request in rng.sample(asked, min(arguments.single, len(asked))):
        single |= fresh(arguments, root, [request])
    report.compare(project, "one process each", first, single)
    files = sources(root)
    with Batch(arguments, root, 8) as batch:
        report.compare(project, "warm, first time", first, batch.ask(asked))
        report.compare(project, "warm, second time", first, batch.ask(shuffled))
        for turn in range(arguments.edits):
            changed = rng.sample(files, min(len(files), 3))
            before = edit(changed, rng)
            # Positions in edited files have moved: what is asked there is something else, but the same for both.
            report.compare(project, f"edited {turn + 1}", fresh(arguments, root, asked), batch.ask(shuffled))
            for path, content in before.items():
                path.write_bytes(content)
            report.compare(project, f"restored {turn + 1}", first, batch.ask(asked[::-1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lanser", required=True)
    parser.add_argument("--server", default="ty")
    parser.add_argument("--count", type=int, default=200, help="names of each project")
    parser.add_argument("--single", type=int, default=20, help="requests with a process each")
    parser.add_argument("--edits", type=int, default=3, help="edits that are made and restored")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the bundles that differ")
    parser.add_argument("projects", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.lanser = str(pathlib.Path(arguments.lanser).resolve())
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    report = Report(arguments.keep)
    for original in arguments.projects:
        with tempfile.TemporaryDirectory() as scratch:
            rng = random.Random(arguments.seed)
            measure(arguments, original.resolve(), report, rng, pathlib.Path(scratch).resolve())
    for project, way, key in report.differences:
        print(f"DIFFERENT {project}: {way}: {key}")
    total = sum(report.counts.values())
    print(f"{len(report.differences)} of {total} answers differ from those of a fresh server in the first order")
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
