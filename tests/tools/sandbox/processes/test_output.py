"""A program is read from until it ends; of a long output, the beginning and the end are kept."""

import os
import re
import tracemalloc

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.sandbox.processes.conftest import lives
from tools.sandbox.processes.launching.launcher import Launcher, SupervisedProcess
from tools.sandbox.processes.models import Prepared
from tools.sandbox.processes.output import Capture, Part, RecentOutput, communicate, shares

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


def recent(data: bytes, limit: int = 1_000, *, step: int = 7) -> RecentOutput:
    kept = RecentOutput(limit)
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
    assert recent(b"one\ntwo\n").part(since, 100, is_complete=False) == part


def test_what_is_no_longer_kept_is_said_to_be_lost() -> None:
    kept = recent(b"0123456789" * 100, 50)
    assert kept.part(900, 100, is_complete=False) == Part("0123456789" * 5, 950, 1_000, 50)
    assert kept.part(0, 100, is_complete=True).lost == 950
    assert kept.size == 1_000


def test_a_long_output_is_told_in_parts_of_whole_lines() -> None:
    lines = [f"line {number}\n" for number in range(100)]
    kept = recent("".join(lines).encode(), 10_000)
    told, since = [], 0
    while since < kept.size:
        part = kept.part(since, 100, is_complete=False)
        assert part.first == since
        assert part.text.endswith("\n")
        assert len(part.text) <= 100
        told.append(part.text)
        since = part.next
    assert "".join(told) == "".join(lines)


def test_a_character_that_is_on_its_way_is_waited_for() -> None:
    kept = recent("ab😀".encode()[:-1])
    assert kept.part(0, 100, is_complete=False) == Part("ab", 0, 2, 0)
    kept.feed("😀".encode()[-1:])
    assert kept.part(2, 100, is_complete=False) == Part("😀", 2, 6, 0)
    never = recent(b"ab\xf0\x9f")
    assert never.part(0, 100, is_complete=True) == Part("ab\ufffd", 0, 4, 0)


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
    part = output.part(since, limit, is_complete=True)
    assert part.first >= min(wanted, len(data))
    first, told = part.first, part.text
    while part.next < len(data):
        assert part.next > part.first
        part = output.part(part.next, limit, is_complete=True)
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
    assert "\ufffd" not in recent(text.encode(), kept).part(since, 9, is_complete=False).text


def ignore(data: bytes) -> None:
    """Takes what nobody wants."""


async def started(launcher: Launcher, command: str) -> SupervisedProcess:
    return await launcher.start(
        Prepared(argv=("/bin/bash", "-c", command), cwd="/", environment={"PATH": os.defpath})
    )


async def test_all_that_was_written_is_read_each_from_its_own_pipe(launcher: Launcher) -> None:
    out, err = bytearray(), bytearray()
    running = await started(
        launcher, "head -c 3000000 /dev/zero & head -c 2000000 /dev/zero >&2; wait; exit 6"
    )
    found = await communicate(running, out.extend, err.extend, seconds=20)
    assert (found.exit_code, found.timed_out) == (6, False)
    assert (len(out), len(err)) == (3_000_000, 2_000_000)


@pytest.mark.parametrize("size", [1, 4_096, 65_536, 65_537, 200_000])
async def test_what_was_written_last_is_not_lost(launcher: Launcher, size: int) -> None:
    for _ in range(5):
        out = bytearray()
        running = await started(launcher, f"head -c {size} /dev/zero; printf end")
        await communicate(running, out.extend, out.extend, seconds=20)
        assert len(out) == size + 3
        assert out.endswith(b"end")


async def test_a_deadline_keeps_what_was_written(launcher: Launcher) -> None:
    out = bytearray()
    running = await started(launcher, "echo kept; sleep 1000")
    found = await communicate(running, out.extend, out.extend, seconds=0.2)
    assert (found.timed_out, found.exit_code, bytes(out)) == (True, 137, b"kept\n")
    assert not lives(running.pid)


async def test_a_flood_meets_its_deadline(launcher: Launcher) -> None:
    sizes: list[int] = []
    running = await started(launcher, "exec cat /dev/zero")
    with anyio.fail_after(20):
        found = await communicate(
            running, lambda data: sizes.append(len(data)), ignore, seconds=0.2
        )
    assert found.timed_out
    assert sum(sizes) > 1_000_000
    assert not lives(running.pid)


async def test_others_get_their_turn_during_a_flood(launcher: Launcher) -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(take_turns)
        running = await started(launcher, "head -c 100000000 /dev/zero")
        await communicate(running, ignore, ignore, seconds=20)
        group.cancel_scope.cancel()
    assert turns > 50


async def test_a_cancelled_attendance_ends_the_program_first(launcher: Launcher) -> None:
    out = bytearray()
    running = await started(launcher, "echo begun; trap '' TERM; sleep 1000")
    async with anyio.create_task_group() as group:

        async def attend_to_it() -> None:
            await communicate(running, out.extend, out.extend, seconds=20)

        group.start_soon(attend_to_it)
        with anyio.fail_after(20):
            while not out:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert not lives(running.pid)


async def test_a_sink_that_fails_ends_the_program(launcher: Launcher) -> None:
    def refuse(data: bytes) -> None:
        raise ValueError(data)

    running = await started(launcher, "echo a; sleep 1000")
    with pytest.RaisesGroup(ValueError, flatten_subgroups=True):
        await communicate(running, refuse, refuse, seconds=20)
    assert not lives(running.pid)


async def test_descriptors_are_closed(launcher: Launcher) -> None:
    await communicate(await started(launcher, "true"), ignore, ignore, seconds=20)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # descriptors
    for _ in range(5):
        await communicate(await started(launcher, "true"), ignore, ignore, seconds=20)
        await communicate(await started(launcher, "sleep 100"), ignore, ignore, seconds=0)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208  # descriptors
