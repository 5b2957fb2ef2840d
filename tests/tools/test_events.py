import time
from typing import Any

import pytest

from tests.tools.conftest import Open


async def _found(crib: Any, query: str, **arguments: Any) -> list[str]:
    found = await crib.call("retrieve_event_context", query=query, **arguments)
    return [event["content"] for event in found["events"]]


async def _add_some(crib: Any) -> None:
    await crib.call("add_event", content="Planted beans.", event_time="2026-10-01T09:00")
    await crib.call("add_event", content="Saw the dentist.", event_time="2026-10-01T12:00")
    await crib.call("add_event", content="Sang carols.", event_time="2026-12-24T18:00")


async def test_an_event_is_kept_summed_up_and_found_with_its_scores_and_its_path(
    open_crib: Open, mode: str
) -> None:
    async with open_crib(mode) as crib:
        await _add_some(crib)
        built = await crib.call("build_event_summaries", until="2026-12-31")
        assert [one["time_bucket"] for one in built["written"]] == [
            *("2026-10-01", "2026-12-24", "2026-W40", "2026-W52", "2026-10", "2026-12")
        ]
        await crib.embed()
        found = await crib.call("retrieve_event_context", query="beans", top_k=2)
        assert found["mode"] == "hybrid"
        first = found["events"][0]
        assert (first["content"], first["hierarchy_level"]) == ("Planted beans.", 0)
        assert first["time_bucket"] == "2026-10-01T09:00:00Z"
        assert first["score"] == max(first["own"], first["blended"])
        assert first["path"][-1]["time_bucket"] == "2026-10-01"
        by_bucket = {one["time_bucket"]: one["id"] for one in built["written"]}
        assert first["path"][-1]["id"] == first["parent_id"] == by_bucket["2026-10-01"]
        assert first["children_ids"] == []
        summary = found["summaries"][0]
        assert summary["hierarchy_level"] > 0
        assert summary["summarizer"] == "extractive"
        assert summary["events"] == 2
        made_from = {one["time_bucket"]: one["children_ids"] for one in found["summaries"]}
        assert made_from["2026-10"] == [by_bucket["2026-W40"]]
        text = await crib.text("retrieve_event_context", query="beans")
        assert "through " in text
        assert "(2026-10" in text


async def test_summaries_take_no_events_place_and_can_be_left_out(crib: Any) -> None:
    await _add_some(crib)
    await crib.call("build_event_summaries", until="2026-12-31")
    await crib.embed()
    plain = await crib.call(
        "retrieve_event_context", query="beans", top_k=1, include_summaries=False
    )
    beside = await crib.call("retrieve_event_context", query="beans", top_k=1)
    assert plain["summaries"] == []
    assert [event["id"] for event in beside["events"]] == [plain["events"][0]["id"]]
    assert beside["summaries"]


async def test_events_only_append_and_what_comes_late_is_summed_up_anew(crib: Any) -> None:
    same = [
        await crib.call("add_event", content="A walk.", event_time=1_000_000, raw_id="walk")
        for _ in range(2)
    ]
    assert same[0]["id"] != same[1]["id"]
    first = await crib.call("build_event_summaries", level=1)
    (written,) = first["written"]
    assert (written["time_bucket"], written["events"]) == ("1970-01-12", 2)
    assert (await crib.call("build_event_summaries", level=1))["unchanged"] == 1
    await crib.call("add_event", content="Rain.", event_time="1970-01-12T23:00")
    (anew,) = (await crib.call("build_event_summaries", level=1))["written"]
    assert (anew["id"], anew["events"]) == (written["id"], 3)


@pytest.mark.parametrize(
    ("given", "stands"),
    [
        ({"event_time": 0}, "1970-01-01T00:00:00+00:00"),
        ({"event_time": "-86400"}, "1969-12-31T00:00:00+00:00"),
        ({"event_time": "2026-11-21T09:00"}, "2026-11-21T09:00:00+00:00"),
        (
            {"event_time": "2026-11-21T09:00", "timezone": "Europe/Paris"},
            "2026-11-21T08:00:00+00:00",
        ),
        (
            {"event_time": "2026-11-21T09:00+05:30", "timezone": "Europe/Paris"},
            "2026-11-21T03:30:00+00:00",
        ),
        ({"event_time": "9999-12-31T23:59:59.999999"}, "9999-12-31T23:59:59+00:00"),
        ({"event_time": "0001-01-01"}, "0001-01-01T12:00:00+00:00"),
    ],
)
async def test_when_it_happened_is_unix_seconds_or_iso_8601_in_a_zone(
    crib: Any, given: dict[str, Any], stands: str
) -> None:
    added = await crib.call("add_event", content="It rained.", **given)
    assert added["event_time"] == stands


async def test_a_time_without_a_zone_is_that_of_the_machine(
    crib: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        added = await crib.call("add_event", content="It rained.", event_time="2026-11-21T21:00")
        assert added["event_time"] == "2026-11-22T02:00:00+00:00"
        day = await crib.call("add_event", content="It snowed.", event_time="2026-11-22")
        assert day["event_time"] == "2026-11-22T17:00:00+00:00"
        assert day["time_bucket"].startswith("2026-11-22")
        await crib.embed()
        for date, found in (("2026-11-21", "rained"), ("2026-11-22", "snowed")):
            window = {"start": date, "end": date}
            answer = await crib.call("retrieve_knowledge_context", time_range=window)
            assert [found in hit["content"] for hit in answer["hits"]] == [True]
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_the_calendars_last_day_is_a_bound_too(crib: Any) -> None:
    await crib.call("add_event", content="The end.", event_time="9999-12-31")
    built = await crib.call("build_event_summaries", until="9999-12-31")
    written = [one["time_bucket"] for one in built["written"]]
    assert written == ["9999-12-31", "9999-12"]  # its week ends in no year that there is


async def test_a_range_is_in_the_callers_zone(crib: Any) -> None:
    await crib.call("add_event", content="Late heron.", event_time="2026-10-01T22:30")
    await crib.call("add_event", content="Early heron.", event_time="2026-10-02T21:30")
    await crib.call("build_event_summaries", until="2026-12-31")
    await crib.embed()
    day = {"start": "2026-10-02", "end": "2026-10-02"}
    assert await _found(crib, "heron", time_range=day) == ["Early heron."]
    in_paris = day | {"timezone": "Europe/Paris"}  # where it was past midnight
    assert set(await _found(crib, "heron", time_range=in_paris)) == {"Late heron.", "Early heron."}
    none = {"start": "2026-10-03", "end": "2026-10-31"}
    assert await _found(crib, "heron", time_range=none) == []


async def test_what_happened_in_a_month_is_answered_by_its_summaries_and_its_events(
    crib: Any,
) -> None:
    await _add_some(crib)
    await crib.call("build_event_summaries", until="2026-12-31")
    await crib.embed()
    october = {"start": "2026-10-01", "end": "2026-10-31"}
    found = await crib.call(
        "retrieve_event_context", query="what did I do in October?", time_range=october
    )
    assert {event["content"] for event in found["events"]} == {"Planted beans.", "Saw the dentist."}
    assert {one["time_bucket"] for one in found["summaries"]} == {
        "2026-10-01",
        "2026-W40",
        "2026-10",
    }


async def test_without_a_query_the_latest_events_are_listed(crib: Any) -> None:
    for day in (3, 1, 2):
        await crib.call("add_event", content=f"Day {day}.", event_time=f"2026-10-0{day}")
    listed = await crib.call("retrieve_event_context", query=" ", top_k=2)
    assert listed["mode"] == "listing"
    assert [event["content"] for event in listed["events"]] == ["Day 3.", "Day 2."]
    in_range = {"end": "2026-10-02"}
    text = await crib.text("retrieve_event_context", query="", time_range=in_range)
    assert text.startswith("2 events (listing)")
    assert "score" not in text


async def test_nothing_is_said_to_be_near_when_nothing_is(crib: Any) -> None:
    assert "No event" in await crib.text("retrieve_event_context", query="herons")
    await crib.call("add_event", content="Planted beans.")
    await crib.embed()
    assert await _found(crib, "tax law in Peru") == []


async def test_nobody_sees_or_sums_up_what_is_anothers(crib: Any) -> None:
    await _add_some(crib)
    await crib.call("build_event_summaries", until="2026-12-31")
    await crib.embed()
    found = await crib.call("retrieve_event_context", query="beans", user_id="bob")
    assert (found["events"], found["summaries"]) == ([], [])
    built = await crib.call("build_event_summaries", user_id="bob")
    assert (built["written"], built["unchanged"]) == ([], 0)


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("add_event", {"content": " "}, "content"),
        ("add_event", {"content": "\0\u200b"}, "content"),
        ("add_event", {"content": "\ud83d half"}, "surrogate"),
        ("add_event", {"content": "x", "metadata": {"a": "\ud83d"}}, "surrogate"),
        ("add_event", {"content": "x" * 20_001}, "content"),
        ("add_event", {"content": "x", "event_time": "never"}, "event_time"),
        ("add_event", {"content": "x", "event_time": 1_795_219_200_000}, "event_time"),
        ("add_event", {"content": "x", "timezone": "Mars/Olympus"}, "timezone"),
        ("add_event", {"content": "x", "importance": 11}, "importance"),
        ("retrieve_event_context", {}, "query"),
        ("retrieve_event_context", {"query": "x", "top_k": 0}, "top_k"),
        ("retrieve_event_context", {"query": "x", "time_range": {"start": "x"}}, "start"),
        ("retrieve_event_context", {"query": "x", "time_range": {"start": "1" * 400}}, "start"),
        ("build_event_summaries", {"level": 4}, "level"),
        ("build_event_summaries", {"until": "soon"}, "until"),
        ("build_event_summaries", {"summarizer": "poet"}, "summarizer"),
    ],
)
async def test_what_is_wrong_is_refused_by_its_name(
    crib: Any, name: str, arguments: dict[str, Any], named: str
) -> None:
    error_type, text = await crib.failure(name, **arguments)
    assert error_type == "invalid_arguments"
    assert named in text
