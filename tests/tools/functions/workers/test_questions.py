"""What functions ask from their workers: answered for running calls alone, and not without end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.tools.functions.conftest import Serve

pytestmark = pytest.mark.slow

CRAFTS = """
    import asyncio
    from pathlib import Path

    import anyio

    from tools.authoring import RequestContext, ToolError, UnavailableError

    tasks = []

    async def ask(context: RequestContext) -> str:
        try:
            return str(await context.ask(bool, "Well?"))
        except UnavailableError as error:
            return f"{error.error_type}: {error}"

    async def call_later(context: RequestContext) -> None:
        async def call():
            Path("called").write_text("")
            await context.call("leave", {})
        tasks.append(asyncio.create_task(call()))

    async def call_for_another(context: RequestContext) -> str:
        with anyio.move_on_after(0.3):
            await context.peer._channel.questions.ask(999, {"tool": "leave", "arguments": {}})
        return "nobody answers"

    async def flood(context: RequestContext) -> None:
        for number in range(100_000):
            context.peer._channel.send(
                {"ask": context.peer._call, "id": number, "tool": "wait", "arguments": {}}
            )

    async def ask_later(context: RequestContext) -> None:
        async def ask(wait):
            await asyncio.sleep(wait)
            try:
                await context.call("wait", {})
            except ToolError as error:
                Path(f"late-{wait}").write_text(error.error_type)
        tasks.extend(asyncio.create_task(ask(wait)) for wait in (0, 0.3))
        await asyncio.sleep(0.1)

    def leave() -> None:
        Path("left").write_text("")

    def is_left() -> bool:
        return Path("left").exists()

    async def wait() -> None:
        while not Path("enough").exists():
            await anyio.sleep(0.01)

    async def call_many(context: RequestContext) -> list[str]:
        refused = []

        async def call():
            try:
                await context.call("wait", {})
            except ToolError as error:
                refused.append(error.error_type)
                if len(refused) == 6:
                    Path("enough").write_text("")

        async with anyio.create_task_group() as group:
            for _ in range(70):
                group.start_soon(call)
        return refused

    async def call_and_die(context: RequestContext) -> None:
        await context.call("die", {})

    def die() -> None:
        import os
        os._exit(3)

    async def call_deep(context: RequestContext, depth: int = 1) -> int:
        try:
            result = await context.call("call_deep", {"depth": depth + 1})
        except ToolError:
            return depth
        return result.structured["result"]
"""


async def test_a_function_learns_that_nobody_can_be_asked(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        assert (await served.value("ask")).startswith("unavailable: ask cannot ask the user")


async def test_of_a_call_that_has_ended_nothing_is_answered(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        await served.value("call_later")
        while not (served.root / "called").exists():
            await served.value("is_left")
        assert await served.value("is_left") is False


async def test_nothing_is_answered_in_the_name_of_a_call_that_there_is_not(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        assert await served.value("call_for_another") == "nobody answers"
        assert await served.value("is_left") is False


async def test_a_call_asks_a_bounded_number_of_things_at_once(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        assert await served.value("call_many") == ["rate_limited"] * 6


async def test_a_worker_that_asks_without_end_is_ended(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        kind, message = await served.error("flood")
        assert kind == "tool_failed"
        assert "asked too many questions" in message
        assert await served.value("is_left") is False


async def test_what_is_asked_beyond_the_end_of_a_call_fails(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        await served.call("ask_later")
        late = served.root / "late-0", served.root / "late-0.3"
        while not all(each.exists() for each in late):
            await served.value("is_left")
        assert [each.read_text("utf-8") for each in late] == ["unavailable"] * 2


async def test_a_worker_that_dies_within_a_call_of_its_own_fails_both(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        kind, message = await served.error("call_and_die")
        assert kind == "tool_failed"
        assert "ended with exit code 3" in message
        assert await served.value("is_left") is False


async def test_a_function_that_calls_itself_is_stopped(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        assert await served.value("call_deep") == 9
