"""Runs lanser on sources designed to be slow, at increasing sizes, and prints time and memory.

    python3 tools/hostile/sources.py target/release/lanser [--most BYTES] [--limit SECONDS] [KIND...]

Each kind of source is generated with N, 2 N and 4 N elements. A linear request takes about twice as long for twice the source; the
last line of each kind is the time per byte of the largest source relative to the smallest (1 is linear, 4 is quadratic here). Memory
is the peak of lanser and of the processes that it waited for, including the server, in MB.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

KINDS = {
    "definitions": lambda n: "".join(f"def f{i}(): ...\n" for i in range(n)) + "def f(): ...\n",
    "one line": lambda n: "x = [" + "1," * n + "]\ndef f(): ...\n",
    "attributes": lambda n: "x" + ".a" * n + "\ndef f(): ...\n",
    "calls": lambda n: "x" + "()" * n + "\ndef f(): ...\n",
    "sums": lambda n: "x = 1" + "+1" * n + "\ndef f(): ...\n",
    "brackets": lambda n: "x = " + "[" * n + "]" * n + "\ndef f(): ...\n",
    "open brackets": lambda n: "x = " + "(" * n + "\ndef f(): ...\n",
    "indentation": lambda n: "".join(" " * i + "if x:\n" for i in range(min(n, int((2 * n) ** 0.5)))) + "\ndef f(): ...\n",
    "nested definitions": lambda n: "".join(" " * i + f"def f{i}():\n" for i in range(min(n, int((2 * n) ** 0.5)))) + "\ndef f(): ...\n",
    "else": lambda n: "if x: ...\n" + "elif x: ...\n" * n + "def f(): ...\n",
    "same name": lambda n: "def f(): ...\n" + "f\n" * n,
    "same definition": lambda n: "def f(): ...\n" * n,
    "aliases": lambda n: "def f(): ...\na0 = f\n" + "".join(f"a{i + 1} = a{i}\n" for i in range(n)),
    "bases": lambda n: "class f: ...\n" + "class A0(f): ...\n" + "".join(f"class A{i + 1}(A{i}): ...\n" for i in range(n)),
    "imports": lambda n: "def f(): ...\n" + "".join(f"from m{i} import *\n" for i in range(n)),
    "strings": lambda n: "x = " + "'a' " * n + "\ndef f(): ...\n",
    "comments": lambda n: "#" * n + "\ndef f(): ...\n",
    "bytes": lambda n: "\x01" * n + "\ndef f(): ...\n",
    "decorators": lambda n: "@x\n" * n + "def f(): ...\n",
    "parameters": lambda n: "def f(" + ", ".join(f"p{i}" for i in range(n)) + "): ...\n",
    "f-strings": lambda n: "x = f'" + "{x}" * n + "'\ndef f(): ...\n",
    "nested f-strings": lambda n: "x = " + "f'{" * n + "1" + "}'" * n + "\ndef f(): ...\n",
    "lambdas": lambda n: "x = " + "lambda: " * n + "1\ndef f(): ...\n",
    "nonlocal": lambda n: "def f(): ...\n" + "".join(f"def s{i}():\n  f\n  f=1\n  def t(): nonlocal f; f\n" for i in range(n)),
    "patterns": lambda n: "def f(): ...\nmatch x:\n case " + "A(" * n + "f" + ")" * n + ": pass\n",
    "continued lines": lambda n: "def f(): ...\nx = 1 +" + "\\\n" * n + "f\n",
    "words of a string": lambda n: "'''" + ":func:`f` " * n + "'''\ndef f(): ...\n",
    "targets": lambda n: ", ".join(f"a{i}" for i in range(n)) + " = y\ndef f(): ...\n",
    "comprehensions": lambda n: "x = [1 " + "for x in x " * n + "]\ndef f(): ...\n",
}

QUESTIONS = {
    "locate": ["locate", "py://m#f"],
    "refs": ["refs", "py://m#f"],
    "rename": ["rename", "py://m#f", "g"],
}


def ask(binary, folder, args, limit):
    environment = {**os.environ, "LANSER_SESSION": "off"}
    command = [binary, *args, "--json", "--no-cache", "--timeout", str(limit)]
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    try:
        symbol = (json.loads(out)["error"] or {}).get("symbol", "")
    except (ValueError, KeyError):
        symbol = "no answer"
    return took, usage.ru_maxrss / 1024, process.returncode, symbol


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--most", type=int, default=1_000_000, help="approximate size of the largest source, in bytes")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--questions", default="locate,refs")
    parser.add_argument("kinds", nargs="*")
    given = parser.parse_intermixed_args()
    binary = str(pathlib.Path(given.binary).resolve())
    print(f"{'kind':20} {'question':8} {'bytes':>9} {'s':>7} {'MB':>6} exit  error")
    for kind, make in KINDS.items():
        if given.kinds and kind not in given.kinds:
            continue
        per_element = len(make(2_000)) / 2_000
        for name in given.questions.split(","):
            measured = []
            for share in (4, 2, 1):
                text = make(max(10, int(given.most / per_element / share)))
                with tempfile.TemporaryDirectory() as folder:
                    pathlib.Path(folder, "m.py").write_text(text)
                    took, memory, code, symbol = ask(binary, folder, QUESTIONS[name], given.limit)
                measured.append((len(text), took, memory))
                print(f"{kind:20} {name:8} {len(text):9} {took:7.2f} {memory:6.0f} {code:4}  {symbol}", flush=True)
            (small, first, _), (large, last, _) = measured[0], measured[-1]
            print(f"{'':20} {'':8} {(last / large) / (first / small):9.1f} times as long per byte", flush=True)


if __name__ == "__main__":
    main()
