#!/usr/bin/env python3
"""Stands where node stands: skips node's flags and runs the script, with what every scripted server needs.

It is a file of its own, and not written by the tests, because a program that was just written cannot be started
while another thread's child still holds it open.
"""
import json, os, subprocess, sys, time

def read():
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line: sys.exit(1)
        if line == b"\r\n": break
        if line.startswith(b"Content-Length:"): length = int(line[15:])
    return json.loads(sys.stdin.buffer.read(length))

def write(**message):
    body = json.dumps(dict(jsonrpc="2.0", **message)).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()

def initialize():
    request = read()
    write(method="window/logMessage", params={"type": 3, "message": "basedpyright language server 1.40.1 starting"})
    write(id=request["id"], result={"capabilities": {"hoverProvider": True}})
    read()

exec(open(sys.argv[2]).read())
