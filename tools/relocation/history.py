"""Measures selectors that follow git history, against a truth that lanser takes no part in.

    history.py truth  CLONES OUT.json [--seed N] [--projects a,b] [--most N]
    history.py measure LANSER CLONES OUT.json [--per-cell N] [--cells A,B] [--forms A,B] [--unversioned] [--show CELL]

`CLONES` holds clones with full history. For each project a newer commit is drawn with the seed, and its first-parent ancestors 20, 100
and 500 commits back are the old ones. A case is a definition (or one line of its body) of an old commit, with its location in the newer
one, on which two oracles agree:

- steps: each commit between is taken in turn. A definition is followed by its qualified name, by git's rename detection, and by the
  similarity of its tokens to the definitions that the commit added. A step without a clear answer drops the case.
- lines: `git blame -w -M -C -C OLD..NEW` has to attribute the lines of the new definition to those of the old one. A deleted definition
  must have left hardly any distinctive line in the newer commit.

`measure` checks the newer commits out, asks `lanser batch` to locate selectors of four forms, and prints right % / wrong % without a flag
for each form and fate.
"""

import argparse
import ast
import bisect
import collections
import hashlib
import json
import os
import random
import re
import subprocess
import sys

DISTANCES = (20, 100, 500)
TOKEN = re.compile(r"\w+|[^\w\s]")
CELLS = ["same", "body edited", "moved in file", "moved across files", "renamed", "deleted"]


def git(repo, *args, check=True):
    run = subprocess.run(["git", "-C", repo, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if check and run.returncode:
        raise RuntimeError(f"git {args}: {run.stderr.decode(errors='replace')}")
    return run.stdout.decode("utf-8", "surrogateescape")


class Blobs:
    """The contents of blobs and the definitions in them."""

    def __init__(self, repo):
        command = ["git", "-C", repo, "cat-file", "--batch"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.parsed = {}

    def text(self, blob):
        self.process.stdin.write(blob.encode() + b"\n")
        self.process.stdin.flush()
        size = int(self.process.stdout.readline().split()[2])
        return self.process.stdout.read(size + 1)[:-1].decode("utf-8", "replace")

    def definitions(self, blob):
        if blob not in self.parsed:
            self.parsed[blob] = definitions(self.text(blob))
        return self.parsed[blob]


class Definition:
    __slots__ = ("chain", "name", "is_class", "line", "column", "start", "end", "signature", "body", "scope", "order", "tokens", "header")

    def key(self):
        return self.chain


def definitions(text):
    """The classes and functions of a text by their chain of names; `None` where a name is defined more than once."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    lines = text.split("\n")
    found = {}
    order = 0

    def visit(node, chain):
        nonlocal order
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                visit(child, chain)
                continue
            one = Definition()
            one.name = child.name
            one.chain = ".".join([*chain, child.name])
            one.scope = ".".join(chain)
            one.is_class = isinstance(child, ast.ClassDef)
            one.line = child.lineno
            head = re.match(rf"\s*(?:async\s+)?(?:def|class)\s+{child.name}\b", lines[child.lineno - 1])
            one.column = head.end() - len(child.name) if head else -1
            one.start = min([child.lineno] + [decorator.lineno for decorator in child.decorator_list])
            one.end = child.end_lineno
            first = child.body[0].lineno
            one.header = child.lineno
            one.signature = " ".join(" ".join(lines[child.lineno - 1 : max(first - 1, child.lineno)]).split())
            stripped = [line.strip() for line in lines[child.lineno : one.end]]
            one.body = [line for line in stripped if line and not line.startswith("#")]
            one.order = order
            order += 1
            one.tokens = None
            found[one.chain] = None if one.chain in found else one
            visit(child, [*chain, child.name])

    visit(tree, [])
    return found


def bigrams(one):
    if one.tokens is None:
        words = ["§" if word == one.name else word for line in one.body for word in TOKEN.findall(line)]
        one.tokens = collections.Counter(zip(words, words[1:], strict=False))
    return one.tokens


def similarity(a, b):
    a, b = bigrams(a), bigrams(b)
    total = sum(a.values()) + sum(b.values())
    return 2 * sum((a & b).values()) / total if total else 0.0


def size(one):
    return sum(bigrams(one).values())


def steps(repo, old, new):
    """The first-parent commits after `old` up to `new`, each with the Python files that it changed."""
    log = git(repo, "log", "--first-parent", "--diff-merges=first-parent", "--raw", "-M", "-z", "--no-abbrev", "--reverse", "--format=%x01%H", f"{old}..{new}")
    for part in log.split("\x01")[1:]:
        fields = [field for field in part.split("\0") if field]
        commit = fields.pop(0).strip()
        changes = []
        while fields:
            meta = fields.pop(0).strip()
            _, mode, before, after, status = meta.lstrip(":").split()
            path = fields.pop(0)
            target = fields.pop(0) if status[0] in "RC" else path
            if mode == "120000" or not (path.endswith(".py") or target.endswith(".py")):
                continue
            changes.append((status[0], path, target, before, after))
        yield commit, changes


LOST, UNKNOWN = "lost", "unknown"


class Tracker:
    def __init__(self, blobs, start):
        # (path, chain) now, for each (path, chain) at the start.
        self.at = {key: key for key in start}
        self.decided = {}
        self.blobs = blobs

    def step(self, commit, changes):
        before, after, renamed = {}, {}, {}
        for status, path, target, old, new in changes:
            if status in "MTDR" and path.endswith(".py"):
                before[path] = old
            if status in "MTARC" and target.endswith(".py"):
                after[target] = new
            if status == "R":
                renamed[path] = target
        affected = collections.defaultdict(list)
        for key, at in self.at.items():
            if isinstance(at, tuple) and at[0] in before:
                affected[at].append(key)
        if not affected:
            return
        olds = {path: self.blobs.definitions(blob) for path, blob in before.items()}
        news = {path: self.blobs.definitions(blob) for path, blob in after.items()}
        added = []
        for path, found in news.items():
            origin = next((was for was, now in renamed.items() if now == path), path)
            known = set(olds.get(path) or ()) | set(olds.get(origin) or ())
            added += [(path, one) for chain, one in (found or {}).items() if one is not None and chain not in known]
        memo = {}

        def follow(path, chain):
            if (path, chain) not in memo:
                memo[path, chain] = UNKNOWN
                memo[path, chain] = find(path, chain)
            return memo[path, chain]

        def find(path, chain):
            defs = olds[path]
            if defs is None or defs.get(chain) is None:
                return UNKNOWN
            one = defs[chain]
            for place in (path, renamed.get(path)):
                if place is None or place not in news:
                    continue
                if news[place] is None:
                    return UNKNOWN
                if chain in news[place]:
                    now = news[place][chain]
                    if now is None:
                        return UNKNOWN
                    if similarity(one, now) < 0.3 and size(one) >= 12:
                        rivals = [other for where, other in added if other.is_class == one.is_class and similarity(one, other) > similarity(one, now) + 0.1]
                        if rivals:
                            return UNKNOWN
                    return (place, chain)
            inside = [(where, now) for where, now in added if now.is_class == one.is_class]
            if one.scope:
                scope = follow(path, one.scope)
                if isinstance(scope, tuple) and scope != (path, one.scope) and news.get(scope[0]):
                    now = news[scope[0]].get(f"{scope[1]}.{one.name}")
                    if now is not None:
                        return (scope[0], now.chain) if similarity(one, now) >= 0.2 or size(one) < 12 else UNKNOWN
            scored = sorted(((similarity(one, now), where, now) for where, now in inside), key=lambda it: (-it[0], it[1], it[2].chain))
            named = [it for it in scored if it[2].name == one.name]
            if named:
                best = named[0]
                next_best = named[1][0] if len(named) > 1 else 0.0
                other = max((it[0] for it in scored if it[2].name != one.name), default=0.0)
                if best[0] >= 0.5 and best[0] - next_best >= 0.1 and other < best[0]:
                    return (best[1], best[2].chain)
                return UNKNOWN if best[0] >= 0.2 or size(one) < 12 else weak(scored)
            if scored and size(one) >= 15:
                best = scored[0]
                next_best = scored[1][0] if len(scored) > 1 else 0.0
                if best[0] >= 0.65 and best[0] - next_best >= 0.1:
                    return (best[1], best[2].chain)
            return weak(scored) if size(one) >= 12 else UNKNOWN

        def weak(scored):
            return LOST if not scored or scored[0][0] < 0.35 else UNKNOWN

        for (path, chain), keys in affected.items():
            result = follow(path, chain)
            for key in keys:
                if result != self.at[key]:
                    self.decided.setdefault(key, []).append(commit)
                self.at[key] = result


def tree(repo, commit):
    listing = git(repo, "ls-tree", "-r", "-z", commit)
    files = {}
    for line in listing.split("\0"):
        if line:
            meta, path = line.split("\t", 1)
            mode, _, blob = meta.split()
            if path.endswith(".py") and mode != "120000":
                files[path] = blob
    return files


class Blame:
    """For each line of a file of the newer commit, the line of the old commit that it comes from."""

    def __init__(self, repo, old, new):
        self.repo, self.old, self.new, self.known = repo, old, new, {}

    def lines(self, path):
        if path not in self.known:
            out = git(self.repo, "blame", "-p", "-w", "-M", "-C", "-C", "--first-parent", f"{self.old}..{self.new}", "--", path, check=False)
            found, names = {}, {}
            commit = None
            for line in out.split("\n"):
                head = re.match(r"([0-9a-f]{40}) (\d+) (\d+)", line)
                if head:
                    commit, was, now = head[1], int(head[2]), int(head[3])
                elif line.startswith("filename "):
                    names[commit] = line[9:]
                    current = line[9:]
                elif line.startswith("\t") and commit == self.old:
                    found[now] = (names[commit], was)
            self.known[path] = found
        return self.known[path]


def blame_agrees(lines, was_path, was, now):
    inside = outside = 0
    for number in range(now.line, now.end + 1):
        origin = lines.get(number)
        if origin is None:
            continue
        if origin[0] == was_path and was.line <= origin[1] <= was.end:
            inside += 1
        else:
            outside += 1
    return inside >= 1 and inside > outside


def moved_in_order(olds, news):
    """The chains whose order changed among those of their scope that are in both."""
    scopes = collections.defaultdict(list)
    for chain, one in olds.items():
        if one is not None and news.get(chain) is not None:
            scopes[one.scope].append(chain)
    moved = set()
    for chains in scopes.values():
        chains.sort(key=lambda chain: olds[chain].order)
        tails, links, at = [], {}, []
        for chain in chains:
            order = news[chain].order
            place = bisect.bisect_left(tails, order)
            links[chain] = at[place - 1] if place else None
            if place == len(tails):
                tails.append(order)
                at.append(chain)
            else:
                tails[place], at[place] = order, chain
        kept, one = set(), at[-1] if at else None
        while one is not None:
            kept.add(one)
            one = links[one]
        moved |= set(chains) - kept
    return moved


def cases_of(repo, project, new, blobs, seed, most):
    commits = git(repo, "rev-list", "--first-parent", "-n", str(max(DISTANCES) + 1), new).split()
    starts = {commits[distance]: distance for distance in DISTANCES if distance < len(commits)}
    trackers, trees = [], {}
    oldest = max((distance for distance in starts.values()), default=0)
    if not oldest:
        return []

    def start(commit):
        files = tree(repo, commit)
        trees[commit] = files
        keys = [(path, chain) for path, blob in files.items() for chain, one in (blobs.definitions(blob) or {}).items() if one is not None]
        trackers.append((commit, Tracker(blobs, keys)))

    start(commits[oldest])
    for commit, changes in steps(repo, commits[oldest], new):
        for _, tracker in trackers:
            tracker.step(commit, changes)
        if commit in starts:
            start(commit)
    now_files = tree(repo, new)
    now_defs = {path: blobs.definitions(blob) or {} for path, blob in now_files.items()}
    now_names = collections.Counter(one.name for defs in now_defs.values() for one in defs.values() if one is not None)
    now_lines = collections.Counter()
    for blob in now_files.values():
        now_lines.update(line.strip() for line in blobs.text(blob).split("\n"))
    rng = random.Random(f"{seed} {project}")
    found = []
    for old, tracker in trackers:
        blame = Blame(repo, old, new)
        old_defs = {path: blobs.definitions(blob) or {} for path, blob in trees[old].items()}
        orders = {}
        by_cell = collections.defaultdict(list)
        for (path, chain), at in tracker.at.items():
            was = old_defs[path][chain]
            if at == UNKNOWN or was.column < 0:
                continue
            if at == LOST:
                by_cell["deleted"].append((path, was, None, None))
                continue
            now = now_defs.get(at[0], {}).get(at[1])
            if now is None or now.column < 0:
                continue
            if now.name != was.name:
                cell = "renamed"
            elif at[0] != path:
                cell = "moved across files"
            else:
                if path not in orders:
                    orders[path] = moved_in_order(old_defs[path], now_defs[path])
                if at[1] != chain:
                    cell = "moved in file"
                elif chain in orders[path] and was.body == now.body:
                    cell = "moved in file"
                elif was.body == now.body:
                    cell = "same"
                elif was.signature != now.signature and random.Random(chain).random() < 0.5:
                    cell = "same"
                else:
                    cell = "body edited"
            by_cell[cell].append((path, was, at[0], now))
        for cell, rows in sorted(by_cell.items()):
            rows.sort(key=lambda row: (row[0], row[1].chain))
            rng.shuffle(rows)
            taken = 0
            for path, was, where, now in rows:
                if taken >= most:
                    break
                if now is None:
                    # The line oracle: distinctive lines are gone, and so is the name.
                    distinctive = [line for line in was.body if len(line) >= 20]
                    left = sum(now_lines[line] > 0 for line in distinctive)
                    if len(distinctive) < 3 or left * 10 > len(distinctive) or (was.name in now_names and not was.scope) or was.chain in now_defs.get(path, {}):
                        continue
                elif not blame_agrees(blame.lines(where), path, was, now):
                    continue
                taken += 1
                case = {
                    "project": project,
                    "new": new,
                    "old": old,
                    "distance": starts[old],
                    "cell": cell,
                    "path": path,
                    "chain": was.chain,
                    "line": was.line,
                    "column": was.column,
                    "kinds": [],
                    "truth": None if now is None else [where, now.line],
                    "now": None if now is None else now.chain,
                    "commits": tracker.decided.get((path, was.chain), [])[:3],
                }
                case["steps"] = ast_steps(was, old_defs[path])
                found.append(case)
                line = statement(repo, blobs, blame, rng, path, trees[old][path], was, where, now_files.get(where), now, now_lines)
                if line is not None:
                    found.append({**case, "statement": line[0], "line": line[1], "column": line[2], "truth": line[3]})
    return found


def ast_steps(was, defs):
    steps, names = [], was.chain.split(".")
    for index in range(len(names)):
        one = defs.get(".".join(names[: index + 1]))
        if one is None:
            return None
        steps.append(f"[{'class' if one.is_class else 'def'}={one.name}]")
    return "/".join(steps)


def statement(repo, blobs, blame, rng, path, blob, was, where, new_blob, now, now_lines):
    """One line of the body that both texts of the definition have exactly once, or that is gone with it."""
    text = blobs.text(blob).split("\n")
    before = text[was.line : was.end]
    numbers = [number for number in range(was.line + 1, was.end + 1) if len(text[number - 1].strip()) >= 12]
    rng.shuffle(numbers)
    for number in numbers[:3]:
        line = text[number - 1].strip()
        if line.startswith(("#", '"""', "@", ")", "]", "}")) or sum(other.strip() == line for other in before) != 1:
            continue
        column = len(text[number - 1]) - len(text[number - 1].lstrip())
        if now is None:
            if now_lines[line] == 0 and len(line) >= 20:
                return line, number, column, None
            continue
        after = blobs.text(new_blob).split("\n")
        there = [at for at in range(now.line + 1, now.end + 1) if after[at - 1].strip() == line]
        if len(there) == 1 and blame.lines(where).get(there[0]) == (path, number):
            return line, number, column, [where, there[0]]
    return None


def truth(args):
    cases = []
    names = sorted(os.listdir(args.clones)) if not args.projects else args.projects.split(",")
    for project in names:
        repo = os.path.join(args.clones, project)
        head = git(repo, "rev-parse", "refs/remotes/origin/HEAD").strip()
        rng = random.Random(f"{args.seed} {project} new")
        back = rng.randrange(0, 600)
        new = git(repo, "rev-list", "--first-parent", "-n", "1", f"--skip={back}", head).strip()
        one = cases_of(repo, project, new, Blobs(repo), args.seed, args.most)
        counts = collections.Counter(case["cell"] for case in one)
        print(project, back, dict(counts), file=sys.stderr, flush=True)
        cases += one
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(cases, file)


def module_of(path):
    parts = path[:-3].split("/")
    if parts[0] == "src":
        parts = parts[1:]
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


def quote(text):
    text = text.replace("%", "%25").replace("#", "%23").replace("?", "%3F").replace(" ", "%20")
    return text.replace('"', "%22")


def selectors(case, text, versioned):
    """The selectors of a case, as `locate --as` prints them."""
    version = f"v=git:{case['old']}"
    lines = text.split("\n")
    line = lines[case["line"] - 1]
    start = sum(len(other) + 1 for other in lines[: case["line"] - 1])
    if "statement" in case:
        begin = case["column"]
        end = begin + len(line.strip())
    else:
        begin = len(line) - len(line.lstrip())
        end = len(line.rstrip())
    snippet = line[begin:end]
    duplicates = [match.start() for match in re.finditer(re.escape(snippet), text)]

    def context(at, size):
        return text[max(0, at - size) : at + len(snippet) + size]

    own = start + begin
    size = next((size for size in (24, 60, 150, 400) if all(at == own or context(at, size) != context(own, size) for at in duplicates)), 24)
    digest = hashlib.sha1(context(own, size).encode("utf-8", "replace")).hexdigest()
    query = ([f"ctx={size}"] if size != 24 else []) + [f"hash=sha1:{digest}"]
    anchor = f'anchor://{case["path"]}#"{quote(snippet)}"?' + "&".join([*query, version] if versioned else query)
    made = {"anchor": anchor}
    if versioned:
        made["cursor"] = f"{case['path']}@L{case['line']}:C{case['column'] + 1}?{version}"
    if "statement" not in case:
        tail = f"?{version}" if versioned else ""
        module = module_of(case["path"])
        if all(part.isidentifier() for part in module.split(".")):
            made["name"] = f"py://{module}#{case['chain']}:def{tail}"
            if case["steps"]:
                made["AST path"] = f"ast://[module={module}]/{case['steps']}{tail}"
    return made


def judge(case, bundle):
    """`right`, `flagged` or `wrong`, with what was answered."""
    truth = case["truth"]
    resolution = bundle.get("resolution") or {}
    resolved = resolution.get("resolved")
    error = (bundle.get("error") or {}).get("symbol")
    if resolved is None:
        if error == "E/NOT_FOUND":
            return ("right" if truth is None else "missing"), (bundle.get("error") or {}).get("message", "")
        return "flagged", f"{error} " + "; ".join(f"{one['at']} {one['score']} {one['reason']}" for one in resolution.get("disambiguation", []))[:400]
    told = f"{resolved['at']} {resolved['via']} {resolved['confidence']} {(resolved.get('relocation') or {}).get('reason', '')}"
    line = resolved["range"][0] + 1
    if truth is not None and resolved["uri"] == truth[0] and line == truth[1]:
        return "right", told
    return ("certain" if resolved["certified"] else "wrong"), told


def measure(args):
    with open(args.out, encoding="utf-8") as file:
        cases = json.load(file)
    rng = random.Random(args.seed)
    groups = collections.defaultdict(list)
    for case in cases:
        groups[case["cell"], "statement" in case].append(case)
    chosen = []
    for key, rows in sorted(groups.items()):
        if args.cells and key[0] not in args.cells.split(","):
            continue
        # As many from each project and distance as there are, in turns.
        turns = collections.defaultdict(list)
        rng.shuffle(rows)
        for row in rows:
            turns[row["project"], row["distance"]].append(row)
        keys = sorted(turns)
        rng.shuffle(keys)
        taken = []
        while keys and len(taken) < args.per_cell:
            for turn in list(keys):
                if turns[turn]:
                    taken.append(turns[turn].pop())
                else:
                    keys.remove(turn)
        chosen += taken[: args.per_cell]
    table = collections.defaultdict(collections.Counter)
    by_tree = collections.defaultdict(list)
    for case in chosen:
        by_tree[case["project"], case["new"]].append(case)
    for (project, new), rows in sorted(by_tree.items()):
        repo = os.path.join(args.clones, project)
        git(repo, "checkout", "-q", "-f", new)
        requests, meant = [], []
        for case in rows:
            text = git(repo, "show", f"{case['old']}:{case['path']}")
            if "\r" in text:
                continue
            for form, selector in selectors(case, text, not args.unversioned).items():
                if args.forms and form not in args.forms.split(","):
                    continue
                requests.append({"id": len(meant), "cmd": "locate", "selector": selector})
                meant.append((case, form, selector))
        source = "".join(json.dumps(request) + "\n" for request in requests)
        run = subprocess.run([args.lanser, "batch", "--concurrency", "2"], cwd=repo, input=source.encode(), stdout=subprocess.PIPE, env={**os.environ, "LANSER_DAEMON": "0"})
        for line in run.stdout.decode().splitlines():
            bundle = json.loads(line)
            case, form, selector = meant[bundle["meta"]["volatile"]["id"]]
            verdict, told = judge(case, bundle)
            table[case["cell"], form][verdict] += 1
            if "statement" in case:
                table[case["cell"], form + " (lines)"][verdict] += 1
            if args.show and verdict != "right" and (args.show.rstrip("!") == "all" or case["cell"].startswith(args.show.rstrip("!"))) and (not args.show.endswith("!") or verdict in ("wrong", "certain")):
                print(f"{verdict:>8} {case['cell']} {project} {selector}\n         {case.get('statement', case['chain'])} → {case['now']} {case['truth']} {case['commits']}\n         {told}")
    forms = ["cursor", "anchor", "name", "AST path", "cursor (lines)", "anchor (lines)"]
    print(f"\n| | {' | '.join(CELLS)} | all |\n|---|" + "---|" * (len(CELLS) + 1))

    def shares(count):
        total = sum(count.values())
        wrong = count["wrong"] + count["certain"]
        return f"{100 * count['right'] / total:.1f} / {100 * wrong / total:.1f} ({total})" if total else "-"

    for form in forms:
        row = [table[cell, form] for cell in CELLS]
        print(f"| {form} | " + " | ".join(shares(count) for count in [*row, sum(row, collections.Counter())]) + " |")
    whole = sum((count for (_, form), count in table.items() if "(" not in form), collections.Counter())
    print("\nall:", shares(whole), dict(whole))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("truth")
    one.add_argument("clones")
    one.add_argument("out")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--projects")
    one.add_argument("--most", type=int, default=40, help="the most cases of one project, cell and distance")
    two = commands.add_parser("measure")
    two.add_argument("lanser")
    two.add_argument("clones")
    two.add_argument("out")
    two.add_argument("--per-cell", type=int, default=60)
    two.add_argument("--seed", type=int, default=1)
    two.add_argument("--unversioned", action="store_true")
    two.add_argument("--show", help="print the cases of a cell (or of `all`) that are not right; with `!`, only the wrong ones")
    two.add_argument("--cells")
    two.add_argument("--forms")
    args = parser.parse_args()
    (truth if args.command == "truth" else measure)(args)


main()
