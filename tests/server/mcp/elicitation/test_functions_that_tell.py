"""Functions that ask a model, log, and call other tools, in both eras: a real worker."""

import logging
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from server.settings.gateway import ServerSettings
from tests.conftest import told

GardenOf = Callable[..., AbstractAsyncContextManager[Any]]

pytestmark = pytest.mark.slow
TOY = Path(__file__).parents[2] / "upstream" / "toy_upstream.py"

SOURCE = '''
    async def praise(context: RequestContext, what: str) -> str:
        """Asks the model."""
        _note("praising")
        try:
            reply = await context.sample(what, system="Praise.", max_tokens=7)
        except ToolError as error:
            return f"{type(error).__name__}: {error}"
        return f"{reply} ({reply.model})"

    async def tell(context: RequestContext) -> None:
        """Logs."""
        await context.log("debug", "low")
        await context.log("warning", "high\\x1b[2J\\nup")

    async def shout(context: RequestContext) -> None:
        """Logs at no level."""
        await context.log("warn", "!")

    async def move(context: RequestContext, to: str) -> dict:
        """Writes a file, then reads one that there is not."""
        _note("moving")
        await context.call("write_file", {"path": to, "content": "beans"})
        try:
            await context.call("read_file", {"path": "nowhere"})
        except CallFailedError as error:
            return {"type": error.error_type, "tool": error.tool, "next": list(error.next_actions)}
'''


def replying(
    answer: types.CreateMessageResult | types.ErrorData, asked: list[Any]
) -> Callable[..., Any]:
    async def model(_context: Any, params: Any) -> types.CreateMessageResult | types.ErrorData:
        asked.append(params)
        return answer

    return model


def reply(**more: Any) -> types.CreateMessageResult:
    content = types.TextContent(text="Splendid!")
    return types.CreateMessageResult(role="assistant", content=content, model="tiny", **more)


async def test_a_function_gets_what_the_clients_model_answers(
    garden_of: GardenOf, mode: str
) -> None:
    asked: list[Any] = []
    async with (
        garden_of(SOURCE) as garden,
        garden.client(mode, sampling_callback=replying(reply(), asked)) as client,
    ):
        assert told(await client.call_tool("praise", {"what": "leeks"})) == "Splendid! (tiny)"
    (params,) = asked
    assert (params.system_prompt, params.max_tokens) == ("Praise.", 7)
    assert params.messages[0].content.text == "leeks"
    assert garden.noted == ["praising"]


async def test_a_refusal_of_the_model_is_told_apart_from_a_failure(
    garden_of: GardenOf, mode: str
) -> None:
    model = replying(reply(stop_reason="refusal"), [])
    async with garden_of(SOURCE) as garden:
        async with garden.client(mode, sampling_callback=model) as client:
            refused = told(await client.call_tool("praise", {"what": "weeds"}))
        async with garden.client(mode) as client:
            unavailable = told(await client.call_tool("praise", {"what": "weeds"}))
    assert refused == "DeclinedError: praise asked a model, but the model of the client refused."
    assert unavailable.startswith("UnavailableError: praise wanted to ask a model, but")


async def test_a_person_who_refuses_for_the_model_is_told_apart_from_a_failure(
    garden_of: GardenOf,
) -> None:
    rejected = types.ErrorData(code=-1, message="User rejected sampling request")
    broken = types.ErrorData(code=types.INTERNAL_ERROR, message="No model today")
    answers = []
    async with garden_of(SOURCE) as garden:
        for error in (rejected, broken):
            model = replying(error, [])
            async with garden.client("legacy", sampling_callback=model) as client:
                answers.append(told(await client.call_tool("praise", {"what": "weeds"})))
    assert answers == [
        "DeclinedError: praise asked a model, but the user of the client refused.",
        "UnavailableError: praise asked a model, which gave no answer.",
    ]


@pytest.mark.parametrize(
    ("mode", "level", "expected"),
    [
        ("legacy", "debug", ["debug", "warning"]),
        ("legacy", "info", ["warning"]),
        ("2026-07-28", "info", ["warning"]),
        ("2026-07-28", None, []),
    ],
)
async def test_a_client_hears_what_it_wants_to_of_what_a_function_logs(
    garden_of: GardenOf, mode: str, level: Any, expected: list[str]
) -> None:
    heard: list[types.LoggingMessageNotificationParams] = []

    async def hear(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(params)

    async with garden_of(SOURCE) as garden, garden.client(mode, logging_callback=hear) as client:
        meta = None
        if mode == "legacy":
            wanted = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
            await client.session.send_request(wanted, types.EmptyResult)
        elif level:
            meta = {types.LOG_LEVEL_META_KEY: level}
        await client.call_tool("tell", meta=meta)
    assert [each.level for each in heard] == expected
    assert all(each.logger == "tell" for each in heard)
    assert not heard or heard[-1].data == "high\x1b[2J\nup"


async def test_what_a_function_logs_is_in_our_log_on_one_line(
    garden_of: GardenOf, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "toolcrib"):
        async with garden_of(SOURCE) as garden, garden.client("2026-07-28") as client:
            await client.call_tool("tell")
    told = [(each.levelname, each.message) for each in caplog.records if "tell: " in each.message]
    assert told == [("DEBUG", "tell: low"), ("WARNING", "tell: high\\x1b[2J\\nup")]


async def test_a_level_that_there_is_not_is_the_authors_mistake(garden_of: GardenOf) -> None:
    async with garden_of(SOURCE) as garden, garden.client("2026-07-28") as client:
        assert "'warn' is not one of debug, info" in told(await client.call_tool("shout"))


async def test_a_function_calls_other_tools_and_may_catch_their_failures(
    garden_of: GardenOf, mode: str
) -> None:
    async with garden_of(SOURCE) as garden, garden.client(mode) as client:
        result = await client.call_tool("move", {"to": "bed.txt"})
        assert (garden.root / "bed.txt").read_text() == "beans"
    assert result.structured_content is not None, result.content
    assert result.structured_content["type"] == "not_found"
    assert result.structured_content["tool"] == "read_file"


@pytest.mark.parametrize("answer", ["once", "no"])
async def test_what_a_function_calls_is_approved_like_any_call(
    garden_of: GardenOf, mode: str, answer: str
) -> None:
    asked: list[str] = []

    async def person(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": answer})

    async with (
        garden_of(SOURCE, ask=("write_file",)) as garden,
        garden.client(mode, elicitation_callback=person) as client,
    ):
        result = await client.call_tool("move", {"to": "bed.txt"})
        assert (garden.root / "bed.txt").exists() == (answer == "once")
    assert result.is_error == (answer == "no")
    assert len(asked) == 1
    assert "wants to call write_file" in asked[0]
    assert garden.noted == ["moving"]
    if answer == "no":
        assert told(result).startswith("permission_denied: write_file failed: ")


async def test_what_a_function_calls_is_recorded_beside_it(garden_of: GardenOf, mode: str) -> None:
    async with garden_of(SOURCE) as garden, garden.client(mode) as client:
        await client.call_tool("move", {"to": "bed.txt"})
        events = await garden.app.manager.execute("query_events", {}, garden.app.context)
    assert events.structured is not None
    recorded = [each["action"] for each in events.structured["events"]]
    assert recorded == ["move", "read_file", "write_file"]


async def test_functions_that_write_and_call_each_other_all_end(
    garden_of: GardenOf, mode: str
) -> None:
    source = '''
        __tool_options__ = {"effects": ["write"]}

        async def whole(context: RequestContext) -> list[int]:
            """Calls its parts at once."""
            found = []

            async def part(number):
                result = await context.call("part", {"number": number})
                found.append(result.structured["result"])

            async with anyio.create_task_group() as group:
                for number in range(3):
                    group.start_soon(part, number)
            return sorted(found)

        async def part(number: int) -> int:
            """Is a part."""
            return number
    '''
    async with garden_of(source) as garden, garden.client(mode) as client:
        result = await client.call_tool("whole")
    assert result.structured_content == {"result": [0, 1, 2]}, result.content


async def test_a_call_of_a_function_that_the_client_cancels_is_cancelled_inside(
    garden_of: GardenOf,
) -> None:
    source = '''
        async def outer(context: RequestContext) -> None:
            """Calls."""
            await context.call("inner", {})

        async def inner() -> None:
            """Waits."""
            _note("waiting")
            try:
                await anyio.sleep(60)
            finally:
                _note("gave up")
    '''
    async with garden_of(source) as garden, garden.client("legacy") as client:
        with pytest.raises(MCPError):
            await client.call_tool("outer", read_timeout_seconds=2)
        await garden.notes("gave up")


async def test_what_another_server_asks_a_function_that_calls_it_reaches_the_client(
    garden_of: GardenOf, tmp_path: Path, mode: str
) -> None:
    source = '''
        async def reach(context: RequestContext) -> str:
            """Calls another server."""
            _note("reaching")
            return (await context.call("toy__asking", {"kinds": ["form", "form"]})).text
    '''
    journal = {"TOY_JOURNAL": str(tmp_path / "toy")}
    toy = ServerSettings(command=sys.executable, args=(str(TOY), "handshake"), env=journal)
    asked: list[str] = []

    async def person(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Ann"})

    async with (
        garden_of(source, servers={"toy": toy}) as garden,
        garden.client(mode, elicitation_callback=person) as client,
    ):
        result = await client.call_tool("reach")
    assert told(result).count("Ann") == 2, told(result)
    assert [each.startswith("The server 'toy' asks: ") for each in asked] == [True, True]
    assert garden.noted == ["reaching"]
