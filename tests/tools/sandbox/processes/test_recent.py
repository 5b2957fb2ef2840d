"""The last of an output is kept, and told by where it stands in all that was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.sandbox.processes.recent import Part, Recent


def recent(data: bytes, limit: int = 1_000, *, step: int = 7) -> Recent:
    kept = Recent(limit)
    for start in range(0, len(data), step):
        kept.feed(data[start : start + step])
    return kept


@pytest.mark.parametrize(
    ("since", "part"),
    [
        (0, Part("one\ntwo\n", 0, 8, 0)),
        (4, Part("two\n", 4, 8, 0)),
        (8, Part("", 8, 8, 0)),
        (99, Part("", 8, 8, 0)),
        (-4, Part("two\n", 4, 8, 0)),
        (-99, Part("one\ntwo\n", 0, 8, 0)),
    ],
)
def test_a_part_begins_where_it_is_asked_for(since: int, part: Part) -> None:
    assert recent(b"one\ntwo\n").part(since, 100, is_all=False) == part


def test_what_is_no_longer_kept_is_said_to_be_lost() -> None:
    kept = recent(b"0123456789" * 100, 50)
    assert kept.part(900, 100, is_all=False) == Part("0123456789" * 5, 950, 1_000, 50)
    assert kept.part(0, 100, is_all=True).lost == 950
    assert kept.size == 1_000


def test_a_long_output_is_told_in_parts_of_whole_lines() -> None:
    lines = [f"line {number}\n" for number in range(100)]
    kept = recent("".join(lines).encode(), 10_000)
    told, since = [], 0
    while since < kept.size:
        part = kept.part(since, 100, is_all=False)
        assert part.first == since
        assert part.text.endswith("\n")
        assert len(part.text) <= 100
        told.append(part.text)
        since = part.next
    assert "".join(told) == "".join(lines)


def test_a_character_that_is_on_its_way_is_waited_for() -> None:
    kept = recent("ab😀".encode()[:-1])
    assert kept.part(0, 100, is_all=False) == Part("ab", 0, 2, 0)
    kept.feed("😀".encode()[-1:])
    assert kept.part(2, 100, is_all=False) == Part("😀", 2, 6, 0)
    never = recent(b"ab\xf0\x9f")
    assert never.part(0, 100, is_all=True) == Part("ab\ufffd", 0, 4, 0)


@given(
    data=st.text(st.sampled_from("aé😀\n"), max_size=60).map(str.encode) | st.binary(max_size=200),
    kept=st.integers(4, 80),
    limit=st.integers(4, 50),
    since=st.integers(-100, 100),
)
def test_asking_on_ends_and_leaves_nothing_out(
    data: bytes, kept: int, limit: int, since: int
) -> None:
    output = recent(data, kept)
    wanted = since if since >= 0 else max(0, len(data) + since)
    part = output.part(since, limit, is_all=True)
    assert part.first >= min(wanted, len(data))
    first, told = part.first, part.text
    while part.next < len(data):
        assert part.next > part.first
        part = output.part(part.next, limit, is_all=True)
        assert part.lost == 0
        told += part.text
    assert part.next == len(data)
    if data.decode("utf-8", "ignore").encode() == data:
        assert told == data[first:].decode("utf-8", "replace")


@given(
    text=st.text(st.sampled_from("aé😀\n"), max_size=60),
    kept=st.integers(4, 80),
    since=st.integers(-99, 0),
)
def test_no_character_is_told_in_halves(text: str, kept: int, since: int) -> None:
    assert "\ufffd" not in recent(text.encode(), kept).part(since, 9, is_all=False).text
