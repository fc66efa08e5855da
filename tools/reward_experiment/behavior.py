"""Confirms what the edits of `fixtures/reward/excerpts*.json` and `packages*.json` do: repairs behave as the code did before the injected mistake,
all other edits do not. Run as `python tools/reward_experiment/behavior.py SET…`; exits 1 if an edit is not what it says."""
import json
import os
import subprocess
import sys
import tempfile

import packages


def raises(kind, call):
    try:
        call()
    except kind:
        return True
    return False


def c1():
    from clickpart.formatting import wrap_text
    text = "one two three four five"
    assert wrap_text(text, 12, "  ") == "  one two\nthree four\nfive", wrap_text(text, 12, "  ")
    assert wrap_text("a\n\nb", 12, preserve_paragraphs=True) == "a\n\nb"
    assert wrap_text("a\n\nb", 12, "  ") == "  a\n\nb"


def c2():
    from clickpart.formatting import HelpFormatter
    assert HelpFormatter().width == 78 and HelpFormatter(width=30).width == 30 and HelpFormatter(max_width=60).width == 58


def c3():
    from clickpart.formatting import HelpFormatter
    formatter = HelpFormatter(width=40)
    formatter.write_dl([("--a", "first"), ("--long", "second")])
    assert formatter.getvalue() == "--a     first\n--long  second\n", formatter.getvalue()


def c4():
    from clickpart.formatting import join_options
    assert join_options(["--zoo", "-b", "-a"]) == ("-b, -a, --zoo", False)
    assert join_options(["/x"]) == ("/x", True)


def f1():
    from flaskpart.config import Config
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "c.py")
        open(path, "w").write("A = 1\nb = 2\n")
        config = Config(where)
        assert raises(RuntimeError, lambda: config.from_envvar("LABS_UNSET"))
        assert config.from_envvar("LABS_UNSET", silent=True) is False
        os.environ["LABS_SET"] = path
        assert config.from_envvar("LABS_SET") is True and dict(config) == {"A": 1}


def f2():
    import json
    from flaskpart.config import Config
    with tempfile.TemporaryDirectory() as where:
        open(os.path.join(where, "c.json"), "w").write('{"A": 1, "b": 2}')
        config = Config(where)
        assert config.from_file("c.json", json.load) is True and dict(config) == {"A": 1}
        assert config.from_file("d.json", json.load, silent=True) is False


def f3():
    from flaskpart.config import Config
    config = Config("", {"A_ONE": 1, "A_TWO": 2, "B": 3})
    assert config.get_namespace("A_") == {"one": 1, "two": 2}
    assert config.get_namespace("A_", lowercase=False, trim_namespace=False) == {"A_ONE": 1, "A_TWO": 2}
    assert config.get_namespace("A_", trim_namespace=False) == {"a_one": 1, "a_two": 2}


def f4():
    from flaskpart.config import Config
    with tempfile.TemporaryDirectory() as where:
        config = Config(where)
        assert config.from_pyfile("absent.py", silent=True) is False
        assert config.from_file("absent", lambda stream: {}, silent=True) is False
        assert raises(FileNotFoundError, lambda: config.from_pyfile("absent.py"))


def s1():
    from datetime import datetime, timedelta, timezone
    from flaskpart.sessions import App, Session, SessionInterface
    for app in (App({}), App({}, 3600), App({}, timedelta(hours=1))):
        session = Session(_permanent=True)
        try:
            found = SessionInterface().get_expiration_time(app, session)
        except TypeError:
            continue
        left = found - datetime.now(timezone.utc)
        assert timedelta(minutes=59) < left <= timedelta(hours=1)
    assert SessionInterface().get_expiration_time(App({}), session) is not None
    assert SessionInterface().get_expiration_time(App({}), Session()) is None


def s2():
    from flaskpart.sessions import App, NullInterface, SessionInterface, load
    assert issubclass(NullInterface, SessionInterface)
    assert load(NullInterface(), App({}), {"a": "b"}) is None


def s3():
    from flaskpart.sessions import App, SignedSessionInterface
    app = App({})
    assert SignedSessionInterface().sign(app, "x") == ""
    app.secret_key = "k"
    import hashlib
    assert SignedSessionInterface().sign(app, "x") == hashlib.sha256(b"kcookie-sessionx").hexdigest()


def r1():
    from requestspart.structures import CaseInsensitiveDict
    found = CaseInsensitiveDict({"Accept": "a", "Host": "b"})
    assert list(found.lower_items()) == [("accept", "a"), ("host", "b")] and found == {"ACCEPT": "a", "host": "b"}


def r2():
    from requestspart.structures import CaseInsensitiveDict
    found = CaseInsensitiveDict({"Accept": "a"})
    other = found.copy()
    assert dict(other.items()) == {"Accept": "a"} and other is not found


def r3():
    from requestspart.utils import default_headers
    assert default_headers()["User-Agent"] == "python-requests/2.32.5"


def r4():
    from requestspart.utils import urldefragauth
    assert urldefragauth("http://me:pw@host/p;a?q=1#f") == "http://host/p;a?q=1"


def i1():
    from inventory.orders import Order, reserve
    from inventory.stock import Item, Stock
    stock = Stock().add(Item("bolt", 5))
    assert reserve(stock, Order("bolt", 2)) == 3 and reserve(stock, Order("nut", 2)) == -2


def i2():
    from inventory.stock import Item, Stock
    stock = Stock().add(Item("bolt", 1)).add(Item("nut", 9))
    assert [item.name for item in stock.scarce()] == ["bolt"]


def i3():
    # The module is imported by itself, since `stock` has another mistake.
    from inventory.stock import Item, Stock
    Stock.scarce = lambda self: [item for item in self.items.values() if item.count < 3]
    from inventory.report import demo
    assert demo() == "bolt: 2"
    assert raises(TypeError, lambda: Item(count=2))


# Mistakes because of which nothing in their file runs, with what mends them for the tests of the others.
MENDED = {
    "f4": ("flaskpart/config.py", "import json\n", "import errno\nimport json\n"),
    "r4": ("requestspart/utils.py", "import urlparse, urlunprase", "import urlparse, urlunparse"),
}


def behaves(base, edit):
    files = dict(base)
    for path, swaps in edit.get("swap", {}).items():
        for old, new in swaps:
            assert old in files[path], (edit["name"], old)
            files[path] = files[path].replace(old, new, 1)
    files.update(edit.get("files", {}))
    mistake = edit["name"].split("-")[0]
    for other, (path, old, new) in MENDED.items():
        if other != mistake and path in files:
            files[path] = files[path].replace(old, new, 1)
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            path = os.path.join(folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as stream:
                stream.write(text)
        run = [sys.executable, "-B", __file__, "--in", folder, mistake]
        try:
            # Some mistakes never end.
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 5}
            return subprocess.run(run, **quiet).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def main():
    if sys.argv[1] == "--in":
        sys.path.insert(0, sys.argv[2])
        (globals().get(sys.argv[3]) or getattr(packages, sys.argv[3]))()
        return 0
    wrong = []
    for path in sys.argv[1:]:
        with open(path) as stream:
            edits = json.load(stream)
        for edit in edits["edits"]:
            if behaves(edits["base"], edit) != (edit["kind"] == "fix"):
                wrong.append(edit["name"])
    print(f"{len(wrong)} edits are not what they say: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
