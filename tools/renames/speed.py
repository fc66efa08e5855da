"""How long previews of renames take, beside a bare client of the same server.

    python3 tools/renames/speed.py --lanser target/release/lanser --server-command PYRIGHT_LANGSERVER --project DIR NAME...

Each NAME is a selector `py://pkg.mod#function`. The bare client asks the server for the references and the rename, shows it the
edited texts and asks for the diagnostics of the files that lanser compares, all in one process that stays warm, after one
warm-up name. lanser answers in a session, after the same warm-up. Both are asked every name once per round, in turn, so that a
busy machine slows both; the first round is not counted. Prints a line for each name and the median ratio.
"""

import argparse
import json
import os
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
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    root = options.project.resolve()
    lanser = [str(Path(options.lanser).resolve())]

    def preview(name: str, new: str) -> tuple[float, dict]:
        began = time.perf_counter()
        output = subprocess.run([*lanser, "rename", name, new, "--json"], cwd=root, capture_output=True, text=True)
        return time.perf_counter() - began, json.loads(output.stdout)

    server = Server(options.server_command, root)
    ratios = []
    times: dict[str, list[tuple[float, float]]] = {}
    facts = {}
    for round_number in range(options.rounds):
        for name in options.names:
            # Another name each time, so that no answer is one of the memo.
            new = f"renamed_{os.getpid()}_{round_number}"
            own, bundle = preview(name, new)
            if bundle.get("edits") is None:
                print(f"{name}: {bundle['error']}", file=sys.stderr)
                return 1
            place = bundle["resolution"]["resolved"]
            texts = edited_texts(root, bundle)
            # A name of a module: the files that were compared are the edited ones, unless the bundle has others.
            files = sorted(texts)
            line, character = place["range"][0], place["range"][1]
            began = time.perf_counter()
            server.rename(root / place["uri"], line, character, new, files, texts)
            bare = time.perf_counter() - began
            edits = sum(len(change["edits"]) for change in bundle["edits"]["workspaceEdit"]["documentChanges"])
            facts[name] = (edits, len(files), bundle["edits"]["diagnostics"]["files_checked"])
            if round_number > 0:
                times.setdefault(name, []).append((own, bare))
    for name, pairs in times.items():
        own, bare = (statistics.median(pair[index] for pair in pairs) for index in (0, 1))
        ratios.append(own / bare)
        edits, files, checked = facts[name]
        print(f"{name}: {edits} edits in {files} files, {checked} compared; {own * 1000:.0f} ms, bare {bare * 1000:.0f} ms, ratio {own / bare:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}")
    server.process.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
