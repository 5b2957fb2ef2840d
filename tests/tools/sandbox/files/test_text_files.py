import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.files.text_files import (
    LongLines,
    excerpt,
    line_span,
    newline_style,
    replace_lines,
    split_lines,
)

TEXTS = st.text(st.sampled_from("ab \n\r\u2028\x0b"), max_size=40)


@given(TEXTS)
def test_lines_put_together_are_the_text(text: str) -> None:
    assert "".join(split_lines(text)) == text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a\n"]),
        ("\n\n", ["\n", "\n"]),
        ("a\r\nb", ["a\r\n", "b"]),
        ("a\rb\r", ["a\r", "b\r"]),
        ("a\rb\nc", ["a\rb\n", "c"]),
        ("a\u2028b\x0bc\x0cd\n", ["a\u2028b\x0bc\x0cd\n"]),
    ],
)
def test_lines_end_where_editors_end_them(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


@pytest.mark.parametrize(
    ("text", "style"),
    [("a", "none"), ("a\n", "lf"), ("a\r\n", "crlf"), ("a\rb", "cr"), ("a\r\nb\n", "mixed")],
)
def test_the_newline_style_is_told(text: str, style: str) -> None:
    assert newline_style(text) == style


@pytest.mark.parametrize(
    ("ranges", "total", "span"),
    [
        ([1, 3], 10, (1, 3)),
        ([1, 99], 10, (1, 10)),
        ([-3, -1], 10, (8, 10)),
        ([-99, -1], 10, (1, 10)),
        ([2, -2], 10, (2, 9)),
        ([10, 10], 10, (10, 10)),
    ],
)
def test_numbers_mean_the_lines_that_there_are(
    ranges: list[int], total: int, span: tuple[int, int]
) -> None:
    assert line_span(ranges, total, exact=False) == span


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    "ranges", [[0, 1], [1, 0], [3, 2], [11, 12], [-1, -2], [-1, 1], [1, -11], [0, 0]]
)
def test_lines_that_do_not_exist_are_named(ranges: list[int], *, exact: bool) -> None:
    with pytest.raises(InvalidArgumentsError, match="there are 10"):
        line_span(ranges, 10, exact=exact)


@pytest.mark.parametrize("ranges", [[1, 11], [-11, -1], [-99, 5]])
def test_lines_to_be_replaced_have_to_exist(ranges: list[int]) -> None:
    with pytest.raises(InvalidArgumentsError):
        line_span(ranges, 10, exact=True)


@given(TEXTS.filter(bool), TEXTS, st.data())
def test_replacing_lines_keeps_all_others(text: str, content: str, drawn: st.DataObject) -> None:
    lines = split_lines(text)
    start = drawn.draw(st.integers(1, len(lines)))
    end = drawn.draw(st.integers(start, len(lines)))
    changed = replace_lines(text, start, end, content)
    assert changed.startswith("".join(lines[: start - 1]))
    assert changed.endswith("".join(lines[end:]))
    if content and end == len(lines):
        ended = lines[-1].endswith(("\n", "\r"))
        assert ended <= changed.endswith(("\n", "\r"))


@pytest.mark.parametrize(
    ("text", "span", "content", "changed"),
    [
        ("a\nb\nc\n", (2, 2), "B", "a\nB\nc\n"),
        ("a\nb\nc\n", (2, 2), "B\n", "a\nB\nc\n"),
        ("a\nb\nc\n", (2, 2), "B1\nB2\n", "a\nB1\nB2\nc\n"),
        ("a\nb\nc\n", (2, 2), "", "a\nc\n"),
        ("a\nb\nc", (3, 3), "C\n", "a\nb\nC"),
        ("a\nb\nc\n", (3, 3), "C", "a\nb\nC\n"),
        ("a\r\nb\r\nc", (1, 1), "A\nAA", "A\r\nAA\r\nb\r\nc"),
        ("a\r\nb\r\nc", (2, 2), "B\r\n", "a\r\nB\r\nc"),
        ("a\r\nb\nc\r\nd\r\n", (3, 3), "C\nCC", "a\r\nb\nC\r\nCC\r\nd\r\n"),
        ("a\r\nb\nc\n", (1, 1), "A", "A\r\nb\nc\n"),
        ("a\rb\rc", (2, 2), "B\n", "a\rB\rc"),
        ("only", (1, 1), "new", "new"),
        ("only", (1, 1), "", ""),
    ],
)
def test_new_lines_end_as_the_text_does(
    text: str, span: tuple[int, int], content: str, changed: str
) -> None:
    assert replace_lines(text, *span, content) == changed


def test_an_excerpt_holds_whole_lines_or_the_beginning_of_one() -> None:
    lines = ["12345\n", "12\n", "1234567890"]
    assert excerpt("".join(lines), 1, 3, limit=100).content == "".join(lines)
    shown = excerpt("".join(lines), 1, 3, limit=9)
    assert (shown.content, shown.last, shown.cut) == ("12345\n12\n", 2, True)
    shown = excerpt("".join(lines), 3, 3, limit=4)
    assert (shown.content, shown.first, shown.last, shown.cut) == ("1234", 3, 3, True)
    shown = excerpt("".join(lines), 2, 2, limit=3)
    assert (shown.content, shown.cut) == ("12\n", False)
    shown = excerpt("", 1, 0, limit=3)
    assert (shown.content, shown.first, shown.last, shown.cut) == ("", 0, 0, False)


@given(TEXTS.filter(bool), st.data())
def test_an_excerpt_has_as_many_lines_as_fit(text: str, drawn: st.DataObject) -> None:
    lines = split_lines(text)
    first = drawn.draw(st.integers(1, len(lines)))
    last = drawn.draw(st.integers(first, len(lines)))
    limit = drawn.draw(st.integers(1, len(text) + 1))
    shown = excerpt(text, first, last, limit=limit)
    fits = [n for n in range(first, last + 1) if len("".join(lines[first - 1 : n])) <= limit]
    if fits:
        assert shown.content == "".join(lines[first - 1 : fits[-1]])
    else:
        assert shown.content == lines[first - 1][:limit]
    assert (shown.first, shown.last) == (first, fits[-1] if fits else first)
    assert shown.cut == (fits[-1:] != [last])


def test_lines_that_went_away_since_they_were_counted_are_empty(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"line\n" * 500_000)
    with path.open("rb") as file:
        lines = LongLines(file.fileno(), 2_500_000, b"\n")
        assert (lines.total, lines.read(499_999, 500_000, 99)) == (500_000, b"line\nline\n")
        os.truncate(path, 7)
        assert lines.read(499_999, 500_000, 99) == b""
        assert lines.read(1, 2, 99) == b"line\nli"
