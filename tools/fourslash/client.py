"""A client of a language server on standard input and output."""

import json
import pathlib
import queue
import subprocess
import threading
import time
from typing import Any, BinaryIO

CAPABILITIES = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {
        "synchronization": {"didSave": True},
        "declaration": {},
        "definition": {},
        "typeDefinition": {},
        "references": {},
        "hover": {"contentFormat": ["markdown"]},
        "rename": {"prepareSupport": True},
        "callHierarchy": {},
        "diagnostic": {},
        "publishDiagnostics": {"relatedInformation": True, "tagSupport": {"valueSet": [1, 2]}},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor", "source"]}},
            "resolveSupport": {"properties": ["edit"]},
            "dataSupport": True,
        },
    },
    "workspace": {
        "workspaceFolders": True,
        "configuration": True,
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
    },
}


class ServerError(Exception):
    """The server answered with an error, or not at all."""


class Client:
    """A running server. `python` is what it reads as configuration, which a server other than lanser needs."""

    def __init__(self, command: list[str], folder: pathlib.Path, python: pathlib.Path, timeout: float):
        self.python, self.timeout, self.number = python, timeout, 0
        # What the server sent without a request since the last request.
        self.notifications: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self.process.stdin and self.process.stdout
        self.input = self.process.stdin
        self.received: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()
        root = {"uri": folder.as_uri(), "name": folder.name}
        self.request(
            "initialize",
            {"processId": None, "rootUri": root["uri"], "workspaceFolders": [root], "capabilities": CAPABILITIES},
        )
        self.notify("initialized", {})

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.request("shutdown", None)
            self.notify("exit", None)
            self.process.wait(10)
        except (ServerError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
        self.process.wait()

    def _read(self, stream: BinaryIO) -> None:
        while True:
            length = 0
            while (line := stream.readline()).strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not line:
                return self.received.put(None)
            self.received.put(json.loads(stream.read(length)))

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.input.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.input.flush()

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        self.number += 1
        self.notifications = []
        self._send({"id": self.number, "method": method, "params": params})
        end = time.monotonic() + self.timeout
        while True:
            try:
                message = self.received.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise ServerError(f"no answer to {method} within {self.timeout:.0f} s") from None
            if message is None:
                raise ServerError(f"the server ended with {self.process.wait()}")
            if "method" in message and "id" in message:
                self._send({"id": message["id"], "result": self._configuration(message)})
            elif "method" in message:
                self.notifications.append(message)
            elif message["id"] == self.number:
                if "error" in message:
                    raise ServerError(message["error"]["message"])
                return message["result"]

    def _configuration(self, message: dict[str, Any]) -> Any:
        """The answer to a request of the server."""
        if message["method"] != "workspace/configuration":
            return None
        python = {"pythonPath": str(self.python), "analysis": {}}
        ty = {"configuration": {"environment": {"python": str(self.python)}}}
        sections = {"python": python, "python.analysis": {}, "ty": ty}
        return [sections.get(item.get("section", ""), {}) for item in message["params"]["items"]]
