"""The beginning and the end of an output are kept, in little memory, as a text of whole lines."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.sandbox.processes.capture import Capture, shares

NOTE = re.compile(r"\[… (\d+) bytes with (\d+) line ends are left out here …\]\n")


def captured(data: bytes, limit: int = 1_000, *, step: int = 65_536) -> Capture:
    capture = Capture(limit)
    for start in range(0, len(data), step):
        capture.feed(data[start : start + step])
    return capture


@pytest.mark.parametrize("size", [0, 1, 499, 500, 501, 999, 1_000])
@pytest.mark.parametrize("step", [1, 7, 65_536])
def test_what_fits_is_shown_as_it_is(size: int, step: int) -> None:
    data = (b"some words\r\n\t" * 100)[:size]
    excerpt = captured(data, step=step).excerpt(1_000)
    assert (excerpt.text, excerpt.omitted) == (data.decode(), 0)


def test_of_a_long_output_the_beginning_and_the_end_are_shown_in_whole_lines() -> None:
    lines = [f"line {number}\n" for number in range(100_000)]
    excerpt = captured("".join(lines).encode()).excerpt(1_000)
    head, size, count, tail = NOTE.split(excerpt.text)
    assert head.startswith("line 0\nline 1\n")
    assert tail.endswith("line 99998\nline 99999\n")
    assert head.count("\n") + int(count) + tail.count("\n") == len(lines)
    assert len(head) + int(size) + len(tail) == sum(map(len, lines))
    assert int(size) == excerpt.omitted
    assert set(head.splitlines(keepends=True)) | set(tail.splitlines(keepends=True)) <= set(lines)


def test_the_naive_ways_lose_the_end_or_keep_everything() -> None:
    data = b"x" * 1_000_000 + b"\nerror: it broke\n"
    assert "it broke" not in data[:1_000].decode()
    assert captured(data).excerpt(1_000).text.endswith("\nerror: it broke\n")


@given(
    data=st.text().map(str.encode) | st.binary(), limit=st.integers(2, 60), step=st.integers(1, 9)
)
def test_any_output_is_told_of_to_the_byte(data: bytes, limit: int, step: int) -> None:
    excerpt = captured(data, limit, step=step).excerpt(limit)
    if not excerpt.omitted:
        assert excerpt.text == data.decode("utf-8", "replace")
        return
    note = f"[… {excerpt.omitted} bytes with "
    head, _, tail = excerpt.text.partition(note)
    assert tail
    assert len(data) - limit <= excerpt.omitted <= len(data)
    assert data.decode("utf-8", "replace").startswith(head.rstrip("\n\ufffd"))


@given(text=st.text(st.sampled_from("aé€😀\n"), max_size=200), limit=st.integers(2, 100))
def test_no_character_is_cut_in_two(text: str, limit: int) -> None:
    shown = captured(text.encode(), 100, step=3).excerpt(limit).text
    assert "\ufffd" not in shown


@given(data=st.binary(max_size=300), limit=st.integers(2, 100))
def test_less_than_was_kept_can_be_shown(data: bytes, limit: int) -> None:
    excerpt = captured(data, 100, step=13).excerpt(limit)
    assert (excerpt.omitted > 0) == (len(data) > limit)
    assert len(NOTE.sub("", excerpt.text)) <= limit + 1


def test_half_a_gigabyte_costs_no_memory() -> None:
    block = b"0123456789abcde\n" * 4_096
    naive = bytearray()
    for _ in range(100):
        naive += block
    assert len(naive) > 6_000_000
    capture = Capture(22_000)
    tracemalloc.start()
    try:
        for _ in range(8_000):
            capture.feed(block)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert capture.size == 524_288_000
    assert peak < 1_000_000
    assert capture.excerpt(22_000).omitted > 524_000_000


@given(limit=st.integers(2, 1_000), first=st.integers(0, 2_000), second=st.integers(0, 2_000))
def test_two_outputs_share_what_there_is(limit: int, first: int, second: int) -> None:
    mine, yours = shares(limit, first, second)
    assert min(first, mine) + min(second, yours) <= limit
    if first + second <= limit:
        assert mine >= first
        assert yours >= second
    assert min(mine, yours) >= limit // 2
