"""Injects faults at random while lanser answers three requests at a time.

    python3 tools/chaos/chaos.py target/release/lanser PROJECT --servers CACHE/servers [--other OLDER] [--calls N] [--seed S]
        [--server KIND] [--only PATH...] [--uid U] [--edit-limit SECONDS] [--details FILE]

A copy of PROJECT (or of its --only paths) lies on a small tmpfs, together with cache, state and sockets. refs, def, hover, diag,
`rename --apply` and `undo` are called there while processes are killed or stopped, the disk is full, folders are read-only, the
clock jumps (libfaketime; only for calls without a session, which has an environment of its own), and an OLDER binary shares
everything. As root the calls run as --uid; without root no disk is filled. CACHE/servers is where lanser has installed servers.

Checked is that each caller ends within its limit and ten seconds; that its exit code is 0 or a documented error; that what is
answered is what a process without session and memo answers about the same files; that after each edit, also a killed one, the
next call leaves all of it or nothing; and that in the end no process and no temporary file is left, and `undo` leads back to the
beginning. Exit code 1 on any violation. The seed repeats the choices, not what the machine makes of them.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import glob
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

LIMIT, BEYOND, LEFT = 10, 10, 60  # seconds: a caller's limit, how much later it may end, after which nothing may be left
FAULTS = {64, 65, 66, 71, 73, 74}  # what a broken machine may lead to; any other error must be the question's own
STRUCK = [f"{how} {kind}" for how in ("kill", "stop") for kind in ("session", "supervisor", "server", "caller")]
LOCKS = [f"lock {folder}" for folder in ("work", "cache", "state")]


class Call(threading.Thread):
    """A caller, and what became of it."""

    def __init__(self, sandbox, words, limit, binary=None, **env):
        super().__init__()
        self.words, self.limit, self.old, self.paused, self.killed = words, limit, bool(binary), 0.0, False
        command = [binary or sandbox.binary, *words, "--json", "--timeout", str(limit)]
        command = command[:-2] if words[0] == "undo" else command
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "umask": 0o022}
        self.began = time.monotonic()
        self.process = subprocess.Popen(command, cwd=sandbox.work, env={**sandbox.env, **env}, **streams, **sandbox.user)
        self.pid = self.process.pid
        self.start()

    def run(self):
        try:
            out, err = self.process.communicate(timeout=self.limit + 120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
        self.took = time.monotonic() - self.began - self.paused
        self.code, self.err = self.process.returncode, err.decode(errors="replace")
        self.bundle = json.loads(out) if out.endswith(b"}\n") else {}
        self.error = (self.bundle.get("error") or {}).get("message", "")

    def answered(self):
        return self.code, (self.bundle.get("status"), self.bundle.get("facts")) if self.code == 0 else None


class Sandbox:
    """A workspace with a cache, a state and a runtime folder of its own."""

    def __init__(self, binary, root, user, servers=None, kind="pyright"):
        self.binary, self.root, self.work, self.user = binary, root, root / "work", user
        for name in ["work", "cache", "state", "run", "tmp", "home"]:
            (root / name).mkdir(parents=True, mode=0o700)
        if servers:
            shutil.copytree(servers, root / "cache" / "servers", symlinks=True)
        self.env = {"PATH": os.environ["PATH"], "LANSER_SESSION": "on", "LANSER_SESSION_IDLE": "30", "LANSER_SERVER": kind}
        folders = {"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "LANSER_CACHE_DIR": "cache"}
        self.env |= {name: str(root / folder) for name, folder in folders.items()}

    def own(self):
        for path in [self.root, *self.root.rglob("*")] if self.user else []:
            os.chown(path, self.user["user"], self.user["group"], follow_symlinks=False)

    def read(self):
        """Every file's mode and content, and the names that are an edit's own."""
        files, temporary = {}, []
        for path in sorted(self.work.rglob("*")):
            name = str(path.relative_to(self.work))
            with contextlib.suppress(OSError):
                if path.name.startswith(".lanser-"):
                    temporary.append(name)
                elif path.is_file():
                    files[name] = (path.stat().st_mode & 0o7777, path.read_bytes())
        return files, temporary

    def processes(self):
        """Those that have the sandbox's folder in their environment or command, by id."""
        found, marker = {}, os.fsencode(self.root) + b"/"
        for entry in os.scandir("/proc"):
            with contextlib.suppress(OSError):
                words = pathlib.Path(entry.path, "cmdline").read_bytes() if entry.name.isdigit() else b""
                if words and marker in words + pathlib.Path(entry.path, "environ").read_bytes():
                    server = "server" if b"langserver" in words or words.endswith(b"/ty\0server\0") else "caller" if b"--json" in words else "other"
                    session = "session" if b"\0proper\0" in words else "supervisor"
                    found[int(entry.name)] = session if b"__session" in words else server
        return found


def digest(files):
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()


class Reference:
    """What is right: asked of the same contents elsewhere, where nothing is broken, without session and memo."""

    def __init__(self, binary, root, user, servers, kind):
        self.sandbox, self.known, self.pool = Sandbox(binary, root, user, servers, kind), {}, concurrent.futures.ThreadPoolExecutor(2)
        self.sandbox.own()

    def ask(self, files, words):
        """A future with the call, and the contents that it leaves."""
        key = (digest(files), *words)
        if key not in self.known:
            self.known[key] = self.pool.submit(self.answer, files, words, str(len(self.known)))
        return self.known[key]

    def answer(self, files, words, name):
        sandbox = Sandbox(self.sandbox.binary, self.sandbox.root / name, self.sandbox.user)
        sandbox.env |= {"LANSER_SESSION": "off"} | {name: self.sandbox.env[name] for name in ["LANSER_CACHE_DIR", "LANSER_SERVER"]}
        for path, (mode, content) in files.items():
            (sandbox.work / path).parent.mkdir(parents=True, exist_ok=True)
            (sandbox.work / path).write_bytes(content)
            (sandbox.work / path).chmod(mode)
        sandbox.own()
        call = Call(sandbox, [*words, "--no-cache"], 100)
        call.join()
        call.after = sandbox.read()[0]
        shutil.rmtree(sandbox.root)
        return call


class Chaos:
    def __init__(self, given, base, user):
        self.given, self.base, self.calls, self.violations, self.stopped = given, base, [], [], {}
        self.outcomes, self.struck = collections.defaultdict(collections.Counter), collections.Counter()
        self.sandbox = Sandbox(given.binary, base / "disk", user, given.servers, given.server)
        for name in given.only or [name for name in os.listdir(given.project) if name != ".git"]:
            source, target = given.project / name, self.sandbox.work / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)
        self.sandbox.own()
        self.right = Reference(given.binary, base / "right", user, given.servers, given.server)
        library = next(iter(glob.glob("/usr/lib*/*/faketime/libfaketimeMT.so.1") + glob.glob("/usr/lib*/faketime/libfaketimeMT.so.1")), None)
        self.clock = {"LD_PRELOAD": library, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1", "FAKETIME_NO_CACHE": "1"}
        print("the clock jumps" if library else "no libfaketime: the clock does not jump")
        self.start = self.before = self.sandbox.read()[0]
        self.edits, self.undone = [], None  # (words, files before) of each edit that stands; (id, words) of the last undo
        self.choose(random.Random(given.seed))

    def choose(self, rng):
        """Questions that have an answer, and two renames that are not refused."""
        texts = {path: content.decode() for path, (_, content) in sorted(self.start.items()) if path.endswith(".py")}
        column = lambda path, at: f"{texts[path].count(chr(10), 0, at) + 1}:{at - texts[path].rfind(chr(10), 0, at)}"
        found = lambda pattern: [(m[1], path, m.start(1)) for path, text in texts.items() for m in re.finditer(pattern, text, re.M)]
        names, uses = found(r"^ *(?:async )?(?:def|class) (\w+)"), found(r"\.([a-z]\w+)\(")
        asked = [["refs", *name] for name in rng.sample(names, 6)] + [["hover", *name] for name in rng.sample(names, 6)]
        asked += [["def", *use] for use in rng.sample(uses, 6)]
        asked = [[verb, f"{path}:{column(path, at)}"] for verb, _, path, at in asked]
        asked += [["diag", path] for path in rng.sample(sorted(texts), 3)]
        answers = [(words, self.right.ask(self.start, words)) for words in asked]
        self.questions, self.renames = [words for words, call in answers if call.result().code == 0], []
        count = collections.Counter(name for name, *_ in names)
        for name, path, at in rng.sample(names, len(names)):
            held = sum(bool(re.search(rf"\b{name}\b", text)) for text in texts.values())
            if count[name] == 1 and 2 <= held <= 15 and not name.startswith("__") and len(self.renames) < 2:
                words = ["rename", f"{path}:{column(path, at)}", f"{name}_chaos", "--apply"]
                call = self.right.ask(self.start, words).result()
                if len({*call.after.items()} - {*self.start.items()}) > 1:
                    self.renames.append(words)
        print(f"{len(self.questions)} questions; {self.renames}")

    def violate(self, what, **details):
        self.violations.append(what)
        print(f"VIOLATION {what}")
        if self.given.details:
            with open(self.given.details, "a") as out:
                out.write(json.dumps({"what": what, **details}) + "\n")

    def call(self, words, binary=None, **env):
        limit = self.given.edit_limit if words[0] == "rename" else LIMIT
        self.calls.append(Call(self.sandbox, words, limit, binary, **env))
        return self.calls[-1]

    def signal(self, pid, number):
        with contextlib.suppress(OSError):
            os.kill(pid, number)

    def resume(self, pid):
        _, since, call = self.stopped.pop(pid)
        self.signal(pid, signal.SIGCONT)
        if call:
            call.paused += time.monotonic() - since

    def strike(self, kind, calls, rng, lasts, victim=None):
        """Breaks something; gives what mends it, unless time does."""
        how, what = kind.split()
        if how in ("kill", "stop"):
            fit = [pid for pid, is_a in sorted(self.sandbox.processes().items()) if is_a == what and pid not in self.stopped]
            pid = victim if victim and what == "caller" else rng.choice(fit or [None])
            self.struck[kind] += pid is not None
            call = next((call for call in calls if call.pid == pid), None)
            if pid and how == "stop":
                self.signal(pid, signal.SIGSTOP)
                self.stopped[pid] = (lasts and time.monotonic() + lasts, time.monotonic(), call)
            elif pid:
                if call:
                    call.killed = True
                self.signal(pid, signal.SIGKILL)
            return None
        self.struck[kind] += 1
        if how == "fill":
            filler = self.sandbox.root / "filler"
            with contextlib.suppress(OSError), open(filler, "ab", buffering=0) as out:
                while out.write(bytes(65536)) == 65536:
                    pass
            os.truncate(filler, max(filler.stat().st_size - rng.choice([0, 0, 4096, 16384, 65536]), 0))
            return lambda: filler.unlink(missing_ok=True)
        folders = [path for path in (self.sandbox.root / what).rglob("*") if path.is_dir() and "servers" not in path.parts]
        some = rng.sample(folders, rng.randint(0, len(folders))) if rng.random() < 0.5 else folders
        modes = [(path, path.stat().st_mode & 0o7777) for path in [self.sandbox.root / what, *some] if path.is_dir()]
        for path, mode in modes:
            path.chmod(mode & 0o555)
        return lambda: [path.chmod(mode) for path, mode in modes if path.is_dir()]

    def play(self, number):
        """One round: three calls, and what breaks meanwhile."""
        rng = random.Random(f"{self.given.seed} {number}")
        edit, target, standing = None, None, [words for words, _ in self.edits]
        if self.renames and rng.random() < 0.45:
            rename = rng.choice([words for words in self.renames if words not in standing] or [None])
            if self.edits and (not rename or rng.random() < 0.6):
                edit, target = ["undo"], self.edits[-1][1]
            elif self.undone and rng.random() < 0.7:  # what undoes an undo makes the edit again
                edit, target = ["undo", self.undone[0]], self.right.ask(self.before, self.undone[1]).result().after
            else:
                edit, target = rename, self.right.ask(self.before, rename).result().after
        kinds, plan, mend, clocks = STRUCK + LOCKS + ["fill disk"] * 3 * os.path.ismount(self.sandbox.root), [], [], []
        for kind in rng.choices(kinds, k=rng.choices([0, 1, 2], [1, 6, 3])[0]):
            at = "write" if edit and rng.random() < 0.7 else rng.choice([-1, rng.uniform(0, 0.2), rng.uniform(0, 3)])
            plan.append((at, kind, rng.choice([1, 3, 6, None]), rng.choice(["new", "open", "closing"]), rng.uniform(0, 0.004)))
        label = f"seed {self.given.seed} round {number}, {[(kind, at) for at, kind, *_ in plan]}"
        for step in [step for step in plan if step[0] == -1]:
            plan.remove(step)
            mend.append(self.strike(step[1], [], rng, step[2]))
        calls = [self.call(edit)] if edit else []
        for words in rng.choices(self.questions, k=3 - len(calls)):
            other = self.given.other if rng.random() < 0.15 else None
            env = {"LANSER_SESSION": "off"} if rng.random() < 0.2 else {}
            if env and self.clock["LD_PRELOAD"] and rng.random() < 0.7:
                clocks.append(self.base / f"clock{len(self.calls)}")
                clocks[-1].write_text(rng.choice(["+3d", "-3d", "+20y", "-2h"]))
                env |= {**self.clock, "FAKETIME_TIMESTAMP_FILE": str(clocks[-1])}
            self.struck["jump clock"] += len(env) > 1
            self.struck["older binary"] += bool(other)
            calls.append(self.call([*words, "--no-cache"] if rng.random() < 0.6 else words, other, **env))
        states, began, seen, jump = [self.before], time.monotonic(), 0.0, rng.uniform(0.1, 2)
        states += [target] if edit else []
        journals = f"{self.sandbox.root}/state/lanser/transactions/*/"
        while True:
            now = time.monotonic()
            for pid in [pid for pid, (until, *_) in self.stopped.items() if until and until < now]:
                self.resume(pid)
            busy = [call for call in calls if call.is_alive() and call.pid not in self.stopped]
            awaited = [step for step in plan if step[0] == "write" and calls[0] in busy]
            due = [step for step in plan if step not in awaited and (not busy or step[0] != "write" and began + step[0] < now)]
            if awaited and glob.glob(journals + awaited[0][3]):
                while time.monotonic() < now + awaited[0][4]:
                    pass
                self.signal(calls[0].pid, signal.SIGSTOP)
                self.struck["(while an edit was written)"] += bool(glob.glob(journals + "new") + glob.glob(journals + "[oc]*"))
                due = awaited[:1]
            for step in due:
                plan.remove(step)
                mend.append(self.strike(step[1], calls, rng, step[2], calls[0].pid if step in awaited else None))
                if step in awaited and calls[0].pid not in self.stopped:
                    states.append(self.sandbox.read()[0])
                    self.signal(calls[0].pid, signal.SIGCONT)
            if clocks and now > began + jump:
                clocks.pop().write_text(rng.choice(["+400d", "-400d", "-10s"]))
            if not busy and not plan:
                break
            if edit and not awaited and now - seen > 0.05:
                states += [files for files in [self.sandbox.read()[0]] if files not in states]
                seen = now
            time.sleep(0.0003 if awaited else 0.01)
        for call in [call for call in calls if call.is_alive()]:  # stopped ones
            if rng.random() < 0.5:
                call.killed = True
                call.process.kill()
            if call.pid in self.stopped:
                self.resume(call.pid)
        for call in calls:
            call.join()
        for undo in filter(None, reversed(mend)):
            undo()
        states += [self.sandbox.read()[0]]
        for call in calls[bool(edit) :]:
            self.judge(call, label, states)
        if edit:
            self.settle(calls[0], label, rng, target)
        elif states[-1] != self.before:
            self.violate(f"{label}: questions changed the workspace")
            self.before = states[-1]

    def ended(self, call, label):
        """Whether a call ended as any may, and what it is called in messages."""
        name = f"{label}: {' '.join(call.words)}{' (older)' if call.old else ''}: exit {call.code} {call.error}"
        if call.took > call.limit + BEYOND:
            self.violate(f"{name}: took {call.took:.1f} s", err=call.err, env=str(call.process.args))
        if "panicked" in call.err:
            self.violate(f"{name}: {call.err[:300]}")
        return name, "killed" if call.killed and call.code == -9 else f"error {call.code}" if call.code in FAULTS else None

    def judge(self, call, label, states):
        """Whether a question got a right answer, or an error that says what is wrong."""
        name, outcome = self.ended(call, label)
        if not outcome and call.old:
            outcome = f"older: {call.code}"
        for number, files in enumerate(states):
            if not outcome and call.answered() == self.right.ask(files, call.words[:2]).result().answered():
                whole = number == 0 or files in (states[1], self.start)
                outcome = "right" if whole else "right for what was half written then"
        if not outcome:
            served_from = call.bundle.get("meta", {}).get("volatile", {}).get("served_from")
            right = [self.right.ask(files, call.words[:2]).result().bundle for files in states]
            self.violate(f"{name} ({served_from}), not as without a session", got=call.bundle, right=right, err=call.err)
        self.outcomes[call.words[0]][outcome or "WRONG"] += 1

    def settle(self, call, label, rng, target):
        """Whether the call after an edit finds all of it or nothing."""
        name, outcome = self.ended(call, label)
        following = self.call(rng.choice(self.questions), LANSER_SESSION=rng.choice(["on", "off"]))
        following.join()
        files, temporary = self.sandbox.read()
        self.judge(following, f"{label} (next)", [files])
        old, new, took_back = files == self.before, files == target, call.words == ["undo"]
        if not old and not new or temporary:
            half = [path for path in files if files[path] != self.before.get(path)]
            self.violate(f"{name}: half written after the next call: {half} {temporary}", got=call.bundle, err=call.err)
        elif outcome != "killed" and old != new and new != (call.code == 0):
            self.violate(f"{name}: and the edit is {'' if new else 'not '}there", got=call.bundle, err=call.err)
        elif not outcome and call.code and old != new:
            self.violate(f"{name}: neither done nor a fault of the machine", got=call.bundle, err=call.err)
        self.outcomes[call.words[0]][outcome or f"exit {call.code}"] += 1
        if not old and took_back:
            done = (call.bundle.get("edits") or {}).get("transaction") or {}
            self.undone = (done["id"], self.edits.pop()[0]) if done else self.edits.pop() and None
        elif not old:
            words = self.undone[1] if call.words[0] == "undo" else call.words
            self.edits, self.undone = [*self.edits, (words, self.before)], None
        self.before = files

    def finish(self):
        """Whether everything can be brought back, and goes."""
        for pid in list(self.stopped):
            self.resume(pid)
        for _ in range(len(self.edits) + 1):
            if self.sandbox.read()[0] != self.start:
                self.call(["undo"]).join()
        files, temporary = self.sandbox.read()
        if files != self.start or temporary:
            changed = [path for path in {*files, *self.start} if files.get(path) != self.start.get(path)]
            self.violate(f"in the end the workspace is not as it was: {changed} {temporary}: {self.calls[-1].error}")
        began = time.monotonic()
        while (left := self.sandbox.processes()) and time.monotonic() < began + LEFT:
            time.sleep(0.5)
        if left:
            self.violate(f"{LEFT} s after the last call there are {left}")
        print(f"after {time.monotonic() - began:.0f} s {len(left)} processes are left")
        for folder in ["run/lanser", "tmp"]:
            print(f"left in {folder}:", [path.name for path in (self.sandbox.root / folder).rglob("*")])

    def report(self):
        print(f"\n{len(self.calls)} calls, the slowest took {max(call.took for call in self.calls):.1f} s")
        for title, counts in [*sorted(self.outcomes.items()), ("disturbances", self.struck)]:
            print(f"{title:13}", ", ".join(f"{key} {value}" for key, value in sorted(counts.items())))
        print(f"violations    {len(self.violations)}", *self.violations, sep="\n  ")
        return 1 if self.violations else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("project", type=pathlib.Path)
    parser.add_argument("--other", type=os.path.abspath)
    parser.add_argument("--servers", type=pathlib.Path)
    parser.add_argument("--server", default="pyright")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--details", help="a file for the bundles of violations, one a line")
    for name, usual in [("--calls", 500), ("--seed", 1), ("--uid", 65534), ("--edit-limit", LIMIT)]:
        parser.add_argument(name, type=int, default=usual)
    given, chaos = parser.parse_args(), None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    sys.stdout.reconfigure(line_buffering=True)
    base = pathlib.Path(tempfile.mkdtemp(prefix="chaos-"))
    base.chmod(0o755)
    (base / "disk").mkdir()
    user = {"user": given.uid, "group": given.uid, "extra_groups": []} if os.geteuid() == 0 else {}
    if not user or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "chaos", base / "disk"]).returncode:
        print("no tmpfs: the disk is not filled")
    try:
        chaos = Chaos(given, base, user)
        for number in range(given.calls):
            if len(chaos.calls) < given.calls:
                chaos.play(number)
        chaos.finish()
        return chaos.report()
    finally:
        for pid in chaos.sandbox.processes() if chaos else []:
            chaos.signal(pid, signal.SIGKILL)
        if os.path.ismount(base / "disk"):
            subprocess.run(["umount", "-l", base / "disk"])
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
