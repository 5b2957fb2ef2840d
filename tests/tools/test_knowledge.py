from typing import Any

import pytest

from tests.tools.conftest import Open


async def _contents(crib: Any, **arguments: Any) -> list[str]:
    found = await crib.call("retrieve_knowledge_context", **arguments)
    return [hit["content"] for hit in found["hits"]]


async def test_knowledge_is_kept_with_all_that_is_said_of_it(open_crib: Open, mode: str) -> None:
    async with open_crib(mode) as crib:
        added = await crib.call(
            "add_knowledge",
            content="Una prefers tea.",
            title=" Una's \n drink ",
            summary="tea",
            keywords=["drinks"],
            entities=["Una"],
            confidence=9,
            importance=0.5,
            event_time="2026-11-21",
            metadata={"from": ["a call"]},
            raw_type="call",
            raw_id="42",
        )
        assert (added["outcome"], added["merge_count"]) == ("added", 0)
        assert "similarity" not in added
        (hit,) = (await crib.call("retrieve_knowledge_context", query="tea"))["hits"]
        assert (hit["id"], hit["context_type"]) == (added["id"], "knowledge")
        assert (hit["title"], hit["raw_type"], hit["raw_id"]) == ("Una's drink", "call", "42")
        assert hit["event_time"] == "2026-11-21T12:00:00+00:00"
        shelf = crib.app.library.shelf(crib.app.identity)
        stored, _ = shelf.get(added["id"])
        assert (stored.confidence, stored.importance, stored.summary) == (9, 0.5, "tea")
        assert dict(stored.metadata) == {"from": ["a call"]}


async def test_what_says_nearly_the_same_merges_and_the_answer_says_into_what(crib: Any) -> None:
    first = await crib.call("add_knowledge", content="Una prefers green tea to coffee.")
    again = await crib.call("add_knowledge", content="Una prefers green tea over coffee.")
    assert (again["outcome"], again["id"]) == ("merged", first["id"])
    assert again["merge_count"] == 1
    assert 0.85 <= again["similarity"] <= 1
    other = await crib.call("add_knowledge", content="The bicycle stands in the cellar.")
    assert other["outcome"] == "added"
    assert first["id"] in await crib.text(
        "add_knowledge", content="Una prefers green tea to coffee."
    )
    assert len(await _contents(crib)) == 2


async def test_a_new_value_takes_the_place_of_the_old_one_and_the_answer_says_of_which(
    crib: Any,
) -> None:
    old, new = "The API limit of Acme is 100 a minute.", "Acme's API limit is now 200 a minute."
    for tool in ("add_knowledge", "remember"):
        first = await crib.call(tool, content=old)
        second = await crib.call(tool, content=new)
        assert (second["outcome"], second["id"]) == ("superseded", first["id"])
        assert second["former"] == old
        told = await crib.text(tool, content=old)
        assert told.endswith(f"kept as past: {new}")
        await crib.call(tool, content=new)
    found = await _contents(crib, query="What is the API limit of Acme?", top_k=1)
    assert found == [new]
    before = await _contents(crib, query="What was the API limit of Acme before?")
    assert any(each.startswith("Until 20") and each.endswith(old) for each in before)


async def test_knowledge_and_events_themselves_are_found_and_nothing_else(
    open_crib: Open, mode: str
) -> None:
    async with open_crib(mode) as crib:
        await crib.call("add_knowledge", content="Herons eat fish.")
        await crib.call("add_event", content="A heron came.", event_time="2026-10-01")
        await crib.call("add_document", text="All about herons.", title="Herons")
        await crib.call("build_event_summaries", until="2026-12-01")
        await crib.embed()
        for arguments in ({"query": "heron", "top_k": 100}, {"top_k": 100}):
            found = await crib.call("retrieve_knowledge_context", **arguments)
            assert {(hit["context_type"], hit["hierarchy_level"]) for hit in found["hits"]} == {
                ("knowledge", 0),
                ("event", 0),
            }
            assert len(found["hits"]) == 2
        scores = [
            hit["score"]
            for hit in (await crib.call("retrieve_knowledge_context", query="heron"))["hits"]
        ]
        assert scores == sorted(scores, reverse=True)


async def test_a_context_of_several_chunks_is_one_hit_by_its_best(crib: Any) -> None:
    filler = "The weather was as it is. " * 150
    await crib.call("add_knowledge", content=f"{filler}\n\nThe heron came.\n\n{filler}")
    await crib.call("add_knowledge", content="A heron is a bird.")
    await crib.embed()
    found = await crib.call("retrieve_knowledge_context", query="heron")
    ids = [hit["id"] for hit in found["hits"]]
    assert len(ids) == len(set(ids)) == 2
    assert all("heron" in hit["content"] for hit in found["hits"])
    listed = await crib.call("retrieve_knowledge_context")
    assert [hit["position"] for hit in listed["hits"]] == [0, 0]


async def test_its_id_stands_in_the_text_wherever_it_comes_from(crib: Any) -> None:
    given = {"content": "Ann drinks tea.", "raw_type": "chat", "raw_id": "7"}
    tea = await crib.call("add_knowledge", **given, event_time="2026-10-01")
    text = await crib.text("retrieve_knowledge_context", query="tea")
    assert f"[1] (knowledge {tea['id']}, 2026-10-01T12:00:00+00:00, chat: 7)" in text


async def test_without_a_query_the_newest_come_first(crib: Any) -> None:
    for text in ("Herons eat fish.", "Tyres are patched.", "Una drinks tea."):
        await crib.call("add_knowledge", content=text)
    assert await _contents(crib, top_k=2) == ["Una drinks tea.", "Tyres are patched."]
    assert await _contents(crib, query="  ", top_k=1) == ["Una drinks tea."]


async def test_entities_and_times_narrow_what_is_found(crib: Any) -> None:
    await crib.call("add_knowledge", content="She likes tea.", entities=["Zoë"], event_time=0)
    await crib.call("add_knowledge", content="He rides a bicycle.", entities=["Max"])
    await crib.call("add_event", content="Tea with Zoë.", entities=["Zoë"], event_time=100)
    assert sorted(await _contents(crib, entities=["zoe"])) == ["She likes tea.", "Tea with Zoë."]
    assert await _contents(crib, entities=["nobody"]) == []
    assert await _contents(crib, time_range={"start": 0, "end": 50}) == ["She likes tea."]
    assert await _contents(crib, query="tea", time_range={"start": 50, "end": 150}) == [
        "Tea with Zoë."
    ]


async def test_nobody_finds_or_merges_into_what_is_anothers(crib: Any) -> None:
    ours = await crib.call("add_knowledge", content="Una prefers tea.")
    theirs = await crib.call("add_knowledge", content="Una prefers tea.", user_id="bob")
    assert (theirs["outcome"], theirs["id"] != ours["id"]) == ("added", True)
    (hit,) = (await crib.call("retrieve_knowledge_context", user_id="bob"))["hits"]
    assert hit["id"] == theirs["id"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"content": ""}, "content"),
        ({"content": " \n"}, "content"),
        ({"content": "x" * 20_001}, "content"),
        ({"content": "x", "confidence": 10.5}, "confidence"),
        ({"content": "x", "importance": -1}, "importance"),
        ({"content": "x", "event_time": "yesterday"}, "event_time"),
        ({"content": "x", "event_time": 1e15}, "event_time"),
        ({"content": "x", "metadata": {"a": "x" * 70_000}}, "metadata"),
        ({"content": "x", "keywords": ["x" * 300]}, "keywords"),
        ({"content": "x", "raw_id": ""}, "raw_id"),
    ],
)
async def test_what_cannot_be_kept_is_refused_by_its_name(
    crib: Any, arguments: dict[str, Any], named: str
) -> None:
    error_type, text = await crib.failure("add_knowledge", **arguments)
    assert error_type == "invalid_arguments"
    assert named in text
    assert await _contents(crib) == []
