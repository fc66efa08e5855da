# Runs mypy. Reads a request as JSON from standard input; writes mypy's JSON lines and then one line about the run.
import io
import json
import os
import sys

MEMORY_BYTES = 16 << 30
# mypy's own (`mypy.main.RECURSION_LIMIT`).
RECURSION_LIMIT = 2**14
# The oldest version of Python that mypy 2.4 can check for.
OLDEST_PYTHON = (3, 10)
EMPTY = {"scope": "requested", "plugins": [], "blocked": False, "native": False, "outside": [], "unrecorded": []}
EMPTY.update({"rejected": [], "failure": ""})


def limit():
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        # The process that started this one has a lower limit.
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    except (ImportError, OSError, ValueError):
        pass


def main():
    request = json.load(sys.stdin)
    guarded = request["guarded"]
    if request["package"] is not None:
        sys.path.insert(0, request["package"])
    limit()
    sys.setrecursionlimit(RECURSION_LIMIT)
    import mypy.config_parser
    import mypy.main
    import mypy.options
    import mypy.pyinfo
    from mypy.fscache import FileSystemCache

    arguments = ["-O", "json", "--config-file", request["config"], "--cache-dir", os.devnull, "--no-pretty"]
    arguments += ["--show-error-end", "--show-error-codes", "--hide-error-context", "--no-error-summary"]
    if guarded:
        # mypy must not run an interpreter that the configuration names, to ask for its packages.
        arguments += ["--python-executable", sys.executable]
        mypy.pyinfo.getsearchdirs = lambda: (request["search_path"], request["site_packages"])
        version = configured_version(mypy, request)
        if version is not None:
            arguments += ["--python-version", "%d.%d" % version]
    complaints, output = io.StringIO(), io.StringIO()
    cache = FileSystemCache()

    def options_of(targets, required):
        return mypy.main.process_options(
            arguments + targets, stdout=complaints, stderr=complaints, require_targets=required, fscache=cache
        )

    try:
        sources, options = options_of([], False) if request["whole"] else ([], None)
        scope = "configured" if request["whole"] else "requested"
        if not sources:
            targets = ["."] if request["whole"] else request["files"]
            sources, options = options_of(["--"] + targets, True)
        plugins = harmless(options, guarded)
        outside = [] if request["trusted"] else outside_of_workspace(sources, options)
        if outside:
            sys.stdout.write(json.dumps({"report": dict(EMPTY, outside=outside)}) + "\n")
            return 0
        rejected, complaints = complaints.getvalue(), io.StringIO()
        result, _, blocked = mypy.main.run_build(sources, options, cache, 0.0, output, complaints)[:3]
    except SystemExit as exit:
        sys.stderr.write(output.getvalue() + complaints.getvalue())
        return exit.code if isinstance(exit.code, int) and exit.code else 2
    sys.stdout.write(output.getvalue())
    report = dict(EMPTY, scope=scope, plugins=plugins, blocked=blocked)
    report["native"] = getattr(options, "native_parser", False)
    report["unrecorded"] = unrecorded(result, request, mypy)
    # Warnings are about the style of the configuration; everything else was not understood, and ignored.
    lines = dict.fromkeys(line.strip() for line in rejected.splitlines())
    report["rejected"] = [line for line in lines if line and not line.startswith("Warning:")]
    # A failure without findings, such as a file that cannot be read, is text.
    report["failure"] = complaints.getvalue() if blocked and not output.getvalue().strip() else ""
    sys.stdout.write("\n" + json.dumps({"report": report}) + "\n")
    return 0


def is_inside(path, folder):
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def outside_of_workspace(sources, options):
    """What the configuration makes mypy read outside of the workspace, the current folder."""
    root = os.path.realpath(os.curdir)
    named = [("mypy_path", path) for path in options.mypy_path]
    named += [("custom_typeshed_dir", options.custom_typeshed_dir)] if options.custom_typeshed_dir else []
    named += [("files", source.path) for source in sources if source.path]
    return sorted({name for name, path in named if not is_inside(os.path.realpath(path), root)})


def unrecorded(result, request, mypy):
    """The files that were read and are neither files of the workspace, nor of its environment, nor of mypy."""
    root = os.path.realpath(os.curdir)
    known = [os.path.realpath(os.path.dirname(mypy.__file__))]
    known += [os.path.realpath(path) for path in request["search_path"] + request["site_packages"]]
    found = set()
    # mypy 2.4 wraps its result.
    graph = getattr(getattr(result, "_result", result), "graph", {})
    for state in graph.values():
        path = os.path.realpath(state.path) if state.path else root
        if is_inside(path, root):
            parts = os.path.relpath(path, root).split(os.sep)
            if any(part.startswith(".") and part != "." or part in ("node_modules", "__pycache__") for part in parts):
                if not any(is_inside(path, folder) for folder in known):
                    found.add(os.path.relpath(path, root))
        elif not any(is_inside(path, folder) for folder in known):
            found.add("a file outside of the workspace")
    return sorted(found)


def configured_version(mypy, request):
    options = mypy.options.Options()
    if request["python_version"] is not None:
        options.python_version = tuple(request["python_version"])
    if request["config"]:
        nowhere = io.StringIO()
        mypy.config_parser.parse_config_file(options, lambda: None, request["config"], nowhere, nowhere)
    return options.python_version if options.python_version >= OLDEST_PYTHON else None


def harmless(options, guarded):
    """Resets what writes files, waits for input or runs programs, and what changes the form of the output."""
    values = {
        "cache_dir": os.devnull,
        "junit_xml": None,
        "report_dirs": {},
        "timing_stats": None,
        "line_checking_stats": None,
        "install_types": False,
        "non_interactive": False,
        "pdb": False,
        "num_workers": 0,
        "verbosity": 0,
        "show_absolute_path": False,
        "fast_exit": False,
    }
    for name, value in values.items():
        if hasattr(options, name):
            setattr(options, name, value)
    if not guarded:
        return []
    plugins, options.plugins = list(options.plugins), []
    if options.no_site_packages:
        options.python_executable = None
    return plugins


code = main()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
