"""What the task scenarios of the conformance suite ask a server for, as plain functions (SEP-2663).

`benchmarks.conformance` has Toolcrib serve this file beside `everything.py`.
"""

import asyncio

from pydantic import BaseModel

from tools.authoring import RequestContext, ToolError, tool

LATER = 1.0
"""Seconds after which a client that knows tasks has one."""


@tool
def greet(name: str) -> str:
    """Greets.

    Args:
        name: Whom.
    """
    return f"Hello, {name}!"


@tool(may_become_job=True, timeout=120)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Takes its time.

    Args:
        seconds: How long.
        label: What it is called.
    """
    await asyncio.sleep(seconds)
    return f"{label} took {seconds} seconds"


@tool(may_become_job=True)
async def failing_job() -> str:
    """Fails."""
    await asyncio.sleep(LATER)
    raise ToolError("This job intentionally fails.")


@tool(may_become_job=True)
async def protocol_error_job(context: RequestContext) -> str:
    """Wants what the client does not offer, which is an error of the protocol."""
    await asyncio.sleep(LATER)
    return str(len(await context.roots()))


class Confirmation(BaseModel):
    """Whether somebody agrees."""

    confirm: bool


@tool(may_become_job=True)
async def confirm_delete(context: RequestContext, filename: str) -> str:
    """Asks once it is a task.

    Args:
        context: The call.
        filename: What would be deleted.
    """
    await asyncio.sleep(LATER)
    answer = await context.ask(Confirmation, f"Delete {filename}?")
    return f"{filename} {'deleted' if answer.confirm else 'kept'}"


@tool(may_become_job=True)
async def multi_input(context: RequestContext) -> str:
    """Asks two things at once, once it is a task."""
    await asyncio.sleep(LATER)
    both = ("The first?", "The second?")
    answers = await asyncio.gather(*(context.ask(Confirmation, each) for each in both))
    return f"{sum(each.confirm for each in answers)} of 2 confirmed"


class UserName(BaseModel):
    """Who somebody is."""

    name: str


@tool(may_become_job=True)
async def test_tool_with_task(context: RequestContext) -> str:
    """Asks before it is a task."""
    name = (await context.ask(UserName, "What is your name?")).name
    await asyncio.sleep(LATER)
    return f"Hello, {name}!"
