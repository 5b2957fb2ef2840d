"""A program is read from until it has ended; nothing of it is left, however that was."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import anyio
import pytest

from tests.tools.sandbox.processes.conftest import lives
from tools.sandbox.processes.launching.launcher import Launcher, SupervisedProcess
from tools.sandbox.processes.models import Prepared
from tools.sandbox.processes.output import communicate


def ignore(data: bytes) -> None:
    """Takes what nobody wants."""


@pytest.fixture
async def launcher() -> AsyncIterator[Launcher]:
    launcher = Launcher()
    yield launcher
    await launcher.aclose()


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
