"""A pytest plugin that records which line calls which function.

    PYTHONPATH=tools/oracle LANSER_CALLS=calls.json python -m pytest -p lanser_calls …

Uses `sys.setprofile` (and `threading.setprofile`), and needs Python 3.11 for `co_qualname`. Only callers and callees in files
below the current folder are recorded. With pytest-xdist, each worker writes a separate file (`calls.json.gw0`, …).
"""

import json
import os
import sys
import threading

ROOT = os.getcwd() + os.sep
CALLS = {}
RECORDED_FILES = {}


def is_recorded(code):
    """Whether a code object comes from a file below the root that is not installed."""
    name = code.co_filename
    recorded = RECORDED_FILES.get(name)
    if recorded is None:
        recorded = RECORDED_FILES[name] = name.startswith(ROOT) and "site-packages" not in name and os.sep + "." not in name[len(ROOT) :]
    return recorded


def profile(frame, event, _argument):
    # A generator that resumes has executed an instruction before: that is not a call.
    if event != "call" or frame.f_lasti > 0:
        return
    caller = frame.f_back
    code = frame.f_code
    if caller is None or code.co_name.startswith("<") or not is_recorded(code) or not is_recorded(caller.f_code):
        return
    callee = (code.co_filename[len(ROOT) :], code.co_firstlineno, code.co_qualname)
    CALLS.setdefault(callee, set()).add((caller.f_code.co_filename[len(ROOT) :], caller.f_lineno))


def pytest_configure(config):
    threading.setprofile(profile)
    sys.setprofile(profile)


def pytest_runtest_setup(item):
    # A test may have removed the profile function.
    sys.setprofile(profile)


def pytest_unconfigure(config):
    sys.setprofile(None)
    path = os.environ.get("LANSER_CALLS", "calls.json")
    worker = getattr(config, "workerinput", None)
    if worker:
        path = f"{path}.{worker['workerid']}"
    rows = [[*callee, sorted(callers)] for callee, callers in sorted(CALLS.items())]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file)
