from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.server.lowlevel import Server

import tools
from tests.conftest import told
from tools.core.discovery import discover
from tools.core.registry import ToolRegistry

BY_ERA = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])

ServerOf = Callable[..., Server[Any]]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
# Values that get past a schema here and there, so that the tools themselves are tried as well.
likely_values = st.sampled_from(
    [
        ".",
        "../a",
        "a.md",
        "file",
        "a\0b",
        1,
        0,
        -1,
        10**30,
        [[1, 2]],
        [],
        {"start": 1},
        {"start": ""},
    ]
)


@st.composite
def calls(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """One call of each tool, with arguments of its own names and values of any kind."""
    registry = ToolRegistry()
    discover(registry, tools)
    drawn = []
    for spec in registry.specs():
        names = st.sampled_from([*spec.input_schema["properties"], "other"])
        values = draw(st.sampled_from([likely_values, json_values]))
        drawn.append((spec.name, draw(st.dictionaries(names, values))))
    return drawn


@pytest.mark.slow
@BY_ERA
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(drawn=calls())
async def test_every_tool_answers_any_arguments(
    server_of: ServerOf, mode: str, drawn: list[tuple[str, dict[str, Any]]]
) -> None:
    async with Client(server_of(builtin=True), mode=mode) as client:
        for name, arguments in drawn:
            with anyio.fail_after(30):
                result = await client.call_tool(name, arguments)
            assert result.content
            assert isinstance(result.structured_content, dict) is not result.is_error
            if result.is_error:
                assert not told(result).startswith("internal: "), arguments
