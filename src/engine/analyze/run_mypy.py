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


def limit():
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
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
        _, _, blocked = mypy.main.run_build(sources, options, cache, 0.0, output, complaints)[:3]
    except SystemExit as exit:
        sys.stderr.write(output.getvalue() + complaints.getvalue())
        return exit.code if isinstance(exit.code, int) and exit.code else 2
    sys.stdout.write(output.getvalue())
    report = {"scope": scope, "plugins": plugins, "blocked": blocked}
    # A failure without findings, such as a file that cannot be read, is text.
    report["failure"] = complaints.getvalue() if blocked and not output.getvalue().strip() else ""
    sys.stdout.write("\n" + json.dumps({"report": report}) + "\n")
    return 0


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
        # With its native parser, mypy 2.4.1 reports wrong columns after characters that are not ASCII.
        "native_parser": False,
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
