"""Calls that go on while their client is away: a server of the older era, a client of the newer."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from server.app import App
from server.mcp.elicitation.suspended import MOST
from tests.conftest import told
from tests.people import Round, answered, never
from tests.people import round_of as one_round

pytestmark = pytest.mark.slow

AppOf = Callable[..., AbstractAsyncContextManager[App]]
ClientOf = Callable[..., Client]
Toy = Callable[..., AbstractAsyncContextManager[Client]]

YES = types.ElicitResult(action="accept", content={"name": "Ann"})


async def round_of(client: Client, name: str = "toy__asking", **more: Any) -> Round:
    return await one_round(client, name, **{"arguments": {"kinds": ["form"]}, **more})


def is_too_late(result: Round) -> bool:
    return isinstance(result, types.CallToolResult) and "come too late" in told(result)


async def test_a_call_goes_on_where_it_was_when_the_answers_come(toy: Toy, journal: Any) -> None:
    async with toy(era="modern", elicitation_callback=never) as client:
        first = await round_of(client)
        assert "asked" not in journal.lines
        assert "Ann" in told(await round_of(client, **answered(first, YES)))
    assert journal.lines.count("asking") == 1


async def test_a_client_that_comes_back_without_answers_is_asked_again(
    toy: Toy, journal: Any
) -> None:
    async with toy(era="modern", elicitation_callback=never) as client:
        first = await round_of(client)
        assert isinstance(first, types.InputRequiredResult)
        second = await round_of(client, request_state=first.request_state)
        assert "Ann" in told(await round_of(client, **answered(second, YES)))
    assert journal.lines.count("asking") == 1


async def test_an_answer_of_another_kind_is_told_to_the_server_as_none(toy: Toy) -> None:
    async with toy(era="modern", elicitation_callback=never) as client:
        first = await round_of(client)
        wrong = answered(first, types.ListRootsResult(roots=[]))
        assert told(await round_of(client, **wrong)).startswith("error -32603")


async def test_answers_count_once_and_for_this_call_alone(toy: Toy, journal: Any) -> None:
    async with toy(era="modern", elicitation_callback=never) as client:
        brought = answered(await round_of(client), YES)
        others = {**brought, "arguments": {"kinds": ["form", "form"]}}
        assert is_too_late(await round_of(client, **others))
        assert is_too_late(await round_of(client, "toy__echo", **brought))
        assert "Ann" in told(await round_of(client, **brought))
        assert is_too_late(await round_of(client, **brought))
    assert journal.lines.count("asking") == 1
    assert "echo" not in journal.lines


async def test_answers_count_for_whoever_was_asked_alone(
    app_of: AppOf, client_of: ClientOf, tmp_path: Any
) -> None:
    async with app_of() as app, client_of(app, "modern", elicitation_callback=never) as client:
        brought = answered(await round_of(client), YES)
        app.sessions.own = "another conversation"
        assert is_too_late(await round_of(client, **brought))


async def test_answers_after_a_restart_come_too_late_and_call_nothing(
    toy: Toy, journal: Any
) -> None:
    async with toy(era="modern", elicitation_callback=never) as client:
        brought = answered(await round_of(client), YES)
    async with toy(era="modern", elicitation_callback=never) as client:
        assert is_too_late(await round_of(client, **brought))
    assert journal.lines.count("asking") == 1


async def test_a_call_whose_client_does_not_come_back_is_given_up(
    app_of: AppOf, client_of: ClientOf, journal: Any
) -> None:
    async with app_of() as app, client_of(app, "modern", elicitation_callback=never) as client:
        app.requests.suspended.seconds = 0.05
        brought = answered(await round_of(client), YES)
        await journal.tells("gave up asking")
        assert is_too_late(await round_of(client, **brought))


async def test_of_too_many_calls_that_wait_the_oldest_gives_way(toy: Toy, journal: Any) -> None:
    async with toy(era="modern", elicitation_callback=never) as client:
        rounds = [answered(await round_of(client), YES) for _ in range(MOST + 1)]
        await journal.tells("gave up asking")
        assert is_too_late(await round_of(client, **rounds[0]))
        assert "Ann" in told(await round_of(client, **rounds[1]))
        assert "Ann" in told(await round_of(client, **rounds[-1]))


async def test_a_call_that_was_answered_is_not_made_again_while_another_asks(
    toy: Toy, journal: Any
) -> None:
    echo: Any = {"name": "toy__echo", "arguments": {}}
    asking = {"name": "toy__asking", "arguments": {"kinds": ["form"]}}
    async with toy(era="modern", elicitation_callback=never) as client:
        assert "echoed" in told(await round_of(client, "toy__echo", arguments={}))
        given = {"arguments": {"calls": [echo, asking, echo]}}
        first = await round_of(client, "call_tools", **given)
        assert journal.lines[-2:] == ["echo", "asking"]  # what follows waits for the answer
        assert "Ann" in told(await round_of(client, "call_tools", **given, **answered(first, YES)))
    assert journal.lines[-3:] == ["asking", "asked", "echo"]


async def test_calls_side_by_side_ask_each_on_its_own_and_hold_up_no_other(
    app_of: AppOf, client_of: ClientOf, journal: Any
) -> None:
    calls = [
        {"name": "toy__asking", "arguments": {"kinds": ["form"]}},
        {"name": "toy__asking", "arguments": {"kinds": ["form", "form"]}},
        {"name": "toy__echo", "arguments": {}},
    ]
    can = {"elicitation_callback": never}
    async with app_of(trusted=True) as app, client_of(app, "modern", **can) as client:
        assert "echoed" in told(await round_of(client, "toy__echo", arguments={}))
        result = await round_of(client, "call_tools", arguments={"calls": calls})
        while isinstance(result, types.InputRequiredResult):
            more = answered(result, YES)
            result = await round_of(client, "call_tools", arguments={"calls": calls}, **more)
    assert told(result).count("Ann") == 3
    assert [journal.lines.count(line) for line in ("asking", "asked", "echo")] == [2, 2, 2]


async def test_answers_that_nobody_asked_for_reach_the_server_as_without_toolcrib(toy: Toy) -> None:
    async with toy("modern", "modern", elicitation_callback=never) as client:
        assert "Ann" in told(await round_of(client, input_responses={"q": YES}))
