from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp.client import ClientRequestContext
from mcp_types import CreateMessageRequestParams, CreateMessageResult, ErrorData, TextContent

from storage.models import NewEntry
from tests.tools.conftest import Crib, Open, asking
from tools.answers.managed_memory import SessionSummary
from tools.answers.summaries import MOST_WRITTEN, EarlierRounds

TEA = "Ann likes her tea strong with a little milk and no sugar at all"


def record(crib: Crib, said: str, session_id: str = "monday", **given: Any) -> int:
    new: dict[str, Any] = {
        "session_id": session_id,
        "kind": "call",
        "time": 1.7e9,
        "action": "write_file",
        "target": f"{said}.md",
        "said": said,
        "importance": 4.0,
    }
    number: int = crib.app.library.entries.record(crib.app.identity, NewEntry(**(new | given)))
    return number


async def listed(crib: Crib, layer: str, **given: Any) -> list[dict[str, Any]]:
    found = await crib.call("browse_memory", action="list", layer=layer, limit=1000, **given)
    items: list[dict[str, Any]] = found["items"]
    return items


@pytest.fixture
async def crib(open_crib: Open) -> AsyncIterator[Crib]:
    async with open_crib(memory__consolidate=False) as crib:
        yield crib


async def test_stats_count_the_layers_and_say_what_is_to_be_done(crib: Crib) -> None:
    await crib.call("remember", content=TEA)
    record(crib, "The heron came", importance=7.0)
    counts = (await crib.call("manage_memory", action="stats"))["counts"]
    by_layer = {each["layer"]: each["count"] for each in counts["layers"]}
    assert by_layer["l1"] >= 1
    assert (by_layer["l2"], by_layer["l3"], by_layer["l4"]) == (1, 0, 0)
    assert (counts["to_promote"], counts["to_aggregate"], counts["to_persist"]) == (1, 1, 0)
    told = await crib.text("manage_memory", action="stats")
    assert "to promote 1, to aggregate 1, to persist 0" in told
    assert "l1: " in told
    assert ", 2023-11-14 to " in told


async def test_entries_are_promoted_when_they_matter_or_are_named(crib: Crib) -> None:
    record(crib, "The heron came", importance=7.0)
    slight = record(crib, "The kestrel came", importance=1.0)
    made = await crib.call("manage_memory", action="promote")
    assert [each["layer"] for each in made["memories"]] == ["l2"]
    assert (await crib.text("manage_memory", action="promote")) == "Promoted to l2: 0 memories."
    named = await crib.text("manage_memory", action="promote", indices=[slight])
    assert named.startswith("Promoted to l2: 1 memory.\n- write_file The kestrel came.md (l2, ")
    assert len(await listed(crib, "l2")) == 2
    assert len(await listed(crib, "l1", session="monday")) == 2


async def test_memories_are_persisted_by_age_or_name(crib: Crib) -> None:
    stored = await crib.call("remember", content=TEA)
    assert (await crib.call("manage_memory", action="persist"))["memory_count"] == 0
    moved = await crib.call("manage_memory", action="persist", ids=[stored["id"]])
    assert [(each["id"], each["layer"]) for each in moved["memories"]] == [(stored["id"], "l4")]
    await crib.call("remember", content="The kestrel nests in Ely", importance=9)
    (item,) = await listed(crib, "l2")
    told = await crib.text("manage_memory", action="persist", indices=[item["number"]])
    assert "Moved to l4: 1 memory.\n- The kestrel nests in Ely (l4, " in told
    await crib.call("remember", content="Tyres wear out", importance=9)
    assert "1 memory" in await crib.text("manage_memory", action="persist", older_than=0)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"action": "promote", "indices": [999]}, "Not in l1: 999."),
        ({"action": "persist", "indices": [999], "ids": ["none"]}, "Not in l2: 999, none."),
        ({"action": "aggregate", "session": "none"}, "Of session none there is nothing new"),
        ({"action": "forget", "layer": "l1", "indices": [999]}, "Not in l1: 999."),
        ({"action": "forget", "layer": "l3", "indices": [999]}, "Not in l3: 999."),
        ({"action": "forget", "session": "none"}, "Nothing comes from session none: "),
    ],
)
async def test_what_is_named_and_not_there_is_said(
    crib: Crib, asked: dict[str, Any], told: str
) -> None:
    assert told in await crib.text("manage_memory", **asked)


async def test_an_entry_that_is_a_memory_already_is_said_to_be(crib: Crib) -> None:
    seq = record(crib, "The heron came")
    assert "already" not in await crib.text("manage_memory", action="promote", indices=[seq])
    assert "already" in await crib.text("manage_memory", action="promote", indices=[seq])


async def test_a_memory_that_is_read_often_settles(crib: Crib) -> None:
    await crib.call("remember", content=TEA)
    (item,) = await listed(crib, "l2")
    for _ in range(5):
        await crib.call("browse_memory", action="select", layer="l2", indices=[item["number"]])
    counts = (await crib.call("manage_memory", action="stats"))["counts"]
    assert counts["to_persist"] == 1


async def test_the_clients_model_sums_up_a_session(open_crib: Open, mode: str) -> None:
    asked = []

    async def model(
        _context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        asked.append(str(params.messages))
        content = TextContent(text="The client says: birds.")
        return CreateMessageResult(role="assistant", content=content, model="tiny")

    async with open_crib(mode, memory__consolidate=False) as crib, asking(crib, mode, model):
        for session in ("monday", "tuesday", "friday"):
            record(crib, f"The heron came on {session}", session)
        built = await crib.call("manage_memory", action="aggregate")
        assert {one["summarizer"] for one in built["summaries"]} == {"client:tiny"}
        assert (len(built["summaries"]), len(asked), len(set(asked))) == (3, 3, 3)
        assert "22:13 write_file" in asked[0]
        again = await crib.text("manage_memory", action="aggregate")
        assert again == "Summed up: 0 sessions."
        assert len(asked) == 3
        (item, *_) = await listed(crib, "l3")
        assert "The client says: birds." in item["line"]


async def test_a_client_without_a_model_or_with_one_that_says_no_gets_extracts(
    open_crib: Open,
) -> None:
    async def say_no(
        _context: ClientRequestContext, _params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        return ErrorData(code=-1, message="The user said no.")

    async with open_crib("legacy", memory__consolidate=False) as crib:
        record(crib, "The heron came")
        told = await crib.text("manage_memory", action="aggregate")
        assert "Summed up: 1 session.\n- Session, 2023-11-14 22:13 to 22:13 UTC (extractive" in told
        async with asking(crib, "legacy", say_no):
            record(crib, "The kestrel came", "tuesday")
            told = await crib.text("manage_memory", action="aggregate", session="tuesday")
            assert "extractive summaries took its place" in told


async def test_this_session_is_summed_up_when_it_is_named(open_crib: Open) -> None:
    async with open_crib("legacy", memory__consolidate=False) as crib:
        await crib.call("write_file", file_path="a.md", content="The heron came.")
        assert (await crib.call("manage_memory", action="aggregate"))["summaries"] == []
        built = await crib.call("manage_memory", action="aggregate", session="this")
        assert len(built["summaries"]) == 1


async def test_a_long_backlog_is_summed_up_in_several_calls(crib: Crib) -> None:
    for number in range(MOST_WRITTEN + 1):
        record(crib, f"Bird {number}", f"session {number}")
    told = await crib.call("manage_memory", action="aggregate")
    assert len(told["summaries"]) == MOST_WRITTEN
    assert told["note"] == "1 more are due: call it again."
    assert len((await crib.call("manage_memory", action="aggregate"))["summaries"]) == 1


async def test_what_would_go_is_shown_first(crib: Crib) -> None:
    stored = await crib.call("remember", content=TEA)
    known = await crib.call("add_knowledge", content="Tyres wear out")
    assert "tea" in str(await listed(crib, "l1", session="all"))
    asked = {"action": "forget", "ids": [stored["id"], known["id"], "no-such"]}
    told = await crib.text("manage_memory", **asked)
    assert told.startswith(f"Would forget 0 entries of l1 and 1 memory.\n- {TEA} (l2, ")
    assert f"Not in memory: {known['id']}, no-such. Documents, knowledge" in told
    assert "Nothing was deleted: call again with dry_run=false." in told
    gone = await crib.call("manage_memory", **asked, dry_run=False)
    assert (gone["dry_run"], gone["memory_count"]) == (False, 1)
    assert await listed(crib, "l2") == []
    assert "tea" not in str(await listed(crib, "l1", session="all"))
    found = await crib.call("retrieve_knowledge_context", query="tyres")
    assert [hit["id"] for hit in found["hits"]] == [known["id"]]


async def test_entries_and_whole_sessions_go_with_what_was_made_from_them(crib: Crib) -> None:
    first = record(crib, "The heron came", importance=7.0)
    record(crib, "The kestrel came", "tuesday", importance=7.0)
    await crib.call("manage_memory", action="promote")
    await crib.call("manage_memory", action="aggregate")
    shown = await crib.call("manage_memory", action="forget", session="tuesday")
    assert (shown["entry_count"], shown["memory_count"]) == (1, 2)
    one = {"action": "forget", "layer": "l1", "indices": [first]}
    assert "1 entry of l1 and 2 memories" in await crib.text("manage_memory", **one)
    gone = await crib.text("manage_memory", **one, dry_run=False)
    assert gone.startswith("Forgot 1 entry of l1 and 2 memories.")
    assert "kestrel" in str(await listed(crib, "l2"))
    assert "heron" not in str([await listed(crib, layer) for layer in ("l2", "l3")])
    await crib.call("manage_memory", action="forget", session="tuesday", dry_run=False)
    assert [await listed(crib, layer) for layer in ("l2", "l3")] == [[], []]
    assert await listed(crib, "l1", session="tuesday") == []


async def test_what_is_old_in_a_layer_goes(crib: Crib) -> None:
    record(crib, "The heron came")
    await crib.call("remember", content=TEA)
    for layer, days, left in (("l4", 0, (1, 1)), ("l1", 365, (0, 1)), ("l2", 0, (0, 0))):
        await crib.call(
            "manage_memory", action="forget", layer=layer, older_than=days, dry_run=False
        )
        entries = await listed(crib, "l1", session="monday")
        assert (len(entries), len(await listed(crib, "l2"))) == left, layer


NOTHING: list[dict[str, Any]] = [
    {"action": "forget"},
    {"action": "forget", "layer": "l2"},
    {"action": "forget", "indices": [1]},
    {"action": "forget", "older_than": 1},
    {"action": "forget", "ids": [], "indices": []},
    {"action": "stats", "layer": "l1"},
    {"action": "promote", "session": "this"},
    {"action": "aggregate", "indices": [1]},
    {"action": "persist", "layer": "l2"},
    {"action": "tidy"},
]


async def test_nothing_is_not_taken_for_everything(crib: Crib) -> None:
    stored = await crib.call("remember", content=TEA)
    for wrong in NOTHING:
        error_type, _ = await crib.failure("manage_memory", **wrong, dry_run=False)
        assert error_type == "invalid_arguments", wrong
    assert [each["id"] for each in await listed(crib, "l2")] == [stored["id"]]


async def test_nothing_of_another_user_is_counted_moved_or_forgotten(crib: Crib) -> None:
    stored = await crib.call("remember", content=TEA)
    entry = record(crib, "The heron came", importance=7.0)
    (item,) = await listed(crib, "l2")
    for asked in (
        {"action": "promote"},
        {"action": "promote", "indices": [entry]},
        {"action": "aggregate", "session": "monday"},
        {"action": "persist", "older_than": 0},
        {"action": "persist", "ids": [stored["id"]], "indices": [item["number"]]},
        {"action": "forget", "ids": [stored["id"]], "dry_run": False},
        {"action": "forget", "layer": "l1", "indices": [entry], "dry_run": False},
        {"action": "forget", "session": "monday", "dry_run": False},
        {"action": "forget", "layer": "l2", "older_than": 0, "dry_run": False},
    ):
        done = await crib.call("manage_memory", **asked, user_id="eve")
        assert (done["memories"], done["summaries"], done["entry_count"]) == ([], [], 0)
    assert (await listed(crib, "l2"))[0]["id"] == stored["id"]
    assert len(await listed(crib, "l1", session="monday")) == 1


async def test_what_a_client_hands_back_is_not_trusted() -> None:
    for state in ("", "nonsense", "[]", '{"written": [1]}', "[" * 10_000):
        assert EarlierRounds[SessionSummary].read(state).written == []
