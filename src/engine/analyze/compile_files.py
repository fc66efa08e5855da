# Parses and compiles Python files without executing them. Reads their paths, one JSON string per line, from standard
# input, and writes one JSON object per file to standard output as soon as it is done.
import ast
import io
import json
import os
import stat
import sys
import tokenize
import warnings

MEMORY_BYTES = 4 << 30
FILE_BYTES = 64 << 20
# With the name of a file, the compiler would read the file again and count columns in its bytes.
NAME = "<source>"


def limit():
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, OSError, ValueError):
        pass


def compiler_unit():
    # The parser counts columns in characters. Errors found later count bytes, in the versions known so far.
    try:
        compile('"\u00e9"; return', "unit", "exec", dont_inherit=True)
    except SyntaxError as error:
        return "utf-8" if error.offset == 7 else "codepoint"
    return "codepoint"


def read(path):
    # Not a named pipe, which would block.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        source = file.read(FILE_BYTES + 1)
    if len(source) > FILE_BYTES:
        raise OSError("the file is too large")
    return source


def decoded(source):
    # In bytes, the parser counts columns in neither bytes nor characters (measured on CPython 3.11).
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(source).readline)[0]
        return source.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        # The compiler reports the error itself.
        return source


def error_of(error, unit):
    found = {"code": type(error).__name__, "severity": "error", "unit": unit}
    if isinstance(error, SyntaxError):
        found["message"] = str(error.msg)
        found["start"] = [error.lineno or 1, error.offset or 1]
        end = (getattr(error, "end_lineno", None), getattr(error, "end_offset", None))
        found["end"] = [end[0] or found["start"][0], end[1] or found["start"][1]]
    else:
        # Deep nesting and null bytes have no place.
        found["message"] = str(error) or "the file is too complex for the compiler"
        found["start"] = found["end"] = [1, 1]
    return found


def check(path, unit):
    try:
        source = decoded(read(path))
    except OSError as error:
        return {"path": path, "findings": [], "unreadable": error.strerror or str(error)}
    findings = []
    with warnings.catch_warnings(record=True) as caught:
        try:
            warnings.simplefilter("ignore")
            compile(source, NAME, "exec", flags=ast.PyCF_ONLY_AST, dont_inherit=True)
            phase = unit
            warnings.simplefilter("always")
            compile(source, NAME, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
            findings.append(error_of(error, locals().get("phase", "codepoint")))
    for warning in caught:
        found = {"code": warning.category.__name__, "severity": "warning", "message": str(warning.message)}
        found["line"] = warning.lineno or 1
        if found not in findings:
            findings.append(found)
    return {"path": path, "findings": findings}


limit()
unit = compiler_unit()
for line in sys.stdin.buffer:
    print(json.dumps(check(json.loads(line), unit)), flush=True)
