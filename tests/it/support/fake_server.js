// A language server over stdio that answers everything normally, except as configured in behavior.json next to it.
"use strict";
const fs = require("fs");
const path = require("path");
const here = (name) => path.join(__dirname, name);
const behavior = JSON.parse(fs.readFileSync(here("behavior.json"), "utf8"));
const is = (what, method) => behavior[`${what} ${method}`];

fs.appendFileSync(here("pids"), `${process.pid}\n`);
if (behavior["ignores shutdown"]) {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
    setInterval(() => {}, 1000);
}

function send(message) {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    fs.writeSync(1, `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
const log = (message) => send({ method: "window/logMessage", params: { type: 3, message } });

function capabilities() {
    const offered = { textDocumentSync: 1, callHierarchyProvider: true, renameProvider: { prepareProvider: true } };
    for (const name of ["definition", "declaration", "typeDefinition", "implementation", "references", "hover",
        "documentSymbol", "workspaceSymbol", "codeAction"]) {
        offered[`${name}Provider`] = true;
    }
    for (const name of Object.keys(offered)) if (is("lack", name)) delete offered[name];
    for (const what of Object.keys(behavior)) if (what.startsWith("offer ")) offered[what.slice(6)] = behavior[what];
    if (behavior.encoding) offered.positionEncoding = behavior.encoding;
    return offered;
}

function answer(method, params) {
    const configured = is("answer", method);
    if (configured !== undefined) return configured;
    const uri = params && params.textDocument && params.textDocument.uri;
    const range = params && params.position && { start: params.position, end: params.position };
    switch (method) {
        case "initialize": return { capabilities: capabilities() };
        case "textDocument/hover": return { contents: { kind: "markdown", value: "said by the fake server" } };
        case "textDocument/definition":
        case "textDocument/declaration":
        case "textDocument/typeDefinition":
        case "textDocument/implementation":
        case "textDocument/references": return [{ uri, range }];
        case "textDocument/documentSymbol": return [];
        case "textDocument/diagnostic": return { kind: "full", items: [] };
        default: return null;
    }
}

const modified = {};
function receive(message) {
    const { id, method, params } = message;
    if (method === undefined) return;
    fs.appendFileSync(here("received"), `${method}\n`);
    const dying = is("die", method);
    if (dying) {
        fs.writeSync(2, `${dying.stderr.replace("$HERE", __dirname)}\n`);
        process.exit(dying.code);
    }
    if (is("garbage", method)) fs.writeSync(1, "<html>this is not a language server</html>\r\n\r\n");
    if (is("silent", method)) return fs.closeSync(1), setInterval(() => {}, 1000);
    if (method === "initialized") log("Found 1 source file");
    if (method === "exit" && !behavior["ignores shutdown"]) process.exit(0);
    if (id === undefined || is("hang", method)) return;
    if (method === "shutdown" && behavior["ignores shutdown"]) return;
    if ((modified[method] || 0) < (is("fail as modified", method) || 0)) {
        modified[method] = (modified[method] || 0) + 1;
        return send({ id, error: { code: -32801, message: "content modified" } });
    }
    if (is("fail", method)) return send({ id, error: { code: is("fail", method), message: "out of cheese" } });
    (is("edits on", method) || []).forEach((edit, n) =>
        send({ id: `edit ${n}`, method: "workspace/applyEdit", params: { edit } }));
    if (method === "initialize") log("Pyright language server 1.1.414 starting");
    const reply = () => send({ id, result: answer(method, params) });
    if (!is("wait", method)) return reply();
    fs.appendFileSync(here("received"), `waiting\n`);
    const timer = setInterval(() => {
        if (fs.existsSync(here("trigger"))) clearInterval(timer), reply();
    }, 10);
}

let buffer = Buffer.alloc(0);
process.stdin.on("data", (chunk) => {
    buffer = Buffer.concat([buffer, chunk]);
    for (;;) {
        const end = buffer.indexOf("\r\n\r\n");
        if (end < 0) return;
        const length = Number(/Content-Length: (\d+)/i.exec(buffer.toString("latin1", 0, end))[1]);
        if (buffer.length < end + 4 + length) return;
        const body = buffer.toString("utf8", end + 4, end + 4 + length);
        buffer = buffer.subarray(end + 4 + length);
        receive(JSON.parse(body));
    }
});
process.stdin.on("end", () => { if (!behavior["ignores shutdown"]) process.exit(0); });
