from collections.abc import Callable

import anyio
import pytest

from storage.models import Identity
from tools.core.calling.call import PARALLEL_WRITES
from tools.core.context import Origin, RequestContext
from tools.core.manager import SandboxToolManager
from tools.core.spec import Effect, ToolScope, tool

READ = {Effect.READ}
WRITE = {Effect.WRITE}
CONTEXT = RequestContext()

Toolbox = Callable[..., SandboxToolManager]


@pytest.mark.parametrize("effects", [READ, WRITE])
async def test_cancellation_passes_through_and_frees_the_place(
    toolbox: Toolbox, effects: set[Effect]
) -> None:
    started = anyio.Event()

    @tool(scope=ToolScope.SANDBOXED, effects=effects)
    async def work(forever: bool) -> None:
        """Works."""
        started.set()
        await anyio.sleep(60 if forever else 0)

    manager = toolbox(work)
    with anyio.fail_after(5):
        for _ in range(20):
            async with anyio.create_task_group() as group:
                group.start_soon(manager.execute, "work", {"forever": True}, CONTEXT)
                await started.wait()
                group.cancel_scope.cancel()
        assert not (await manager.execute("work", {"forever": False}, CONTEXT)).is_error


async def test_a_cancelled_wait_for_a_turn_gives_it_up(toolbox: Toolbox) -> None:
    started, go = anyio.Event(), anyio.Event()

    @tool(scope=ToolScope.SANDBOXED, effects=WRITE)
    async def write() -> None:
        """Writes when told."""
        started.set()
        await go.wait()

    manager = toolbox(write)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(manager.execute, "write", {}, CONTEXT)
            await started.wait()
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(manager.execute, "write", {}, CONTEXT)
                await anyio.wait_all_tasks_blocked()
                waiting.cancel_scope.cancel()
            go.set()
        assert not (await manager.execute("write", {}, CONTEXT)).is_error


async def test_reads_run_side_by_side_and_do_not_wait_for_a_write(toolbox: Toolbox) -> None:
    inside = 0
    everyone = anyio.Event()

    async def enter() -> None:
        nonlocal inside
        inside += 1
        if inside == 5:
            everyone.set()
        await everyone.wait()

    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    async def read() -> None:
        """Reads until all are there."""
        await enter()

    @tool(scope=ToolScope.SANDBOXED, effects=WRITE)
    async def write() -> None:
        """Writes until all are there."""
        await enter()

    manager = toolbox(read, write)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for name in ("write", "read", "read", "read", "read"):
                group.start_soon(manager.execute, name, {}, CONTEXT)


async def test_writes_of_one_scope_run_one_after_another_in_their_order(toolbox: Toolbox) -> None:
    order: list[str] = []

    @tool(scope=ToolScope.SANDBOXED, effects={Effect.READ, Effect.WRITE})
    async def write(number: int) -> None:
        """Writes."""
        order.append(f"begin {number}")
        await anyio.wait_all_tasks_blocked()
        order.append(f"end {number}")

    manager = toolbox(write)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(manager.execute, "write", {"number": number}, CONTEXT)
    assert order == [f"{edge} {number}" for number in range(4) for edge in ("begin", "end")]


async def test_a_users_writes_of_context_wait_only_for_their_own(toolbox: Toolbox) -> None:
    order: list[str] = []
    bob_wrote = anyio.Event()

    @tool(scope=ToolScope.CONTEXT, effects=WRITE)
    async def keep(user: str, number: int) -> None:
        """Keeps something; the first of Ann's waits until Bob has written."""
        order.append(f"{user} {number}")
        if user == "ann":
            await bob_wrote.wait()
        else:
            bob_wrote.set()

    manager = toolbox(keep)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for user, number in (("ann", 1), ("ann", 2), ("ann", 3), ("bob", 1)):
                context = RequestContext(Origin(Identity(user)))
                arguments = {"user": user, "number": number}
                group.start_soon(manager.execute, "keep", arguments, context)
    assert order == ["ann 1", "bob 1", "ann 2", "ann 3"]


async def test_only_a_few_users_write_context_at_once(toolbox: Toolbox) -> None:
    inside = most = 0

    @tool(scope=ToolScope.CONTEXT, effects=WRITE)
    async def keep() -> None:
        """Keeps something."""
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await anyio.wait_all_tasks_blocked()
        inside -= 1

    manager = toolbox(keep)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for number in range(3 * PARALLEL_WRITES):
                context = RequestContext(Origin(Identity(f"u{number}")))
                group.start_soon(manager.execute, "keep", {}, context)
    assert most == PARALLEL_WRITES


async def test_writes_of_two_scopes_do_not_wait_for_each_other(toolbox: Toolbox) -> None:
    filed, kept = anyio.Event(), anyio.Event()

    @tool(scope=ToolScope.SANDBOXED, effects=WRITE)
    async def file() -> None:
        """Writes a file once the context is kept."""
        filed.set()
        await kept.wait()

    @tool(scope=ToolScope.CONTEXT, effects=WRITE)
    async def keep() -> None:
        """Keeps a context once the file is written."""
        kept.set()
        await filed.wait()

    manager = toolbox(file, keep)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(manager.execute, "file", {}, CONTEXT)
            group.start_soon(manager.execute, "keep", {}, CONTEXT)


@pytest.mark.parametrize("outer", [READ, WRITE])
@pytest.mark.parametrize("inner", [READ, WRITE])
async def test_calls_within_calls_of_one_scope_all_end(
    toolbox: Toolbox, outer: set[Effect], inner: set[Effect]
) -> None:
    @tool(scope=ToolScope.CONTEXT, effects=inner)
    async def part() -> None:
        """Does a part."""
        await anyio.wait_all_tasks_blocked()

    @tool(scope=ToolScope.CONTEXT, effects=outer)
    async def whole(context: RequestContext) -> list[bool]:
        """Does two parts at once, then one more."""
        failed: list[bool] = []

        async def call() -> None:
            failed.append((await context.call("part", {})).is_error)

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            group.start_soon(call)
        await call()
        return failed

    manager = toolbox(part, whole)
    answers = []

    async def run() -> None:
        answers.append((await manager.execute("whole", {}, CONTEXT)).structured)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for _ in range(20):  # more than there are places for reads
                group.start_soon(run)
    assert answers == [{"result": [False] * 3}] * 20


async def test_calls_that_wait_for_each_others_scope_all_end(toolbox: Toolbox) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects=WRITE)
    async def file() -> None:
        """Writes a file."""
        await anyio.wait_all_tasks_blocked()

    @tool(scope=ToolScope.CONTEXT, effects=WRITE)
    async def keep(context: RequestContext, depth: int) -> bool:
        """Keeps, and keeps what is kept within, down to a file."""
        called = ("keep", {"depth": depth - 1}) if depth else ("file", {})
        return (await context.call(*called)).is_error

    manager = toolbox(file, keep)
    answers = []

    async def run() -> None:
        answers.append((await manager.execute("keep", {"depth": 5}, CONTEXT)).structured)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(run)
    assert answers == [{"result": False}] * 5


async def test_a_call_that_waited_for_its_own_call_writes_alone_again(toolbox: Toolbox) -> None:
    inside: list[str] = []
    most = 0

    @tool(scope=ToolScope.CONTEXT, effects=READ)
    async def look() -> None:
        """Looks."""
        await anyio.wait_all_tasks_blocked()

    @tool(scope=ToolScope.CONTEXT, effects=WRITE)
    async def write(context: RequestContext, name: str) -> None:
        """Looks, then writes."""
        nonlocal most
        await context.call("look", {})
        inside.append(name)
        most = max(most, len(inside))
        await anyio.wait_all_tasks_blocked()
        inside.remove(name)

    manager = toolbox(look, write)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(manager.execute, "write", {"name": str(number)}, CONTEXT)
    assert most == 1


async def test_a_call_that_is_cancelled_in_its_own_call_frees_both_places(toolbox: Toolbox) -> None:
    started = anyio.Event()

    @tool(scope=ToolScope.CONTEXT, effects=WRITE)
    async def part(forever: bool) -> None:
        """Does a part."""
        started.set()
        await anyio.sleep(60 if forever else 0)

    @tool(scope=ToolScope.CONTEXT, effects=WRITE)
    async def whole(context: RequestContext, forever: bool) -> bool:
        """Does a part."""
        return (await context.call("part", {"forever": forever})).is_error

    manager = toolbox(part, whole)
    with anyio.fail_after(10):
        for _ in range(3):
            async with anyio.create_task_group() as group:
                group.start_soon(manager.execute, "whole", {"forever": True}, CONTEXT)
                await started.wait()
                group.cancel_scope.cancel()
            for name in ("whole", "part"):
                assert not (await manager.execute(name, {"forever": False}, CONTEXT)).is_error
