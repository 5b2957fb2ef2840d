import threading
from contextlib import suppress

import anyio

from storage.locks import made_once
from tools.core.machine import first_use


class Owner:
    """Has a part that takes a while to make."""

    def __init__(self) -> None:
        self.made = 0
        self.meeting = threading.Barrier(2)

    @made_once
    def part(self) -> str:
        with suppress(threading.BrokenBarrierError):
            self.meeting.wait(0.2)  # for another that makes it too
        self.made += 1
        return threading.current_thread().name


async def test_a_part_is_made_once_by_those_who_use_it_first_at_once_and_off_the_loop() -> None:
    owner, found = Owner(), list[str]()

    async def use() -> None:
        found.append(await first_use(owner, "part"))

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(use)
    assert owner.made == 1
    assert len(set(found)) == 1
    assert found[0] != threading.main_thread().name
