from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PromptReference, ResourceTemplateReference, TextContent

from server.mcp.views import VIEW_CHARACTERS
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext
from storage.people.models import NewEntity

ANN = Identity(user_id="ann")


@pytest.fixture
def server(server_of: Callable[..., Server[None]]) -> Server[None]:
    return server_of(builtin=True)


@pytest.fixture
def shelf(library: Library) -> Shelf:
    return library.shelf(ANN)


def happen(shelf: Shelf, title: str, when: datetime, **more: Any) -> None:
    new = NewContext(
        context_type=ContextType.EVENT,
        title=title,
        text=f"{title} took place.",
        event_time=when.timestamp(),
        **more,
    )
    shelf.add(new)


async def prompt(server: Server[None], name: str, mode: str = "auto", **arguments: str) -> str:
    """What the model is told."""
    async with Client(server, mode=mode) as client:
        (message,) = (await client.get_prompt(name, arguments)).messages
    assert message.role == "user"
    assert isinstance(message.content, TextContent)
    return message.content.text


async def test_four_prompts_are_listed_with_their_arguments(
    server: Server[None], mode: str
) -> None:
    async with Client(server, mode=mode) as client:
        prompts = (await client.list_prompts()).prompts
    arguments = {
        each.name: [(one.name, one.required) for one in each.arguments or ()] for each in prompts
    }
    assert arguments == {
        "recall": [("topic", False)],
        "remember": [("content", True)],
        "what_happened": [("when", True), ("timezone", False)],
        "skill": [("name", True), ("task", False)],
    }
    assert all(each.description and each.title for each in prompts)


async def test_recall_brings_back_what_fits_a_topic_with_its_source(
    server: Server[None], shelf: Shelf, mode: str
) -> None:
    shelf.add(NewContext(title="Kettle", text="The kettle leaks.", raw_type="file", raw_id="k.md"))
    text = await prompt(server, "recall", mode, topic="leaking kettle")
    assert "about 'leaking kettle'" in text
    assert "The kettle leaks." in text
    assert "(file: k.md)" in text


async def test_recall_without_a_topic_brings_back_what_matters(
    server: Server[None], shelf: Shelf
) -> None:
    shelf.people.save_profile(summary="Ann brews tea.")
    assert "Ann brews tea." in await prompt(server, "recall")


async def test_remember_asks_for_the_tools_as_they_are_called(server: Server[None]) -> None:
    text = await prompt(server, "remember", content="Bo's birthday is on 3 May.")
    assert "- add_event(" in text
    assert "- remember(" in text
    assert "entities?: [string]" in text
    assert text.endswith("To keep:\n\nBo's birthday is on 3 May.")


async def test_what_happened_tells_the_events_of_a_time_in_order(
    server: Server[None], shelf: Shelf, mode: str
) -> None:
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    happen(shelf, "Dinner", noon + timedelta(hours=7))
    happen(shelf, "Lunch", noon)
    happen(shelf, "Eve", noon - timedelta(days=1))
    text = await prompt(server, "what_happened", mode, when="2026-11-22")
    assert "Sunday, 2026-11-22: 2 events" in text
    assert text.index("Lunch took place.") < text.index("Dinner took place.")
    assert "Eve" not in text
    assert "Eve took place." in await prompt(server, "what_happened", when="2026-W47")


async def test_what_happened_begins_days_where_the_caller_is(
    server: Server[None], shelf: Shelf
) -> None:
    happen(shelf, "Breakfast", datetime(2026, 11, 21, 20, tzinfo=UTC))
    here = {"when": "2026-11-22", "timezone": "Pacific/Auckland"}
    assert "Breakfast" in await prompt(server, "what_happened", **here)
    assert "Breakfast" not in await prompt(server, "what_happened", when="2026-11-22")


async def test_what_happened_tells_of_a_day_no_summary_of_its_month(
    server: Server[None], shelf: Shelf
) -> None:
    noon = datetime(2026, 11, 2, 12, tzinfo=UTC)
    for day in (1, 8):
        happen(shelf, f"Lunch {day}", noon + timedelta(days=day))
    async with Client(server) as client:
        arguments = {"until": "2027-01-01", "summarizer": "extractive"}
        built = await client.call_tool("build_event_summaries", arguments)
    assert not built.is_error
    quiet = await prompt(server, "what_happened", when="2026-11-05")
    assert ": 0 events" in quiet
    assert "summary of" not in quiet
    single = await prompt(server, "what_happened", when="2026-11-03", timezone="Europe/Paris")
    assert "summary of 2026-11-03" in single
    assert "summary of 2026-11," not in single
    month = await prompt(server, "what_happened", when="2026-11", timezone="Europe/Paris")
    assert ": 2 events" in month
    assert month.index("summary of 2026-11,") < month.index("summary of 2026-W45")
    assert month.index("summary of 2026-W45") < month.index(": event,")


async def test_what_happened_yesterday_is_told_from_now(server: Server[None], shelf: Shelf) -> None:
    happen(shelf, "Lunch", datetime.now(UTC) - timedelta(days=1))
    assert "Lunch took place." in await prompt(server, "what_happened", when="last 2 days")


async def test_a_time_without_events_says_so(server: Server[None]) -> None:
    assert ": 0 events" in await prompt(server, "what_happened", when="1999")


async def test_what_a_prompt_tells_is_bounded(server: Server[None], shelf: Shelf) -> None:
    for number in range(60):
        now = datetime.now(UTC)
        happen(shelf, f"Event {number} {'word ' * 90}", now, raw_type="log", raw_id=str(number))
    for name, arguments in {
        "recall": {"topic": "word"},
        "what_happened": {"when": "today"},
    }.items():
        assert len(await prompt(server, name, **arguments)) < VIEW_CHARACTERS + 500


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("recal", {}, "recall, remember, what_happened"),
        ("remember", {}, "needs content"),
        ("remember", {"content": "  "}, "needs content"),
        ("remember", {"content": "x" * 10_001}, "at most 10000 characters"),
        ("recall", {"subject": "tea"}, "there is topic"),
        ("what_happened", {"when": "soon"}, "'soon' names no time"),
        ("what_happened", {"when": "today", "timezone": "Mars"}, "'Mars' is not a time zone"),
    ],
)
async def test_a_wrong_argument_is_named(
    server: Server[None], mode: str, name: str, arguments: dict[str, str], told: str
) -> None:
    async with Client(server, mode=mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt(name, arguments)
    assert caught.value.code == INVALID_PARAMS
    assert told in str(caught.value)


async def test_prompts_tell_nothing_of_another_user(server: Server[None], library: Library) -> None:
    eve = library.shelf(Identity(user_id="eve"))
    happen(eve, "Secret", datetime.now(UTC), entities=("Secret",))
    eve.people.save_profile(summary="Secret.")
    eve.people.save_entity(NewEntity(name="Secret"))
    assert "Secret took" not in await prompt(server, "recall", topic="Secret")
    assert "Secret" not in await prompt(server, "recall")
    assert "Secret" not in await prompt(server, "what_happened", when="this year")
    assert await completed(server, PromptReference(name="recall"), topic="Sec") == []


async def completed(
    server: Server[None], ref: PromptReference | ResourceTemplateReference, **argument: str
) -> list[str]:
    ((name, value),) = argument.items()
    async with Client(server) as client:
        result = await client.complete(ref, {"name": name, "value": value})
    return result.completion.values


async def test_arguments_are_completed(server: Server[None], shelf: Shelf) -> None:
    shelf.people.save_entity(NewEntity(name="Ada Lovelace"))
    happened = PromptReference(name="what_happened")
    assert await completed(server, PromptReference(name="recall"), topic="love") == ["Ada Lovelace"]
    entity = ResourceTemplateReference(uri="context://entities/{name}")
    assert await completed(server, entity, name="a") == ["Ada Lovelace"]
    assert (await completed(server, happened, when="yes"))[0] == "yesterday"
    assert "Europe/Paris" in await completed(server, happened, timezone="paris")
    assert len(await completed(server, happened, timezone="")) == 100
    time = ResourceTemplateReference(uri="context://time/{bucket}")
    assert f"{datetime.now(UTC):%Y-%m}" in await completed(server, time, bucket="")
    plan = shelf.plans.create("s", "Sow", [])
    plans = ResourceTemplateReference(uri="context://plans/{id}")
    assert await completed(server, plans, id=plan.id[:2]) == [plan.id]
    assert await completed(server, PromptReference(name="remember"), content="x") == []
