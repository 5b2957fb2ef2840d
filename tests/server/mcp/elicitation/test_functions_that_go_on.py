"""Functions that go on while their client is away (protocol 2026-07-28): a real worker, a client
that makes each round itself."""

import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
import mcp_types as types
import pytest

from tests.conftest import told
from tests.people import answered, never, round_of

GardenOf = Callable[..., AbstractAsyncContextManager[Any]]
pytestmark = pytest.mark.slow
ERA = "2026-07-28"
SOURCE = '''
    import os

    from tools.authoring import tool

    async def ask(context: RequestContext, what: str = "Well?") -> bool:
        """Asks."""
        _note("asking")
        try:
            answer = await context.ask(bool, what)
        except anyio.get_cancelled_exc_class():
            _note("gave up")
            raise
        _note("asked")
        return answer

    async def pid(context: RequestContext) -> int:
        """Asks, then tells its process."""
        _note(str(os.getpid()))
        await context.ask(bool, "Well?")
        return os.getpid()
'''


async def test_a_function_goes_on_where_it_was(garden_of: GardenOf) -> None:
    async with (
        garden_of(SOURCE) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        first = await round_of(client, "ask")
        assert garden.noted == ["asking"]
        again = await round_of(client, "ask", request_state=answered(first)["request_state"])
        assert told(await round_of(client, "ask", **answered(again))) == "true"
    assert garden.noted == ["asking", "asked"]


async def test_a_function_whose_client_does_not_come_back_is_cancelled(garden_of: GardenOf) -> None:
    async with (
        garden_of(SOURCE) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        garden.app.requests.suspended.seconds = 0.05
        first = await round_of(client, "ask")
        await garden.notes("gave up")
        assert "come too late" in told(await round_of(client, "ask", **answered(first)))
    assert garden.noted == ["asking", "gave up"]


async def test_a_function_is_cancelled_with_the_call_that_waits_for_it(garden_of: GardenOf) -> None:
    source = '''
        async def wait(context: RequestContext) -> None:
            """Asks, then waits."""
            await context.ask(bool, "Well?")
            _note("waiting")
            try:
                await anyio.sleep(60)
            finally:
                _note("gave up")
    '''
    async with (
        garden_of(source) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        first = await round_of(client, "wait")
        async with anyio.create_task_group() as group:

            async def go_on() -> None:
                await round_of(client, "wait", **answered(first))

            group.start_soon(go_on)
            await garden.notes("waiting")
            group.cancel_scope.cancel()
        await garden.notes("gave up")


async def test_a_question_waits_for_no_read_beside_it_which_ends_with_the_call(
    garden_of: GardenOf,
) -> None:
    looking = '''
    @tool(effects={"read"})
    async def look() -> None:
        """Never ends."""
        _note("looking")
        try:
            await anyio.sleep_forever()
        finally:
            _note("looked away")
'''
    source = SOURCE.replace("async def ask", '@tool(effects={"read"})\n    async def ask') + looking
    names = ("look", "ask")
    arguments: Any = {"calls": [{"name": name, "arguments": {}} for name in names]}
    async with (
        garden_of(source) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        asked = answered(await round_of(client, "call_tools", arguments=arguments))
        async with anyio.create_task_group() as group:
            group.start_soon(partial(round_of, client, "call_tools", arguments=arguments, **asked))
            await garden.notes("asked")
            await garden.notes("looking")
            group.cancel_scope.cancel()
        await garden.notes("looked away")


async def test_answers_count_once_and_for_this_very_call_of_this_conversation(
    garden_of: GardenOf,
) -> None:
    async with (
        garden_of(SOURCE) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        brought = answered(await round_of(client, "ask"))
        other = {**brought, "arguments": {"what": "Sure?"}}
        assert "come too late" in told(await round_of(client, "ask", **other))
        assert "come too late" in told(await round_of(client, "pid", **brought))
        own, garden.app.sessions.own = garden.app.sessions.own, "another conversation"
        assert "come too late" in told(await round_of(client, "ask", **brought))
        garden.app.sessions.own = own
        assert told(await round_of(client, "ask", **brought)) == "true"
        assert "come too late" in told(await round_of(client, "ask", **brought))
    assert garden.noted == ["asking", "asked"]


@pytest.mark.parametrize(
    "answer",
    [
        types.ListRootsResult(roots=[]),
        types.CreateMessageResult(
            role="assistant", content=types.TextContent(text="yes"), model="m"
        ),
    ],
)
async def test_an_answer_of_another_kind_is_none(garden_of: GardenOf, answer: Any) -> None:
    async with (
        garden_of(SOURCE) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        brought = answered(await round_of(client, "ask"), answer)
        assert told(await round_of(client, "ask", **brought)).startswith("unavailable: ")


async def test_two_clients_are_asked_each_on_its_own(garden_of: GardenOf) -> None:
    no = types.ElicitResult(action="accept", content={"answer": False})
    async with (
        garden_of(SOURCE) as garden,
        garden.client(ERA, elicitation_callback=never) as ann,
        garden.client(ERA, elicitation_callback=never) as bo,
    ):
        first, second = await round_of(ann, "ask"), await round_of(bo, "ask")
        assert told(await round_of(bo, "ask", **answered(second, no))) == "false"
        assert told(await round_of(ann, "ask", **answered(first))) == "true"
    assert garden.noted.count("asking") == 2


async def test_a_file_that_is_saved_meanwhile_serves_new_calls_and_ends_the_old_one(
    garden_of: GardenOf,
) -> None:
    async with (
        garden_of(SOURCE) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        first = await round_of(client, "pid")
        garden.file.write_text(garden.file.read_text("utf-8") + "\n# saved", encoding="utf-8")
        second = await round_of(client, "pid")
        old, new = garden.noted
        assert old != new
        assert told(await round_of(client, "pid", **answered(first))) == old
        assert told(await round_of(client, "pid", **answered(second))) == new


async def test_a_worker_that_dies_meanwhile_fails_the_call(garden_of: GardenOf) -> None:
    async with (
        garden_of(SOURCE) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        first = await round_of(client, "pid")
        os.kill(int(garden.noted[0]), signal.SIGKILL)
        result = await round_of(client, "pid", **answered(first))
        assert "killed by SIGKILL" in told(result)


async def test_calls_of_one_function_in_one_call_are_each_made_once(garden_of: GardenOf) -> None:
    calls = [{"name": "ask", "arguments": {}}] * 2
    async with (
        garden_of(SOURCE) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        result = await round_of(client, "call_tools", arguments={"calls": calls})
        while isinstance(result, types.InputRequiredResult):
            more = answered(result)
            result = await round_of(client, "call_tools", arguments={"calls": calls}, **more)
    assert told(result) == "1. ask:\ntrue\n2. ask:\ntrue"
    assert garden.noted == ["asking", "asked"] * 2


async def test_an_author_may_give_up_a_question(garden_of: GardenOf) -> None:
    source = '''
        async def hurry(context: RequestContext) -> str:
            """Asks, but not for long."""
            with anyio.move_on_after(0.5):
                return str(await context.ask(bool, "Well?"))
            _note("went on")
            return "nobody answered"
    '''
    async with (
        garden_of(source) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        first = await round_of(client, "hurry")
        await garden.notes("went on")
        assert told(await round_of(client, "hurry", **answered(first))) == "nobody answered"


CONFIRM = '''
    class Confirm(BaseModel):
        ok: bool

    async def sell(context: RequestContext) -> list[bool]:
        """Asks the same of two things."""
        bean = await context.ask(Confirm, "Sell a bean?")
        return [bean.ok, (await context.ask(Confirm, "Sell the house?")).ok]

    async def hurry(context: RequestContext) -> bool:
        """Asks, gives up, and asks something else."""
        with anyio.move_on_after(0.5):
            await context.ask(Confirm, "Sell a bean?")
        _note("gave up")
        return (await context.ask(Confirm, "Sell the house?")).ok

    async def gather(context: RequestContext) -> str:
        """Asks three things at once."""
        found = {}

        async def get(name, asking):
            found[name] = await asking

        async with anyio.create_task_group() as group:
            group.start_soon(get, "ok", context.ask(Confirm, "Well?"))
            group.start_soon(get, "reply", context.sample("Praise."))
            group.start_soon(get, "roots", context.roots())
        return f"{found['ok'].ok} {found['reply']} {found['roots'][0].uri}"
'''
OK = types.ElicitResult(action="accept", content={"ok": True})


async def test_a_question_has_the_name_of_its_form_and_may_be_answered_before_it_is_asked(
    garden_of: GardenOf,
) -> None:
    async with (
        garden_of(CONFIRM) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        early = await round_of(client, "sell", input_responses={"confirm": OK, "other": OK})
        assert isinstance(early, types.InputRequiredResult)
        ((key, question),) = (early.input_requests or {}).items()
        assert key != "confirm"  # an answer counts for one question
        assert isinstance(question.params, types.ElicitRequestFormParams)
        assert question.params.message == "'sell' asks: Sell the house?"
        again = {"confirm": OK}
        state = early.request_state
        late = await round_of(client, "sell", input_responses=again, request_state=state)
        assert told(await round_of(client, "sell", **answered(late, OK))) == "[true,true]"


async def test_an_answer_to_a_question_that_was_given_up_counts_for_no_other(
    garden_of: GardenOf,
) -> None:
    async with (
        garden_of(CONFIRM) as garden,
        garden.client(ERA, elicitation_callback=never) as client,
    ):
        first = await round_of(client, "hurry")
        await garden.notes("gave up")
        second = await round_of(client, "hurry", **answered(first, OK))
        assert isinstance(second, types.InputRequiredResult)
        no = types.ElicitResult(action="accept", content={"ok": False})
        assert told(await round_of(client, "hurry", **answered(second, no))) == "false"


async def test_what_is_asked_at_once_is_asked_in_one_round(garden_of: GardenOf) -> None:
    can = dict.fromkeys(("elicitation_callback", "sampling_callback", "list_roots_callback"), never)
    async with garden_of(CONFIRM) as garden, garden.client(ERA, **can) as client:
        first = await round_of(client, "gather")
        assert isinstance(first, types.InputRequiredResult)
        answers: dict[str, Any] = {
            "elicitation/create": OK,
            "sampling/createMessage": types.CreateMessageResult(
                role="assistant", content=types.TextContent(text="Splendid!"), model="m"
            ),
            "roots/list": types.ListRootsResult(roots=[types.Root(uri="file:///garden")]),
        }
        asked = first.input_requests or {}
        assert {each.method for each in asked.values()} == answers.keys()
        brought = {key: answers[each.method] for key, each in asked.items()}
        last = await round_of(
            client, "gather", input_responses=brought, request_state=first.request_state
        )
    assert told(last) == "True Splendid! file:///garden"
