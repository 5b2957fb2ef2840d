"""Functions that their author serves: in memory, over stdio and over HTTP, in both eras."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from pydantic import SecretStr

from benchmarks.startup import HEAVY, modules_at_reply
from server.own import client_of
from tests.people import text_at
from tests.server import garden
from tests.server.serving import serving
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.errors import ToolDefinitionError

GARDEN = str(Path(__file__).with_name("garden.py"))
ENVIRON = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


async def three(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    assert "How many beds?" in params.message
    return types.ElicitResult(action="accept", content={"answer": 3})


@asynccontextmanager
async def in_memory(mode: str) -> AsyncIterator[Client]:
    functions = garden.harvest, garden.visit, garden.hibernate, garden.weed, garden.nest
    async with client_of(*functions, mode=mode, elicitation_callback=three) as client:
        yield client


@asynccontextmanager
async def over_stdio(mode: str) -> AsyncIterator[Client]:
    program = StdioServerParameters(command=sys.executable, args=[GARDEN], env=ENVIRON)
    async with Client(program, mode=mode, elicitation_callback=three) as client:
        yield client


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, GARDEN, "--http", "--port", "0"]
    with serving("http", ENVIRON, command) as url:
        yield url


async def check_answers(client: Client) -> None:
    listed = {each.name: each for each in (await client.list_tools()).tools}
    assert sorted(listed) == ["harvest", "hibernate", "nest", "visit", "weed"]
    assert listed["harvest"].output_schema is not None
    assert client.instructions is None
    result = await client.call_tool("harvest", {"plant": "kale", "beds": 2})
    assert result.structured_content == {"plant": "kale", "kilograms": 5.0}
    asked = await client.call_tool("visit", {"plant": "kale"})
    assert asked.structured_content == {"result": 7.5}


async def test_functions_are_called_in_memory(mode: str) -> None:
    async with in_memory(mode) as client:
        await check_answers(client)


@pytest.mark.slow
async def test_functions_are_called_over_stdio_by_the_name_of_their_file(mode: str) -> None:
    async with over_stdio(mode) as client:
        await check_answers(client)
        if client.server_info is not None:  # from 2026-07-28 on each answer has it
            assert client.server_info.name == "garden"


@pytest.mark.slow
async def test_functions_are_called_over_http(url: str, mode: str) -> None:
    async with Client(url, mode=mode, elicitation_callback=three) as client:
        await check_answers(client)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)],
)
def test_a_page_elsewhere_cannot_call_them(url: str, headers: dict[str, str], status: int) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}
    assert httpx2.post(url, json=ping, headers={**accept, **headers}).status_code == status


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("harvest", {"plant": "kale", "bed": 2}, r"`bed` is unknown; did you mean `beds`"),
        ("harvest", {"plant": "kale", "beds": 0}, r"`beds`.* 1"),
        ("harvset", {}, r"unknown_tool: .*\nDid you mean: harvest"),
        ("hibernate", {}, r"timeout: hibernate did not finish within its 0.05 seconds"),
        ("weed", {"bed": "B7"}, r"FileNotFoundError: no such bed: B7"),
        ("nest", {}, r"nested in 8 calls already"),
    ],
)
async def test_a_call_that_fails_says_why(
    mode: str, name: str, arguments: dict[str, Any], said: str
) -> None:
    async with in_memory(mode) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert isinstance(result.content[0], types.TextContent)
    assert re.search(said, result.content[0].text)


async def test_a_client_that_shows_no_form_is_told_apart() -> None:
    async with client_of(garden.visit, mode="legacy") as client:
        result = await client.call_tool("visit", {"plant": "kale"})
    assert isinstance(result.content[0], types.TextContent)
    assert result.content[0].text.startswith("unavailable: visit wanted to ask the user something")


async def test_progress_reaches_the_client(mode: str) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with client_of(
        garden.harvest, garden.visit, mode=mode, elicitation_callback=three
    ) as client:
        await client.call_tool("visit", {"plant": "kale"}, progress_callback=hear)
    assert heard == ["asked"]


async def test_resources_and_prompts_are_offered_beside_tools(mode: str) -> None:
    async with client_of(garden, mode=mode) as client:
        [template] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "garden://{bed}"
        assert await text_at(client, "garden://B2") == "Kale in B2."
        with pytest.raises(MCPError, match="Resource not found: shed://1"):
            await client.read_resource("shed://1")
        assert [each.name for each in (await client.list_prompts()).prompts] == ["plan"]
        [message] = (await client.get_prompt("plan", {"season": "spring"})).messages
        assert isinstance(message.content, types.TextContent)
        assert message.content.text == "Plan the spring."
        with pytest.raises(MCPError, match="No prompt is called 'plam'"):
            await client.get_prompt("plam")
        ref = types.ResourceTemplateReference(uri="garden://{bed}")
        completed = await client.complete(ref, {"name": "bed", "value": "B"})
        assert completed.completion.values == ["B1", "B2"]


async def test_a_client_hears_of_a_resource_that_changed() -> None:
    heard = anyio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            assert message.params.uri == "garden://B1"
            heard.set()

    async with client_of(garden, mode="legacy", message_handler=hear) as client:
        params = types.SubscribeRequestParams(uri="garden://B1")
        await client.session.send_request(types.SubscribeRequest(params=params), types.EmptyResult)
        await client.call_tool("sow", {"bed": "B1"})
        with anyio.fail_after(10):
            await heard.wait()


async def test_a_server_of_tools_alone_says_that_it_has_nothing_else() -> None:
    async with client_of(garden.harvest, mode="legacy") as client:
        assert client.server_capabilities.resources is None
        assert client.server_capabilities.prompts is None


async def listed(*offers: Any) -> list[str]:
    async with client_of(*offers) as client:
        return [each.name for each in (await client.list_tools()).tools]


async def test_a_module_offers_its_public_functions() -> None:
    assert await listed(garden) == ["harvest", "hibernate", "nest", "sow", "visit", "weed"]


async def test_the_options_of_a_module_hold_for_its_functions() -> None:
    module = ModuleType("look")
    source = "__tool_options__ = {'effects': ['read']}\ndef look() -> int: return 1\nsee = look"
    exec(source, vars(module))  # noqa: S102  # a module of one function
    async with client_of(module) as client:
        (tool,) = (await client.list_tools()).tools
    assert tool.annotations is not None
    assert (tool.name, tool.annotations.read_only_hint) == ("look", True)


async def test_what_was_converted_before_is_offered_as_it_is() -> None:
    assert await listed(FunctionToMCP.convert(garden.harvest, name="reap")) == ["reap"]


async def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="'harvest' is claimed by harvest"):
        await listed(garden.harvest, garden.harvest)


async def test_a_function_that_nobody_could_call_is_refused_with_what_to_change() -> None:
    module = ModuleType("untyped")
    exec("def prune(bed): ...", vars(module))  # noqa: S102  # a module of one function
    with pytest.raises(ToolDefinitionError, match=r"prune .*no type for bed: annotate it"):
        await listed(module)


async def test_a_secret_argument_is_in_no_error_and_not_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def unlock(pin: SecretStr) -> None:
        raise PermissionError(f"{pin.get_secret_value()} opens nothing")

    async with client_of(unlock) as client:
        result = await client.call_tool("unlock", {"pin": "hunter2"})
    assert "PermissionError: [redacted] opens nothing" in result.model_dump_json()
    assert "PermissionError: [redacted] opens nothing" in caplog.text
    assert "hunter2" not in result.model_dump_json() + caplog.text


@pytest.mark.slow
def test_a_start_loads_no_more_than_it_needs() -> None:
    loaded = modules_at_reply([sys.executable, GARDEN])
    ours = {name for name in loaded if name.split(".")[0] in {"server", "storage", "tools"}}
    assert ours >= {"server.own", "tools.core.calling.direct"}  # the log of imports is one
    refused = "server.app", "server.settings.", "server.upstream", "server.cli", "storage.database"
    more = "storage.library", "tools.core.manager", "tools.policy", "tools.retrieval"
    heavy = set(HEAVY) - {"uvicorn"}  # the SDK loads that
    assert not {each for each in ours if each.startswith(refused + more)}
    assert not {name.split(".")[0] for name in loaded} & {*heavy, "sqlite3"}


@pytest.mark.slow
def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = subprocess.run(
            [sys.executable, GARDEN, "--http", "--port", port],
            capture_output=True,
            text=True,
            check=False,
            env=ENVIRON,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"Error: Listening on 127.0.0.1 port {port} is in use.")
