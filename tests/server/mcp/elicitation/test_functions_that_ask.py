"""Functions that ask the person at the client, in both eras: a real worker, a real client."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.conftest import told
from tests.people import Person

GardenOf = Callable[..., AbstractAsyncContextManager[Any]]

pytestmark = pytest.mark.slow
SOURCE = '''
    class Order(BaseModel):
        plant: Literal["bean", "leek"] = Field(description="What to \\u202e sow")
        beds: int = Field(1, ge=1, le=9)


    async def order(context: RequestContext, who: str = "Ann") -> dict:
        """Asks what to sow."""
        _note("ordering")
        try:
            got = await context.ask(Order, f"What for {who}?")
        except DeclinedError as error:
            return {"dismissed": error.dismissed, "type": error.error_type}
        _note("ordered")
        return got.model_dump()


    async def sow(context: RequestContext) -> bool:
        """Asks two things one after the other, then both at once."""
        answers = []

        async def ask(what):
            answers.append(await context.ask(bool, what))

        await ask("Dig?")
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "Sow?")
            group.start_soon(ask, "Water?")
        _note("sown")
        return all(answers) and len(answers) == 3


    async def pry(context: RequestContext) -> str:
        """Asks for what no form can have."""
        try:
            await context.ask(list[str], "Which?")
        except TypeError as error:
            return str(error)
'''


async def test_a_function_gets_what_the_person_answers_and_is_run_once(
    garden_of: GardenOf, mode: str
) -> None:
    person = Person({"plant": "leek"})
    async with (
        garden_of(SOURCE) as garden,
        garden.client(mode, elicitation_callback=person) as client,
    ):
        result = await client.call_tool("order", {"who": "Bo"})
    assert result.structured_content == {"plant": "leek", "beds": 1}
    (asked,) = person.asked
    assert asked.message == "'order' asks: What for Bo?"
    plant = asked.requested_schema["properties"]["plant"]
    assert plant["enum"] == ["bean", "leek"]
    assert plant["description"] == "What to <U+202E> sow"
    assert garden.noted == ["ordering", "ordered"]


@pytest.mark.parametrize(
    ("action", "content", "expected"),
    [
        ("decline", None, {"dismissed": False, "type": "permission_denied"}),
        ("cancel", None, {"dismissed": True, "type": "permission_denied"}),
        ("accept", {}, {"dismissed": True, "type": "permission_denied"}),
        ("accept", {"beds": 2}, {"dismissed": True, "type": "permission_denied"}),
    ],
)
async def test_a_person_who_gives_no_answer_is_told_apart_from_one_who_says_no(
    garden_of: GardenOf, mode: str, action: str, content: Any, expected: Any
) -> None:
    async with (
        garden_of(SOURCE) as garden,
        garden.client(mode, elicitation_callback=Person(content, action=action)) as client,
    ):
        result = await client.call_tool("order")
    assert result.structured_content == expected


async def test_an_answer_that_does_not_fit_fails_the_call_and_says_where(
    garden_of: GardenOf, mode: str
) -> None:
    person = Person({"plant": "leek", "beds": 12})
    async with (
        garden_of(SOURCE) as garden,
        garden.client(mode, elicitation_callback=person) as client,
    ):
        result = await client.call_tool("order")
    assert result.is_error
    assert "beds: Input should be less than or equal to 9" in told(result)


async def test_a_client_without_forms_is_told_apart_from_a_person(garden_of: GardenOf) -> None:
    async with garden_of(SOURCE) as garden, garden.client("legacy") as client:
        result = await client.call_tool("order")
    assert result.is_error
    assert told(result).startswith("unavailable: order wanted to ask the user something")
    assert "no elicitation" in told(result)


async def test_a_client_of_2026_is_told_what_it_would_have_to_offer(garden_of: GardenOf) -> None:
    async with garden_of(SOURCE) as garden, garden.client("2026-07-28") as client:
        with pytest.raises(MCPError, match="order wanted to ask the user something") as caught:
            await client.call_tool("order")
    assert caught.value.error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert caught.value.error.data == {"requiredCapabilities": {"elicitation": {}}}


async def test_several_questions_are_asked_one_after_another_and_at_once(
    garden_of: GardenOf, mode: str
) -> None:
    person = Person({"answer": True})
    async with (
        garden_of(SOURCE) as garden,
        garden.client(mode, elicitation_callback=person) as client,
    ):
        result = await client.call_tool("sow")
    assert result.structured_content == {"result": True}
    asked = [each.message.removeprefix("'sow' asks: ") for each in person.asked]
    assert sorted(asked) == ["Dig?", "Sow?", "Water?"]
    assert garden.noted == ["sown"]


async def test_what_no_form_can_ask_for_is_refused_before_anything_is_asked(
    garden_of: GardenOf, mode: str
) -> None:
    person = Person({"answer": True})
    async with (
        garden_of(SOURCE) as garden,
        garden.client(mode, elicitation_callback=person) as client,
    ):
        result = await client.call_tool("pry")
    assert "list[Literal[…]]" in told(result)
    assert person.asked == []


async def test_the_time_of_a_tool_stands_still_while_a_person_thinks(
    garden_of: GardenOf, mode: str
) -> None:
    source = '''
        __tool_options__ = {"timeout": 0.5}

        async def ponder(context: RequestContext, for_ever: bool = False) -> bool:
            """Asks, then waits."""
            answer = await context.ask(bool, "Well?")
            await anyio.sleep(60 if for_ever else 0)
            return answer
    '''

    async def slow(_context: Any, _params: Any) -> types.ElicitResult:
        await anyio.sleep(1)
        return types.ElicitResult(action="accept", content={"answer": True})

    async with (
        garden_of(source) as garden,
        garden.client(mode, elicitation_callback=slow) as client,
    ):
        result = await client.call_tool("ponder")
        assert result.structured_content == {"result": True}
        result = await client.call_tool("ponder", {"for_ever": True})
        assert told(result).startswith("timeout: ponder did not finish within its 0.5 seconds")


async def test_the_place_of_a_tool_is_free_while_a_person_thinks(
    garden_of: GardenOf, mode: str
) -> None:
    source = '''
        __tool_options__ = {"effects": ["write"]}

        async def ask(context: RequestContext) -> bool:
            """Asks."""
            return await context.ask(bool, "Well?")

        async def work() -> str:
            """Works."""
            return "worked"
    '''
    async with garden_of(source) as garden, garden.client(mode) as other:

        async def busy(_context: Any, _params: Any) -> types.ElicitResult:
            assert told(await other.call_tool("work")) == "worked"
            return types.ElicitResult(action="accept", content={"answer": True})

        async with garden.client(mode, elicitation_callback=busy) as client:
            with anyio.fail_after(20):
                result = await client.call_tool("ask")
    assert result.structured_content == {"result": True}


async def test_a_call_that_has_to_be_approved_first_asks_each_once(
    garden_of: GardenOf, mode: str
) -> None:
    asked: list[str] = []

    async def person(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        answer = "once" if "wants to call" in params.message else True
        return types.ElicitResult(action="accept", content={"answer": answer})

    async with (
        garden_of(SOURCE, ask=("sow",)) as garden,
        garden.client(mode, elicitation_callback=person) as client,
    ):
        result = await client.call_tool("sow")
    assert result.structured_content == {"result": True}, result.content
    assert len(asked) == 4
    assert garden.noted == ["sown"]


async def test_progress_is_heard_before_a_question_and_after_it(
    garden_of: GardenOf, mode: str
) -> None:
    source = '''
        async def grow(context: RequestContext) -> bool:
            """Reports, asks, reports."""
            await context.report_progress(1, 3, "before")
            await context.ask(bool, "Well?")
            await context.report_progress(2, 3, "after")
            return True
    '''
    heard: list[str | None] = []

    async def hear(_done: float, _total: float | None, message: str | None) -> None:
        heard.append(message)

    async with (
        garden_of(source) as garden,
        garden.client(mode, elicitation_callback=Person({"answer": True})) as client,
    ):
        await client.call_tool("grow", progress_callback=hear)
    assert heard == ["before", "after"]


async def test_prompts_and_resources_ask_as_tools_do(garden_of: GardenOf, mode: str) -> None:
    source = '''
        from tools.authoring import prompt, resource

        @prompt()
        async def plan(context: RequestContext) -> str:
            """Plans."""
            _note("planning")
            return f"Plan for {await context.ask(str, 'For whom?')}."

        @resource("garden://sign")
        async def sign(context: RequestContext) -> str:
            """Whose it is."""
            _note("signing")
            return f"The garden of {await context.ask(str, 'Whose?')}."
    '''
    person = Person({"answer": "Ann"})
    async with (
        garden_of(source) as garden,
        garden.client(mode, elicitation_callback=person) as client,
    ):
        planned = await client.get_prompt("plan")
        read = await client.read_resource("garden://sign")
        async with garden.client("2026-07-28") as formless:
            with pytest.raises(MCPError, match="plan wanted to ask the user") as caught:
                await formless.get_prompt("plan")
    content = planned.messages[0].content
    assert isinstance(content, types.TextContent)
    assert content.text == "Plan for Ann."
    assert isinstance(read.contents[0], types.TextResourceContents)
    assert read.contents[0].text == "The garden of Ann."
    assert [each.message for each in person.asked] == [
        "'plan' asks: For whom?",
        "'sign' asks: Whose?",
    ]
    assert caught.value.error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert garden.noted == ["planning", "signing", "planning"]
