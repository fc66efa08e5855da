"""How long previews of renames take, beside a bare client of the same server.

    python3 tools/renames/speed.py --lanser target/release/lanser --server-command PYRIGHT_LANGSERVER --project DIR NAME...

Each NAME is a selector `py://pkg.mod#function`. The bare client asks the server for the references and the rename, shows it the
edited texts and asks for the diagnostics of as many files as lanser compares: the edited ones, those in which one of the names is
written, and others that import an edited one. All is one process that stays warm. lanser answers in a session. Both are asked every name once per round, in turn, so that a busy machine slows both;
the first round is not counted. Prints a line for each name, with the time and the processor time of both (for lanser that of the
command, the session and its server), and the median ratios.

`--sample N --seed S` takes N private functions, methods and fields of the project besides the names.
"""

import argparse
import ast
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path


class Server:
    """A language server that is asked one request at a time."""

    def __init__(self, command: str, root: Path):
        node = [] if os.access(command, os.X_OK) else ["node"]
        self.process = subprocess.Popen(
            [*node, command, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.root, self.next, self.versions = root, 0, {}
        pull = {"diagnostic": {}, "rename": {"prepareSupport": True}}
        self.ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": root.as_uri(),
                "workspaceFolders": [{"uri": root.as_uri(), "name": "w"}],
                "capabilities": {"textDocument": pull, "workspace": {"configuration": True}},
            },
        )
        self.tell("initialized", {})
        self.tell("workspace/didChangeConfiguration", {"settings": {}})

    def send(self, message: dict):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method: str, params: dict):
        self.send({"method": method, "params": params})

    def read(self) -> dict:
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(length))

    def ask(self, method: str, params: dict):
        self.next += 1
        mine = self.next
        self.send({"id": mine, "method": method, "params": params})
        while True:
            message = self.read()
            if "method" in message and "id" in message:
                items = message.get("params", {}).get("items", []) if message["method"].endswith("configuration") else None
                self.send({"id": message["id"], "result": [{} for _ in items] if items is not None else None})
            elif message.get("id") == mine:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def show(self, path: Path, text: str):
        uri = path.as_uri()
        version = self.versions.get(uri, 0) + 1
        self.versions[uri] = version
        if version == 1:
            document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
            self.tell("textDocument/didOpen", {"textDocument": document})
        else:
            change = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
            self.tell("textDocument/didChange", change)

    def rename(self, path: Path, line: int, character: int, new: str, files: list[Path], edited: dict[Path, str]):
        """References, rename, and the diagnostics of `files` with the edited texts."""
        for file in files:
            if file.as_uri() not in self.versions:
                self.show(file, file.read_text())
        at = {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": character}}
        self.ask("textDocument/references", {**at, "context": {"includeDeclaration": True}})
        self.ask("textDocument/rename", {**at, "newName": new})
        for file, text in edited.items():
            self.show(file, text)
        for file in files:
            self.ask("textDocument/diagnostic", {"textDocument": {"uri": file.as_uri()}})
        for file in edited:
            self.show(file, file.read_text())


def processor_time(pids: list[int]) -> float:
    """What processes have used, with their threads, in seconds."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def files_with(root: Path, names: list[str]) -> list[Path]:
    """The Python files in which one of the names is written."""
    word = re.compile(rb"\b(?:" + "|".join(map(re.escape, names)).encode() + rb")\b")
    files = (path for path in root.rglob("*.py*") if path.suffix in (".py", ".pyi") and not path.is_symlink())
    hidden = (path for path in files if not any(part.startswith(".") for part in path.relative_to(root).parts))
    return sorted(path for path in hidden if word.search(path.read_bytes()))


def import_graph(root: Path) -> dict[Path, set[Path]]:
    """For each Python file the files that import it, as far as their imports name modules of the project."""
    modules: dict[str, Path] = {}
    trees = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if path.is_symlink() or any(part.startswith(".") for part in parts):
            continue
        try:
            trees[path] = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        modules[".".join(parts[1:] if parts[0] in ("src", "lib") else parts).removesuffix(".__init__")] = path
    names = {path: name for name, path in modules.items()}
    graph: dict[Path, set[Path]] = {path: set() for path in trees}
    for path, tree in trees.items():
        package = names[path].split(".") if path.name == "__init__.py" else names[path].split(".")[:-1]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                module = ".".join([*base, *([node.module] if node.module else [])])
                named = [module, *(f"{module}.{alias.name}" for alias in node.names)]
            else:
                continue
            for target in (modules[name] for name in named if name in modules):
                graph[target].add(path)
    return graph


def importers(graph: dict[Path, set[Path]], edited: set[Path]) -> list[Path]:
    """The files that import one of the edited files, directly ones first."""
    found, seen = [], set(edited)
    level = sorted(edited)
    while level:
        level = sorted({one for path in level for one in graph.get(path, ())} - seen)
        seen.update(level)
        found.extend(level)
    return found


def sample(root: Path, count: int, seed: int) -> list[str]:
    """Selectors of private functions, methods and annotated fields, as many of each as possible."""
    kinds: dict[str, list[str]] = {"function": [], "method": [], "field": []}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if any(part.startswith((".", "test")) or part in ("docs", "conf") for part in parts) or not (path.parent / "__init__.py").exists():
            continue
        module = ".".join(parts[1:] if parts[0] == "src" else parts).removesuffix(".__init__")
        try:
            tree = ast.parse(path.read_text())
        except (SyntaxError, UnicodeDecodeError):
            continue
        is_private = re.compile("_[a-z]").match
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and is_private(node.name):
                kinds["function"].append(f"py://{module}#{node.name}")
            for member in node.body if isinstance(node, ast.ClassDef) else []:
                if isinstance(member, ast.FunctionDef) and is_private(member.name) and not member.decorator_list:
                    kinds["method"].append(f"py://{module}#{node.name}.{member.name}")
                target = member.target if isinstance(member, ast.AnnAssign) else None
                if isinstance(target, ast.Name):
                    kinds["field"].append(f"py://{module}#{node.name}.{target.id}")
    chosen = random.Random(seed)
    names = [name for kind in kinds.values() for name in chosen.sample(kind, min(len(kind), -(-count // 3)))]
    return names[:count]


def edited_texts(root: Path, bundle: dict) -> dict[Path, str]:
    texts = {}
    for change in bundle["edits"]["workspaceEdit"]["documentChanges"]:
        path = root / change["textDocument"]["uri"]
        lines = texts.get(path, path.read_text()).split("\n")
        for edit in sorted(change["edits"], key=lambda edit: (edit["range"]["start"]["line"], edit["range"]["start"]["character"]), reverse=True):
            start, end = edit["range"]["start"], edit["range"]["end"]
            line = lines[start["line"]]
            lines[start["line"]] = line[: start["character"]] + edit["newText"] + line[end["character"] :]
        texts[path] = "\n".join(lines)
    return texts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanser", required=True)
    parser.add_argument("--server-command", required=True)
    parser.add_argument("--project", required=True, type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    root = options.project.resolve()
    lanser = [str(Path(options.lanser).resolve())]

    def run(*arguments: str) -> str:
        return subprocess.run([*lanser, *arguments], cwd=root, capture_output=True, text=True).stdout

    def processes() -> list[int]:
        found = [known for known in json.loads(run("session", "status", "--json") or "[]") if known["workspace"] == str(root)]
        return [pid for known in found for pid in (known["pid"], *(server["pid"] for server in known["status"]["servers"]))]

    def preview(name: str, new: str) -> tuple[float, float, dict]:
        pids = processes()
        used = lambda: resource.getrusage(resource.RUSAGE_CHILDREN)
        began, before, own = time.perf_counter(), processor_time(pids), used()
        bundle = json.loads(run("rename", name, new, "--json"))
        now = used()
        spent = now.ru_utime + now.ru_stime - own.ru_utime - own.ru_stime
        wall = time.perf_counter() - began
        same = pids if processes() == pids else []
        return wall, spent + processor_time(same) - before if same else float("nan"), bundle

    server, graph = Server(options.server_command, root), import_graph(root)
    times: dict[str, list[tuple[float, ...]]] = {}
    facts = {}
    names = options.names + (sample(root, options.sample, options.seed) if options.sample else [])
    for round_number in range(options.rounds):
        for name in names:
            # Another name each time, so that no answer is one of the memo.
            new = f"{'_' if re.search(r'[.#]_[^.#]*$', name) else ''}renamed_{os.getpid()}_{round_number}"
            own, own_processor, bundle = preview(name, new)
            if (bundle.get("edits") or {}).get("diagnostics") is None:
                if round_number == 0:
                    print(f"{name}: {bundle['error']['message']}", flush=True)
                continue
            place = bundle["resolution"]["resolved"]
            texts = edited_texts(root, bundle)
            old = re.split(r"[.#]", name)[-1]
            compared = bundle["edits"]["diagnostics"]["files_checked"]
            files = {*texts, *files_with(root, [old, new])}
            more = [path for path in importers(graph, set(texts)) if path not in files]
            files = sorted([*files, *more[: max(0, compared - len(files))]])
            line, character = place["range"][0], place["range"][1]
            began, before = time.perf_counter(), processor_time([server.process.pid])
            server.rename(root / place["uri"], line, character, new, files, texts)
            bare, bare_processor = time.perf_counter() - began, processor_time([server.process.pid]) - before
            edits = sum(len(change["edits"]) for change in bundle["edits"]["workspaceEdit"]["documentChanges"])
            facts[name] = (edits, len(texts), compared, len(files))
            if round_number > 0:
                times.setdefault(name, []).append((own, bare, own_processor, bare_processor))
    ratios = []
    for name, rounds in times.items():
        own, bare, own_processor, bare_processor = (statistics.median(one[index] for one in rounds) for index in range(4))
        edits, changed, compared, files = facts[name]
        # Clock ticks are 10 ms.
        ratios.append((own / bare, own_processor / max(bare_processor, 0.01), (own - 0.1) / bare))
        print(
            f"{name}: {edits} edits in {changed} files, {compared} compared (bare: {files}); {own * 1000:.0f} ms, bare {bare * 1000:.0f} ms, "
            f"ratio {own / bare:.2f}; processor {own_processor * 1000:.0f} ms, bare {bare_processor * 1000:.0f} ms"
        )
    print("median ratio {:.2f}, of processor time {:.2f}, of all but 100 ms {:.2f}".format(*map(statistics.median, zip(*ratios))))
    server.process.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
