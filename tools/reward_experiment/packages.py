"""What the code of `fixtures/reward/packages*.json` does where a mistake was injected: one check for each mistake, for behavior.py."""

import asyncio
import os
import tempfile
import threading
from dataclasses import dataclass
from typing import Optional


@dataclass
class Ed:
    size: Optional[int] = None
    ratio: int = 1
    minimum_size: int = 1


def m1():
    from pkg.ratio import ratio_resolve as f

    assert f(10, [Ed(10), Ed(None, 2, 5)]) == [10, 5]
    assert f(10, [Ed(12), Ed(None, 3, 0)]) == [12, 1]
    assert f(110, [Ed(), Ed(20), Ed()]) == [45, 20, 45]


def m2():
    from pkg.ratio import ratio_distribute as f

    assert f(10, [1, 1, 1]) == [4, 3, 3]
    assert f(2, [1, 1, 1]) == [1, 1, 0]
    assert f(10, [1, 1], [6, 1]) == [6, 4]
    assert f(10, [1, 1], [0, 1]) == [0, 10]


def m3():
    from pkg.queues import Queue

    async def main():
        q = Queue()
        out = []
        await q.put(1)
        await q.put(2)

        async def use():
            async for x in q:
                out.append(x)
                assert len(out) < 9
                if x == 4:
                    return

        t = asyncio.ensure_future(use())
        await asyncio.sleep(0.01)
        q._queue.append(3)
        q._queue.append(4)  # put without the getter branch (m4)
        if q._getters:
            g = q._getters.popleft()
            g.set_result(q._get())
        await asyncio.wait_for(t, 1)
        assert out == [1, 2, 3, 4], out

    asyncio.run(main())


def m4():
    from pkg.queues import Queue

    async def main():
        q = Queue()
        f = q.get()
        q.put_nowait(5)
        assert await asyncio.wait_for(f, 0.5) == 5
        assert q.qsize() == 0 and not q._getters
        q.put_nowait(6)
        assert q.qsize() == 1 and await q.get() == 6

    asyncio.run(main())


def m5():
    from pkg.queues import PriorityQueue

    async def main():
        q = PriorityQueue()
        for x in (5, 3, 1, 4):
            q.put_nowait(x)
        assert [q.get_nowait() for _ in range(4)] == [1, 3, 4, 5]
        assert q.empty()

    asyncio.run(main())


def m6():
    from pkg.ranges import Range

    assert Range("bytes", [(0, 10)]).to_content_range_header(100) == "bytes 0-9/100"
    assert Range("bytes", [(-5, None)]).to_content_range_header(20) == "bytes 15-19/20"
    assert Range("x", [(0, 10)]).to_content_range_header(100) is None


def m7():
    from pkg.ranges import Range, ContentRange

    c = Range("bytes", [(2, 10)]).make_content_range(100)
    assert isinstance(c, ContentRange) and c.to_header() == "bytes 2-9/100"
    assert Range("x", [(0, 10)]).make_content_range(100) is None


def m8():
    from pkg.ranges import IfRange

    h = "Wed, 21 Oct 2015 07:28:00 GMT"
    i = IfRange.from_header(h)
    assert i.etag is None and i.to_header() == h and i.date.year == 2015
    assert IfRange.from_header('"abc"').to_header() == '"abc"'
    assert IfRange(date=i.date).to_header() == h


def m9():
    from pkg.timefmt import format_time as f

    m = {"%Y": "YYYY", "%m": "MM", "%-d": "D", "%d": "DD"}
    assert f("%Y-%m", m) == "YYYY-MM"
    assert f("%-d %d x%m", m) == "D DD xMM"
    assert f("", m) is None


def m10():
    from pkg.timefmt import merge_ranges as f

    assert f([(1, 3), (2, 6)]) == [(1, 6)]
    assert f([(1, 10), (2, 3), (12, 13), (13, 15)]) == [(1, 10), (12, 15)]


def m11():
    from pkg.timefmt import is_iso_date as d, is_iso_datetime as dt

    assert d("2020-01-02") and not d("2020-13-02") and not d("2020-01-02 10:00:00")
    assert dt("2020-01-02 10:00:00") and not dt("x")


def m12():
    from pkg.blocks import BlockState

    s = BlockState()
    s.process("ab\ncd\nef")
    for c, e in ((0, 3), (2, 3), (3, 6), (6, 8)):
        s.cursor = c
        assert s.find_line_end() == e


def m13():
    from pkg.blocks import BlockState

    s = BlockState()
    assert s.lazy_line_starts == set()
    s.lazy_line_starts.add(3)
    s.lazy_line_starts.add(3)
    assert s.lazy_line_starts == {3}
    assert s.child_state("x").lazy_line_starts == set()
    assert s.child_state("x", {1}).lazy_line_starts == {1}


def m14():
    from pkg.blocks import Parser

    r = ["a", "b"]
    Parser.insert_rule(r, "c", before="b")
    assert r == ["a", "c", "b"]
    Parser.insert_rule(r, "d", before="zz")
    Parser.insert_rule(r, "e")
    assert r == ["a", "c", "b", "d", "e"]


def toks(*pairs):
    from pkg.tokens import Token

    return [Token(i + 1, a, b) for i, (a, b) in enumerate(pairs)]


def stream(*pairs, name="n", filename="f"):
    from pkg.tokens import TokenStream

    return TokenStream(toks(*pairs), name, filename)


def n1():
    s = stream(("a", "1"), ("b", "2"), ("c", "3"))
    x, y = toks(("x", "x"), ("y", "y"))
    s.push(x)
    s.push(y)
    assert next(s).type == "a" and s.current is x
    next(s)
    assert s.current is y
    next(s)
    assert s.current.type == "b"
    assert s.look().type == "c" and s.current.type == "b"


def n2():
    s = stream(("a", "1"), ("b", "2"), ("c", "3"))
    assert s.skip_if("b") is False and s.current.type == "a"
    assert s.skip_if("a") is True and s.current.type == "b"
    assert s.skip_if("b:2") is True and s.current.type == "c"


def n3():
    s = stream(("a", "1"), ("b", "2"))
    got = []
    for t in s:
        got.append(t.value)
        assert len(got) < 5
    assert got == ["1", "2"] and s.closed and s.eos
    assert tuple(s.current) == (2, "eof", "") and s.current.value == ""


def n4():
    from pkg.tokens import TemplateSyntaxError

    s = stream(("a", "1"), ("b", "2"), name="nam", filename="fil")
    assert s.expect("a").value == "1"
    try:
        s.expect("c")
    except TemplateSyntaxError as e:
        assert (e.lineno, e.name, e.filename) == (2, "nam", "fil")
        assert str(e) == "expected token 'c', got 'b' (line 2 of fil)"
    else:
        raise AssertionError


def buf():
    from pkg.autosuggest import Buffer
    from pkg.history import InMemoryHistory

    h = InMemoryHistory()
    h.append_string("hello there")
    h.append_string("help me\nhello world")
    return Buffer(h)


def n5():
    from pkg.autosuggest import AutoSuggest, ThreadedAutoSuggest, Suggestion
    from pkg.document import Document

    seen = []

    class S(AutoSuggest):
        def get_suggestion(self, buffer, document):
            seen.append(threading.get_ident())
            return Suggestion(document.text + "!")

    async def main():
        r = await ThreadedAutoSuggest(S()).get_suggestion_async(buf(), Document("q"))
        assert isinstance(r, Suggestion) and r.text == "q!" and seen[0] != threading.get_ident()

    asyncio.run(main())


def n6():
    from pkg.autosuggest import AutoSuggest, DummyAutoSuggest, DynamicAutoSuggest, Suggestion
    from pkg.document import Document

    class S(AutoSuggest):
        def get_suggestion(self, buffer, document):
            return Suggestion("s")

    b, d = buf(), Document("hel")
    assert DummyAutoSuggest().get_suggestion(b, d) is None
    assert DynamicAutoSuggest(lambda: None).get_suggestion(b, d) is None
    assert asyncio.run(DynamicAutoSuggest(lambda: None).get_suggestion_async(b, d)) is None
    assert DynamicAutoSuggest(S).get_suggestion(b, d).text == "s"
    try:
        AutoSuggest()
    except TypeError:
        pass
    else:
        raise AssertionError("abstract")


def n7():
    from pkg.autosuggest import AutoSuggestFromHistory as F, Suggestion
    from pkg.document import Document

    r = F().get_suggestion(buf(), Document("x\nhel"))
    assert isinstance(r, Suggestion) and r.text == "lo world"
    assert F().get_suggestion(buf(), Document("help")).text == " me"
    assert (
        F().get_suggestion(buf(), Document(" ")) is None and F().get_suggestion(buf(), Document("zz")) is None
    )


def n8():
    from pkg.history import FileHistory

    p = os.path.join(tempfile.mkdtemp(), "h")
    h = FileHistory(p)
    h.store_string("one")
    h.store_string("zwö\ndrei €")
    assert list(FileHistory(p).load_history_strings()) == ["zwö\ndrei €", "one"]


def n9():
    from pkg.history import InMemoryHistory

    h = InMemoryHistory(["a", "b", "c"])
    assert list(h.load_history_strings()) == ["c", "b", "a"]

    async def main():
        return [x async for x in h.load()]

    assert asyncio.run(main()) == ["c", "b", "a"]
    assert h.get_strings() == ["a", "b", "c"]


def n10():
    from pkg.document import Document as D

    t = "ab\ncd\nef"
    assert [D(t, i).on_first_line for i in (0, 1, 2, 3, 4, 8)] == [True, True, True, False, False, False]


def n11():
    from pkg.document import Document as D

    assert D("ab\ncd\nef", 4).current_line_before_cursor == "c"
    assert D("abc", 2).current_line_before_cursor == "ab"
    assert D("ab\ncd\nef", 4).current_line == "cd"


def n12():
    from pkg.document import Document

    class D(Document):
        current_line = property(lambda self: self.text)  # (m11 is broken in the base)

    assert D("  \tab ").leading_whitespace_in_current_line == "  \t"
    assert D("ab   ").leading_whitespace_in_current_line == ""
    assert D("   ").leading_whitespace_in_current_line == "   "


def n13():
    from pkg.validate import OneOf

    assert list(OneOf([1, 2, 3], ["a", "b"]).options()) == [("1", "a"), ("2", "b"), ("3", "")]
    assert list(OneOf([1j], ["a"]).options("imag")) == [(1.0, "a")]


def bad(f, *a):
    from pkg.validate import ValidationError

    try:
        f(*a)
    except ValidationError as e:
        return str(e)
    raise AssertionError("no error")


def n14():
    from pkg.validate import Length as L

    assert L(max=3)("ab") == "ab" and L(min=2)("ab") == "ab" and L(min=1, max=2)([1]) == [1] and L()("") == ""
    assert bad(L(max=3), "abcd") == "Longer than maximum length 3."
    assert bad(L(min=3), "ab") == "Shorter than minimum length 3."
    assert bad(L(1, 2), "") == "Length must be between 1 and 2."


def n15():
    from pkg.validate import Range as R

    assert R(max=3)(3) == 3
    assert bad(R(max=3), 4) == "Must be less than or equal to 3."
    assert bad(R(max=3, max_inclusive=False), 3) == "Must be less than 3."
    assert bad(R(min=3), 2) == "Must be greater than or equal to 3."
    assert bad(R(1, 2), 3) == "Must be greater than or equal to 1 and less than or equal to 2."


def n16():
    from pkg.srcutils import split_lines as f

    assert f("a\fb\nc", True) == ["a\fb\n", "c"]
    assert f("a\nb\n", True) == ["a\n", "b\n", ""]
    assert f("a\x0bb\x1cc\nd\f", True) == ["a\x0bb\x1cc\n", "d\f"]
    assert f("a\fb\nc") == ["a\fb", "c"]


def n17():
    from pkg.srcutils import parse_version_string as f

    assert f("3.8") == (3, 8) and f("3.10.1") == (3, 10) and f("3") == (3, 6) and f("2") == (2, 7)
    assert f("3.10") > f("3.9")
