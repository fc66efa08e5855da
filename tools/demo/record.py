#!/usr/bin/env python3
"""Writes docs/demo.svg: a terminal recording of lanser on fixtures/inventory.

    cargo build && python3 tools/demo/record.py [--lanser PATH]

The commands run in a copy of the project, which is a git repository; the recording shows their real output. Lines appear one
after the other by CSS animation, and all of them are visible where SVG animations do not run or the reader prefers less motion.
"""

import argparse
import html
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = [
    "lanser refs py://inventory#Stock.scarce",
    "lanser rename py://inventory#Stock.scarce shortages --apply",
    "lanser undo",
    "lanser refs py://inventory#Stock.add",
]

# In pixels, and seconds. A typical monospace glyph is 0.6 em wide.
FONT, LINE, MARGIN, TITLE = 14, 20, 16, 28
GLYPH = FONT * 0.602
AFTER_COMMAND, AFTER_OUTPUT, PER_LINE, AT_THE_END = 0.9, 1.8, 0.12, 6.0


def record(lanser):
    """The lines of the recording: (kind, text), where kind is `command` or `output`."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder, "inventory")
        shutil.copytree(ROOT / "fixtures/inventory", project)
        me = {f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env = {**os.environ, **me, "PATH": f"{lanser.parent}{os.pathsep}{os.environ['PATH']}", "LANSER_SESSION": "on"}

        def run(command):
            done = subprocess.run(
                command, shell=True, cwd=project, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            if done.returncode != 0:
                raise SystemExit(f"{command}: exit {done.returncode}\n{done.stdout}")
            return done.stdout

        run("git init -q && git add -A && git commit -q -m all")
        try:
            for command in COMMANDS:
                lines.append(("command", command))
                lines.extend(("output", line) for line in run(command).rstrip("\n").split("\n"))
        finally:
            run("lanser session stop")
    return lines


def schedule(lines):
    """The second at which each line appears, and the length of a round."""
    times, now = [], 0.5
    for number, (kind, _) in enumerate(lines):
        times.append(now)
        ends = number + 1 == len(lines) or lines[number + 1][0] == "command"
        now += AFTER_COMMAND if kind == "command" else AFTER_OUTPUT if ends else PER_LINE
    return times, now + AT_THE_END


def styled(kind, text):
    """A line as SVG text: prompt, locations and statements about completeness have classes."""
    if kind == "command":
        return f'<tspan class="prompt">$</tspan> <tspan class="command">{html.escape(text)}</tspan>'
    text = html.escape(text)
    text = re.sub(r"^([\w./-]+:\d+:\d+)", r'<tspan class="path">\1</tspan>', text)
    text = re.sub(r"(\[unresolved: [^]]*\]|\bnot complete\b)", r'<tspan class="warning">\1</tspan>', text)
    return re.sub(r", (complete)$", r', <tspan class="good">\1</tspan>', text)


def svg(lines):
    times, length = schedule(lines)
    width = round(max(len(text) + 2 for _, text in lines) * GLYPH) + 2 * MARGIN
    height = TITLE + 2 * MARGIN + LINE * len(lines) + LINE * (len(COMMANDS) - 1) // 2
    rules, texts, y = [], [], TITLE + MARGIN + FONT
    for number, ((kind, text), at) in enumerate(zip(lines, times)):
        if kind == "command" and number:
            y += LINE // 2
        percent = 100 * at / length
        rules.append(f"@keyframes l{number} {{ 0%, {percent:.2f}% {{ opacity: 0 }} {percent + 0.01:.2f}%, 100% {{ opacity: 1 }} }}")
        animation = f"animation: l{number} {length:.1f}s step-end infinite"
        texts.append(f'<text x="{MARGIN}" y="{y}" style="{animation}">{styled(kind, text)}</text>')
        y += LINE
    circles = "".join(
        f'<circle cx="{MARGIN + 4 + 18 * n}" cy="{TITLE // 2}" r="5" fill="{color}"/>'
        for n, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    style = "\n".join(
        [
            f"text {{ font: {FONT}px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #c9d1d9; white-space: pre }}",
            ".prompt { fill: #3fb950 } .command { fill: #ffffff; font-weight: bold } .path { fill: #79c0ff }",
            ".warning { fill: #e3b341 } .good { fill: #3fb950 }",
            *rules,
            "@media (prefers-reduced-motion: reduce) { text { animation: none !important } }",
        ]
    )
    title = "lanser finds references, renames, undoes, and says when an answer is incomplete"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{title}</title>",
            f"<style>\n{style}\n</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
            circles,
            *texts,
            "</svg>\n",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description="Writes docs/demo.svg.")
    parser.add_argument("--lanser", type=pathlib.Path, default=ROOT / "target/debug/lanser", help="the binary to run")
    lines = record(parser.parse_args().lanser.resolve())
    (ROOT / "docs/demo.svg").write_text(svg(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
