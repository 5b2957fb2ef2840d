"""Calls that take longer than their clients wait: a real worker, real clients in both eras."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import mcp_types as types
import pytest

GardenOf = Callable[..., AbstractAsyncContextManager[Any]]

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
ERAS = ("2025-11-25", "2026-07-28")

SOURCE = '''
    from tools.authoring import tool

    @tool(becomes_job=True, timeout=60)
    async def grow(context: RequestContext, plant: str = "Kale") -> str:
        """Grows a plant."""
        await context.report_progress(1, 4, "sown")
        _note("sown")
        try:
            while not Path("ripe").exists():
                await anyio.sleep(0.01)
        except anyio.get_cancelled_exc_class():
            _note("dug up")
            raise
        return f"{plant} is ripe"

    @tool(becomes_job=True, timeout=60)
    async def prune(context: RequestContext) -> str:
        """Asks once its caller is gone."""
        while not Path("ripe").exists():
            await anyio.sleep(0.01)
        return "pruned" if await context.ask(bool, "Prune it?") else "left"
'''


def task_in(result: types.CallToolResult) -> str:
    """The id of the task that an answer tells of."""
    [block] = result.content
    assert isinstance(block, types.TextContent)
    found = re.search(r"as task ([0-9a-f]{32})", block.text)
    assert found, block.text
    return found[1]


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_takes_long_is_answered_with_a_task_and_goes_on(
    garden_of: GardenOf, era: str
) -> None:
    async with garden_of(SOURCE, patience=0.1) as garden, garden.client(era) as client:
        told = await client.call_tool("grow", {"plant": "Chard"})
        assert not told.is_error
        task = task_in(told)
        looked = await client.call_tool("get_task", {"task_id": task, "wait_seconds": 0})
        assert '1 of 4, "sown"' in text_of(looked)
        (garden.root / "ripe").touch()
        done = await client.call_tool("get_task", {"task_id": task})
        assert "Chard is ripe" in text_of(done)
        assert "completed" in text_of(done)
