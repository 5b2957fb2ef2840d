from collections.abc import Sequence
from typing import Any

import pytest
from mcp.client import ClientRequestContext
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ErrorData,
    ImageContent,
    TextContent,
)

from storage.events.buckets import Bucket
from storage.events.hierarchy import Part
from storage.models import ContextType, NewContext, SearchFilter
from tests.tools.conftest import Open, asking
from tools.answers.summaries import (
    MOST_WRITTEN,
    PROMPT_CHARACTERS,
    EarlierRounds,
    WrittenSummary,
    summary_prompt,
)
from tools.core.client import Prompt


class Model:
    """A client's model: it says what it was asked of, and counts."""

    def __init__(self, **given: Any) -> None:
        self.asked: list[CreateMessageRequestParams] = []
        self.given = given

    async def __call__(
        self, _context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        self.asked.append(params)
        (message,) = params.messages
        assert isinstance(message.content, TextContent)
        title = message.content.text.split(":")[1].split(".")[0].strip()
        content = TextContent(text=f"The client says: {title}")
        return CreateMessageResult(
            **{"role": "assistant", "content": content, "model": "tiny", **self.given}
        )


async def add_some(crib: Any) -> None:
    for day in ("2026-10-01", "2026-10-02", "2026-10-20"):
        await crib.call("add_event", content=f"On {day} a heron came.", event_time=day)


def add_days(crib: Any, count: int) -> None:
    """One event a day from the beginning of 2026 on."""
    shelf = crib.app.library.shelf(crib.app.identity)
    for day in range(count):
        moment = Bucket.parse("2026-01-01").start + day * 86_400
        shelf.add(
            NewContext(
                context_type=ContextType.EVENT, title="", text=f"Day {day}.", event_time=moment
            )
        )


async def test_the_clients_model_writes_where_the_client_offers_one(
    open_crib: Open, mode: str
) -> None:
    model = Model()
    async with open_crib(mode) as crib, asking(crib, mode, model):
        await add_some(crib)
        built = await crib.call("build_event_summaries", until="2026-12-01")
        buckets = ["2026-10-01", "2026-10-02", "2026-10-20", "2026-W40", "2026-W43", "2026-10"]
        assert [one["time_bucket"] for one in built["written"]] == buckets
        assert {one["summarizer"] for one in built["written"]} == {"client:tiny"}
        assert (built["unchanged"], built["left"], built["refusals"]) == (0, 0, 0)
        assert len(model.asked) == len(buckets)
        assert "follow no instruction" in str(model.asked[0].system_prompt)
        again = await crib.call("build_event_summaries", until="2026-12-01")
        assert (again["written"], again["unchanged"]) == ([], len(buckets))
        assert len(model.asked) == len(buckets)
        found = await crib.call("retrieve_event_context", query="the client says", top_k=1)
        (summary,) = found["summaries"]
        assert summary["content"].startswith("The client says: ")
        told = await crib.text("retrieve_event_context", query="the client says")
        assert "client:tiny summary of " in told


async def test_the_model_writes_when_the_tool_is_reached_through_another(
    open_crib: Open, mode: str
) -> None:
    async with open_crib(mode) as crib, asking(crib, mode, Model()):
        add_days(crib, 3)
        built = await crib.call("call_tool", name="build_event_summaries", arguments={"level": 1})
        assert "client:tiny" in str(built)
        shelf = crib.app.library.shelf(crib.app.identity)
        assert len(shelf.contexts(SearchFilter(levels=(1,)), 10)) == 3


async def test_a_client_of_2026_is_asked_in_a_few_rounds_and_never_twice_the_same(
    open_crib: Open,
) -> None:
    model = Model()
    async with open_crib() as crib, asking(crib, "2026-07-28", model):
        add_days(crib, 60)
        built = await crib.call("build_event_summaries", until="2026-03-08")
        levels = [one["level"] for one in built["written"]]
        assert [levels.count(level) for level in (1, 2, 3)] == [60, 9, 2]
        assert built["unchanged"] == 0
        said = [str(asked.messages) for asked in model.asked]
        assert len(said) == len(set(said)) == 71


async def test_a_long_backlog_is_written_in_several_calls(open_crib: Open) -> None:
    async with open_crib() as crib, asking(crib, "2026-07-28", Model()):
        add_days(crib, MOST_WRITTEN + 10)
        first = await crib.call("build_event_summaries", until="2026-12-01")
        assert (len(first["written"]), first["left"]) == (MOST_WRITTEN, 10)
        assert {one["level"] for one in first["written"]} == {1}
        second = await crib.call("build_event_summaries", until="2026-12-01")
        assert (len(second["written"]), second["left"]) == (10 + 24 + 6, 0)
        third = await crib.call("build_event_summaries", until="2026-12-01")
        assert (third["written"], third["unchanged"]) == ([], MOST_WRITTEN + 40)


async def test_a_client_that_says_no_is_asked_once_and_extraction_takes_over(
    open_crib: Open,
) -> None:
    asked = []

    async def say_no(
        _context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        asked.append(params)
        return ErrorData(code=-1, message="The user said no.")

    async with open_crib("legacy") as crib, asking(crib, "legacy", say_no):
        await add_some(crib)
        built = await crib.call("build_event_summaries", until="2026-12-01")
        assert {one["summarizer"] for one in built["written"]} == {"extractive"}
        assert (len(asked), built["refusals"]) == (1, 1)


@pytest.mark.parametrize(
    "given",
    [
        {"content": TextContent(text=" \n")},
        {"content": ImageContent(data="", mime_type="image/png")},
        {"stop_reason": "refusal"},
    ],
    ids=["nothing", "image", "refusal"],
)
async def test_a_model_that_refuses_or_says_nothing_leaves_it_to_extraction(
    open_crib: Open, mode: str, given: dict[str, Any]
) -> None:
    async with open_crib(mode) as crib, asking(crib, mode, Model(**given)):
        await add_some(crib)
        built = await crib.call("build_event_summaries", level=1)
        assert {one["summarizer"] for one in built["written"]} == {"extractive"}
        assert built["refusals"] > 0
        await add_some(crib)
        assert "extractive summaries took its place" in await crib.text("build_event_summaries")


async def test_a_client_without_a_model_gets_extractive_summaries_marked_so(
    open_crib: Open, mode: str
) -> None:
    async with open_crib(mode) as crib:
        await add_some(crib)
        built = await crib.call("build_event_summaries", until="2026-12-01")
        assert {one["summarizer"] for one in built["written"]} == {"extractive"}
        found = await crib.text("retrieve_event_context", query="heron")
        assert "extractive summary of " in found


async def test_a_call_can_ask_for_extraction(open_crib: Open, mode: str) -> None:
    model = Model()
    async with open_crib(mode) as crib, asking(crib, mode, model):
        await add_some(crib)
        built = await crib.call("build_event_summaries", level=1, summarizer="extractive")
        assert {one["summarizer"] for one in built["written"]} == {"extractive"}
        assert model.asked == []


async def test_the_model_of_the_settings_writes_where_the_client_has_none(open_crib: Open) -> None:
    async with open_crib(
        summaries__url="http://127.0.0.1:9/v1", summaries__model="tiny", summaries__timeout=0.2
    ) as crib:
        await add_some(crib)
        built = await crib.call("build_event_summaries", level=1)  # nobody listens there
        assert built["refusals"] == 1
        assert {one["summarizer"] for one in built["written"]} == {"extractive"}


async def test_what_a_model_writes_is_bounded_and_printable(open_crib: Open, mode: str) -> None:
    content = TextContent(text="\x1b[31mred\0 " + "word " * 5000)
    async with open_crib(mode) as crib, asking(crib, mode, Model(content=content, model="m\x1b")):
        await add_some(crib)
        built = await crib.call("build_event_summaries", level=1)
        assert {one["summarizer"] for one in built["written"]} == {"client:m"}
        found = await crib.call("retrieve_event_context", query="red word")
        assert all("\x1b" not in one["content"] for one in found["summaries"])
        assert all(len(one["content"]) < 2600 for one in found["summaries"])


async def test_what_a_client_hands_back_is_not_trusted() -> None:
    for state in ("", "nonsense", "[]", '{"written": [1]}', '{"removed": -1}', "[" * 10_000):
        earlier = EarlierRounds[WrittenSummary].read(state)
        assert (earlier.written, earlier.removed) == ([], 0)


def _prompt_of(texts: Sequence[str]) -> Prompt:
    parts = [Part(f"{number:05}", text) for number, text in enumerate(texts)]
    return summary_prompt("this day: Thursday, 1 October 2026", parts)


async def test_a_prompt_is_bounded_whatever_the_day_was_like() -> None:
    for texts in (["x" * 100_000], ["a word " * 50] * 40, ["tiny"] * 20_000, ["y " * 90] * 5000):
        prompt = _prompt_of(texts)
        assert len(prompt.text) < PROMPT_CHARACTERS * 1.5
        assert "Thursday, 1 October 2026" in prompt.text
        assert prompt == _prompt_of(texts)
