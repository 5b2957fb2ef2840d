import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.sandbox.files.text_files import split_lines
from tools.sandbox.search.content import MAX_SHOWN, cut, lines_of, text_of


def text_lines(data: bytes) -> list[str] | None:
    text = text_of(data)
    return None if text is None else lines_of(text)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\r", ["a", "b"]),
        (b"a\rb\nc", ["a\rb", "c"]),
        (b"a\x0bb\xc2\x85c\n", ["a\x0bb\x85c"]),
        (codecs.BOM_UTF8 + b"a\n", ["a"]),
        (codecs.BOM_UTF16_LE + "ä\r\nb".encode("utf-16-le"), ["ä", "b"]),
        (codecs.BOM_UTF16_BE + "ä\nb".encode("utf-16-be"), ["ä", "b"]),
        ("ä\n".encode("latin-1") + "ö\n".encode(), ["ä", "ö"]),
        (b"a\0b\n", None),
        (b"x" * 8192 + b"\0\n", ["x" * 8192 + "\0"]),
    ],
)
def test_bytes_are_read_as_lines(data: bytes, lines: list[str] | None) -> None:
    assert text_lines(data) == lines


@given(st.text(alphabet="ab\r\n\u2028é", max_size=30))
def test_lines_are_counted_as_read_file_counts_them(text: str) -> None:
    assert len(text_lines(text.encode()) or []) == len(split_lines(text))


@given(st.binary(max_size=200))
def test_any_bytes_are_lines_or_binary(data: bytes) -> None:
    lines = text_lines(data)
    assert lines is None or all("\n" not in line for line in lines)


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 500))
def test_a_long_line_is_cut_around_what_was_found(before: int, after: int, width: int) -> None:
    line = "x" * before + "M" * width + "y" * after
    shown = cut(line, before, before + width)
    assert len(shown) <= MAX_SHOWN + 2
    assert shown.strip("…") in line
    assert shown.count("M") == min(width, MAX_SHOWN)
