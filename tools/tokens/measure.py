"""Counts the tokens that a model reads for one task, by each way of using lanser, by grep and sed, and by the bare language server.

The task: find the callers of a method, rename it with its overrides, check the result, undo it. The tokens are those of what each
step returns; what the model writes is left out.

    npm install gpt-tokenizer@4.0.0
    PYTHONPATH=python python3 tools/tokens/measure.py --lanser PROGRAM --project CLONE --name Parameter.get_default \\
        --to resolve_default --at src/click/core.py:2445:9 --node-modules node_modules --ty TY

The clone has to be clean. `--at` is the definition of the method, for the requests of the protocol.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys


class Rpc:
    """A process that speaks JSON-RPC, on lines or with headers."""

    def __init__(self, command, folder, headers):
        self.headers = headers
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0

    def send(self, method, params, **more):
        text = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        framed = b"Content-Length: %d\r\n\r\n%s" % (len(text), text) if self.headers else text + b"\n"
        self.process.stdin.write(framed)
        self.process.stdin.flush()

    def receive(self):
        output = self.process.stdout
        if not self.headers:
            return json.loads(output.readline())
        length = 0
        while line := output.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(output.read(length))

    def request(self, method, params):
        """The response, and the messages for the user that came before it."""
        self.number += 1
        self.send(method, params, id=self.number)
        shown = []
        while True:
            message = self.receive()
            if "method" in message:
                if message["method"] == "window/showMessage":
                    shown.append(message["params"]["message"])
                elif "id" in message:
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": None}
                    text = json.dumps(answer).encode()
                    self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
                    self.process.stdin.flush()
            elif message["id"] == self.number:
                return message, shown

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


def shell(folder, *commands):
    """What commands print."""
    printed = []
    for command in commands:
        run = subprocess.run(command, cwd=folder, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        printed.append(run.stdout.decode())
    return printed


def by_shell(given):
    program, name, to = given.lanser, given.name, given.to
    return shell(
        given.project,
        f"{program} refs {name}",
        f"{program} rename {name} {to} --family",
        f"{program} rename {name} {to} --family --apply",
        f"{program} diag --new",
        f"{program} undo",
    )


def by_mcp(given, part):
    client = Rpc([*given.lanser.split(), "mcp"], given.project, headers=False)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "m", "version": "1"}}
    client.request("initialize", hello)
    client.send("notifications/initialized", {})
    tools = client.request("tools/list", {})[0]["result"]["tools"]
    given.tools = json.dumps([{key: tool[key] for key in ["name", "description", "inputSchema"]} for tool in tools])
    printed = []
    rename = {"selector": given.name, "new_name": given.to, "family": True}
    for tool, arguments in [
        ("refs", {"selector": given.name}),
        ("rename", rename),
        ("rename", {**rename, "apply": True}),
        ("diag", {"new": True}),
        ("undo", {}),
    ]:
        result = client.request("tools/call", {"name": tool, "arguments": arguments})[0]["result"]
        if part == "text":
            printed.append("\n".join(item.get("text", "") for item in result["content"]))
        else:
            printed.append(json.dumps(result["structuredContent"]))
    client.close()
    return printed


def by_protocol(given, command, family):
    """References, rename and diagnostics by a language server. The client applies the edit, and undoes it."""
    client = Rpc(command, given.project, headers=True)
    root = pathlib.Path(given.project).resolve()
    file, line, column = given.at.split(":")
    uri = (root / file).as_uri()
    capabilities = {
        "textDocument": {"diagnostic": {}, "rename": {"prepareSupport": True}},
        "workspace": {"workspaceEdit": {"documentChanges": True}},
    }
    client.request("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": capabilities})
    client.send("initialized", {})
    text = (root / file).read_text()
    client.send("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "python", "version": 1, "text": text}})
    at = {"textDocument": {"uri": uri}, "position": {"line": int(line) - 1, "character": int(column) - 1}}
    printed = []

    def answer(method, params):
        message, shown = client.request(method, params)
        printed.append("\n".join([*shown, json.dumps(message.get("result", message.get("error")))]))
        return message.get("result")

    answer("textDocument/references", {**at, "context": {"includeDeclaration": True}})
    edit = answer("textDocument/rename", {**at, "newName": given.to}) or {}
    changed = {change["textDocument"]["uri"]: change["edits"] for change in edit.get("documentChanges", [])}
    changed.update(edit.get("changes", {}))
    for place, edits in changed.items():
        path = root / place.removeprefix(root.as_uri() + "/")
        lines = path.read_text().splitlines(keepends=True)
        for one in sorted(edits, key=lambda one: str(one["range"]["start"]["line"]).zfill(9) + str(one["range"]["start"]["character"]).zfill(9), reverse=True):
            start, end = one["range"]["start"], one["range"]["end"]
            text = lines[start["line"]]
            lines[start["line"]] = text[: start["character"]] + one["newText"] + text[end["character"] :]
        path.write_text("".join(lines))
    for place in sorted(changed):
        path = root / place.removeprefix(root.as_uri() + "/")
        document = {"uri": place, "languageId": "python", "version": 2, "text": path.read_text()}
        if place == uri:
            change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": document["text"]}]}
            client.send("textDocument/didChange", change)
        else:
            client.send("textDocument/didOpen", {"textDocument": document})
        answer("textDocument/diagnostic", {"textDocument": {"uri": place}})
    given.renamed[family] = places(given)
    shell(given.project, "git checkout -q .")
    client.close()
    return printed


def by_python(given):
    script = f"""
import lanser
with lanser.Workspace(".", program={given.lanser.split()[0]!r}, server="ty") as workspace:
    uses = workspace.refs({given.name!r})
    print(uses.completeness.status, *(use.at for use in uses.value))
    preview = workspace.rename({given.name!r}, {given.to!r}, family=True)
    print(preview.value.diff)
    workspace.rename({given.name!r}, {given.to!r}, family=True, apply=True)
    new = workspace.diag(new=True)
    print(*(found.at + " " + found.message for found in new.value.items))
    workspace.undo()
"""
    run = subprocess.run([sys.executable, "-c", script], cwd=given.project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return [run.stdout.decode()]


def by_grep_and_sed(given):
    old = given.name.rsplit(".", 1)[-1]
    printed = shell(
        given.project,
        f"grep -rnw --include='*.py' {old} .",
        f"grep -rlw --include='*.py' {old} . | xargs sed -i 's/\\b{old}\\b/{given.to}/g'",
        "git diff",
        "python3 -m compileall -q .",
    )
    given.renamed["grep and sed"] = places(given)
    shell(given.project, "git checkout -q .")
    return printed


def places(given):
    """How many places have the new name, in code that Git knows."""
    diff = shell(given.project, "git diff -U0")[0]
    return sum(len(re.findall(rf"\b{given.to}\b", line)) for line in diff.splitlines() if re.match(r"\+(?!\+\+)", line))


def tokens(given, texts):
    """The tokens of texts, by the encoding o200k_base."""
    module = pathlib.Path(given.node_modules).resolve() / "gpt-tokenizer/esm/encoding/o200k_base.js"
    script = f"""
import {{ countTokens }} from {json.dumps(module.as_uri())};
let text = ""; for await (const part of process.stdin.setEncoding("utf8")) text += part;
console.log(JSON.stringify(JSON.parse(text).map((one) => countTokens(one))));
"""
    run = subprocess.run(["node", "--input-type=module", "-e", script], input=json.dumps(texts).encode(), stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ["lanser", "project", "name", "to", "at", "node-modules", "ty"]:
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    given.renamed = {}
    own = given.lanser.split()
    ways = {
        "shell": lambda: by_shell(given),
        "MCP, text": lambda: by_mcp(given, "text"),
        "MCP, structured": lambda: by_mcp(given, "structured"),
        "LSP": lambda: by_protocol(given, [*own, "lsp", "--rename-family"], "LSP"),
        "Python": lambda: by_python(given),
        "grep and sed": lambda: by_grep_and_sed(given),
        "bare ty server": lambda: by_protocol(given, [given.ty, "server"], "bare ty server"),
    }
    print("| way | answers | tokens | bytes |\n|---|---|---|---|")
    for way, run in ways.items():
        printed = run()
        counts = tokens(given, printed)
        print(f"| {way} | {' + '.join(map(str, counts))} | {sum(counts)} | {sum(len(text.encode()) for text in printed)} |", flush=True)
    print("\nrenamed:", given.renamed)
    skill = shell(given.project, f"{own[0]} skill print")[0]
    print("once for each session: SKILL.md and the list of tools:", tokens(given, [skill, given.tools]))


main()
