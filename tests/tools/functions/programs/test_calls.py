"""The calls of a program, as the server makes them: named, counted, whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from tests.conftest import told
from tests.tools.conftest import Crib, Open
from tools.core.context import RequestContext
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope, ToolSpec


async def say(arguments: dict[str, Any], _context: RequestContext) -> ToolResult:
    """Answers as another server does that knows texts only."""
    await anyio.lowlevel.checkpoint()
    return ToolResult({}, f"said {sorted(arguments.items())} " + "word " * 9_000)


def foreign(name: str, *required: str) -> ToolSpec:
    """A tool of another server, whose parameters are in no order."""
    return ToolSpec(
        name=f"far__{name}",
        title="",
        description="Says it.",
        input_schema={
            "type": "object",
            "properties": {each: {"type": "string"} for each in ("alpha", "omega")},
            "required": list(required),
        },
        output_schema=None,
        scope=ToolScope.MCP,
        effects=frozenset({Effect.READ}),
        validate=dict,
        invoke=say,
        source="upstream:far",
        bare=name,
    )


@pytest.fixture(scope="module")
async def crib(open_shared: Open) -> AsyncIterator[Crib]:
    narrow = {"clients": "*", "deny": ["grep"]}
    async with open_shared(policy__allow=("far__*",), profiles={"narrow": narrow}) as crib:
        crib.app.registry.add(foreign("say", "omega"))
        crib.app.registry.add(foreign("tell", "omega", "alpha"))
        yield crib


async def run(crib: Crib, code: str) -> str:
    return told(await crib.client.call_tool("run_code", {"code": code}))


async def test_a_text_of_another_server_is_whole(crib: Crib) -> None:
    text = await run(
        crib, "r = await tools.far__say(omega='x')\n(type(r).__name__, len(r), r[:22])"
    )
    assert text.startswith("[\"str\",45022,\"said [('omega', 'x')]")


async def test_the_one_value_that_another_server_needs_is_given_without_a_name(crib: Crib) -> None:
    assert await run(crib, "(await tools.say('x')).split(' word')[0]") == (
        "said [('omega', 'x')]\n[calls: 1 far__say]"
    )


async def test_other_values_for_another_server_are_named(crib: Crib) -> None:
    text = await run(crib, "await tools.tell('x', 'y')")
    assert "far__tell: name its arguments: far__tell(alpha: string, omega: string)." in text
    assert "[calls: none]" in text


@pytest.mark.parametrize("values", ["5", "'ab'", "{'pattern': 'x'}", "None"])
async def test_what_is_no_list_of_values_stands_for_no_arguments(crib: Crib, values: str) -> None:
    text = await run(crib, f"await tools.read_file(**{{'*': {values}}})")
    assert "tools.ToolError: invalid_arguments: read_file: name its arguments" in text


@pytest.mark.parametrize("name", ["run_code", "call_tool", "call_tools"])
async def test_a_program_calls_nothing_that_calls(crib: Crib, name: str) -> None:
    assert f"A program cannot call {name}." in await run(crib, f"await tools.{name}(code='1')")


async def test_nothing_is_told_of_a_tool_that_its_caller_may_not_call(crib: Crib) -> None:
    text = await run(crib, f"await tools.grep({', '.join('1' * 20)})")
    assert "tools.ToolError: permission_denied: " in text
    assert "pattern" not in text
