"""Programs in one root: many together, or one alone."""

from __future__ import annotations

import anyio

from tools.sandbox.processes.protection.protection import Occupancy


async def test_one_that_is_alone_keeps_the_others_waiting() -> None:
    occupancy = Occupancy()
    assert await occupancy.enter(alone=True)
    entered = anyio.Event()

    async def enter() -> None:
        assert not await occupancy.enter(alone=False)
        entered.set()

    async with anyio.create_task_group() as group:
        group.start_soon(enter)
        await anyio.wait_all_tasks_blocked()
        assert not entered.is_set()
        occupancy.leave()
        with anyio.fail_after(10):
            await entered.wait()


async def test_nobody_is_alone_among_others() -> None:
    occupancy = Occupancy()
    assert not await occupancy.enter(alone=False)
    assert not await occupancy.enter(alone=True)
    occupancy.leave()
    occupancy.leave()
    assert await occupancy.enter(alone=True)
