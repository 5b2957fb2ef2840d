"""Calls that take longer than their clients wait: a real worker, real clients in both eras."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import mcp_types as types
import pytest

from storage.approvals import ApprovalStore
from storage.models import Identity

GardenOf = Callable[..., AbstractAsyncContextManager[Any]]

pytestmark = pytest.mark.slow
SOURCE = '''
    from tools.authoring import tool

    @tool(may_become_job=True, timeout=60)
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

    @tool(may_become_job=True, timeout=60)
    async def prune(context: RequestContext) -> str:
        """Asks once its caller is gone."""
        while not Path("ripe").exists():
            await anyio.sleep(0.01)
        return "pruned" if await context.ask(bool, "Prune it?") else "left"

    class Pick(BaseModel):
        now: bool

    @tool(may_become_job=True, timeout=60)
    async def pick(context: RequestContext, plant: str) -> str:
        """Asks with a form that has a name."""
        while not Path("ripe").exists():
            await anyio.sleep(0.01)
        answer = await context.ask(Pick, f"Pick the {plant}?")
        return f"{plant} is {'picked' if answer.now else 'left'}"
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


async def test_a_call_that_takes_long_is_answered_with_a_task_and_goes_on(
    garden_of: GardenOf, mode: str
) -> None:
    async with garden_of(SOURCE, patience=0.1) as garden, garden.client(mode) as client:
        told = await client.call_tool("grow", {"plant": "Chard"})
        assert not told.is_error
        task = task_in(told)
        looked = await client.call_tool("get_task", {"task_id": task, "wait_seconds": 0})
        assert '1 of 4, "sown"' in text_of(looked)
        (garden.root / "ripe").touch()
        done = await client.call_tool("get_task", {"task_id": task})
        assert "Chard is ripe" in text_of(done)
        assert "completed" in text_of(done)


async def test_calls_made_together_go_on_as_one_task(garden_of: GardenOf, mode: str) -> None:
    calls = [{"name": "grow", "arguments": {"plant": plant}} for plant in ("Chard", "Leek")]
    async with garden_of(SOURCE, patience=0.1) as garden, garden.client(mode) as client:
        with anyio.fail_after(20):
            told = await client.call_tool("call_tools", {"calls": calls})
        assert "call_tools goes on as task" in text_of(told)
        (garden.root / "ripe").touch()
        done = text_of(await client.call_tool("get_task", {"task_id": task_in(told)}))
        assert "Chard is ripe" in done
        assert "Leek is ripe" in done


async def test_the_time_in_which_a_call_waits_for_its_approval_counts(
    garden_of: GardenOf, mode: str
) -> None:
    asking = garden_of(SOURCE, ask=("grow",), patience=0.1)
    async with asking as garden, garden.client(mode) as client:
        approvals = ApprovalStore(garden.app.library.database)
        approvals.watch("a terminal")
        (garden.root / "ripe").touch()
        call = {"name": "grow", "arguments": {}}
        task = task_in(await client.call_tool("call_tool", call))
        assert garden.noted == []
        [question] = approvals.waiting()
        approvals.answer(question.ticket, approved=True, by="a terminal")
        assert "is ripe" in text_of(await client.call_tool("get_task", {"task_id": task}))


async def test_a_task_that_is_cancelled_ends_with_what_it_began(
    garden_of: GardenOf, mode: str
) -> None:
    async with garden_of(SOURCE, patience=0.1) as garden, garden.client(mode) as client:
        task = task_in(await client.call_tool("grow", {}))
        await garden.notes("sown")
        assert "was cancelled" in text_of(await client.call_tool("cancel_task", {"task_id": task}))
        await garden.notes("dug up")
        looked = await client.call_tool("get_task", {"task_id": task})
        assert "was cancelled" in text_of(looked)


async def test_a_call_whose_client_gives_up_before_it_is_a_task_is_cancelled(
    garden_of: GardenOf, mode: str
) -> None:
    async with garden_of(SOURCE) as garden, garden.client(mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "grow", {})
            await garden.notes("sown")
            group.cancel_scope.cancel()
        await garden.notes("dug up")
        assert garden.app.library.jobs.latest(Identity(), 1) == []


async def test_what_a_task_asks_is_put_to_whoever_looks_and_can_be_asked(
    garden_of: GardenOf, mode: str
) -> None:
    async def agree(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert "Prune it?" in params.message
        return types.ElicitResult(action="accept", content={"answer": True})

    async with (
        garden_of(SOURCE, patience=0.1) as garden,
        garden.client(mode, elicitation_callback=agree) as client,
        garden.client(mode) as silent,
    ):
        task = task_in(await client.call_tool("prune", {}))
        (garden.root / "ripe").touch()
        told = text_of(await silent.call_tool("get_task", {"task_id": task}))
        assert "It waits for an answer: 'prune' asks: Prune it?" in told
        assert "pruned" in text_of(await client.call_tool("get_task", {"task_id": task}))


async def test_two_tasks_with_the_same_form_get_each_its_own_answer(
    garden_of: GardenOf, mode: str
) -> None:
    async def agree(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"now": "Kale" in params.message})

    async with (
        garden_of(SOURCE, patience=0.1) as garden,
        garden.client(mode, elicitation_callback=agree) as client,
    ):
        plants = ("Kale", "Leek")
        tasks = [task_in(await client.call_tool("pick", {"plant": each})) for each in plants]
        (garden.root / "ripe").touch()
        calls = [{"name": "get_task", "arguments": {"task_id": each}} for each in tasks]
        told = text_of(await client.call_tool("call_tools", {"calls": calls}))
        for task in tasks:
            told += text_of(await client.call_tool("get_task", {"task_id": task}))
        assert "Kale is picked" in told
        assert "Leek is left" in told


async def test_a_task_is_recorded_once_when_it_has_ended(garden_of: GardenOf) -> None:
    async with garden_of(SOURCE, patience=0.1) as garden, garden.client("legacy") as client:
        call = {"name": "grow", "arguments": {"plant": "Leek"}}
        task = task_in(await client.call_tool("call_tool", call))
        await client.call_tool("get_task", {"task_id": task, "wait_seconds": 0})
        assert audited(garden) == ["get_task"]
        (garden.root / "ripe").touch()
        await client.call_tool("get_task", {"task_id": task})
        assert sorted(audited(garden)) == ["get_task", "get_task", "grow"]


async def test_a_client_that_knows_the_schema_of_a_tool_is_not_answered_with_something_else(
    garden_of: GardenOf,
) -> None:
    async with (
        garden_of(SOURCE, patience=0.1, results="both") as garden,
        garden.client("legacy") as client,
    ):
        listed = {each.name: each for each in (await client.list_tools()).tools}
        assert listed["grow"].output_schema is None
        task_in(await client.call_tool("grow", {}))


def audited(garden: Any) -> list[str]:
    """The tools of all calls that are written down."""
    lines = garden.app.settings.audit_file.read_text("utf-8").splitlines()
    return [json.loads(line)["tool"] for line in lines]
