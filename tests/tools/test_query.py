from typing import Any

from anyio import to_thread

from storage.models import ContextType, NewContext
from tests.tools.conftest import Open


async def test_a_question_is_answered_by_meaning_with_the_scores(
    open_crib: Open, mode: str
) -> None:
    async with open_crib(mode) as crib:
        await crib.call("add_document", text="Lever the tube out and patch it.", title="Tyres")
        await crib.call("add_document", text="The judge adjourned the hearing.", title="Court")
        await crib.embed()
        answer = await crib.call("query", query="How do I repair a flat wheel?")
        assert (answer["mode"], answer["scope"]) == ("hybrid", "all")
        hit = answer["hits"][0]
        assert (hit["title"], hit["origin"]) == ("Tyres", "documents")
        assert "layer" not in hit
        assert hit["dense"] > 0.2
        assert 0 <= hit["score"] <= 1
        text = await crib.text("query", query="patch the tube")
        assert "[1] Tyres (text: Tyres)" in text
        assert "matched: patch, tube" in text


async def test_a_question_about_nothing_stored_says_so(crib: Any) -> None:
    assert "Nothing stored fits." in await crib.text("query", query="heron")
    await crib.call("add_document", text="The judge adjourned the hearing.", title="Court")
    await crib.embed()
    answer = await crib.call("query", query="best pizza in Naples")
    assert answer["hits"] == []


async def test_the_answer_says_where_it_was_looked_for_and_why(crib: Any) -> None:
    for scope, looked in (
        ("auto", "all"),
        ("memory", "memory"),
        ("knowledge", "knowledge"),
        ("all", "all"),
    ):
        answer = await crib.call("query", query="heron", scope=scope)
        assert answer["scope"] == looked
        assert answer["why"]
    text = await crib.text("query", query="heron", scope="memory")
    assert "looked in memory: as asked" in text
    assert "Ask in other words, or everywhere" in text
    text = await crib.text("query", query="heron", scope="all")
    assert "Ask in other words, or without filters." in text


async def test_what_was_called_in_this_session_is_found_in_it_alone(open_crib: Open) -> None:
    async with open_crib() as crib:
        await crib.call("write_file", file_path="herons.txt", content="Grey and patient.")
        answer = await crib.call("query", query="Which file did you just write about herons?")
        assert answer["scope"] == "memory"
        hit = answer["hits"][0]
        assert (hit["origin"], hit["layer"], hit["context_type"]) == ("memory", "l1", "call")
        assert hit["id"].startswith("entry-")
        assert "herons" in hit["title"]
        assert "heron" in str(hit["matched"])
        text = await crib.text("query", query="herons", layer="l1")
        assert "(memory l1, call entry-" in text
    async with open_crib() as crib:  # another session
        assert (await crib.call("query", query="herons", layer="l1"))["hits"] == []


async def test_memories_say_their_layer_and_knowledge_excludes_them(crib: Any) -> None:
    shelf = crib.app.library.shelf(crib.app.identity)
    kept = NewContext(
        context_type=ContextType.KNOWLEDGE, title="", text="Ann has a tame heron.", memory_layer=2
    )
    await to_thread.run_sync(shelf.add, kept)
    await crib.call("add_document", text="The heron is a bird.", title="Birds")
    for given, found in (
        ({}, {"memory", "documents"}),
        ({"scope": "memory", "layer": "l2"}, {"memory"}),
        ({"layer": "l3"}, set()),
        ({"scope": "knowledge"}, {"documents"}),
    ):
        hits = (await crib.call("query", query="heron bird", **given))["hits"]
        assert {hit["origin"] for hit in hits} == found
        assert {hit.get("layer") for hit in hits if hit["origin"] == "memory"} <= {"l2"}
    assert "(memory l2, knowledge " in await crib.text("query", query="tame", layer="l2")


async def test_the_same_question_is_answered_again_until_something_changes(crib: Any) -> None:
    await crib.call("add_document", text="Lever the tube out and patch it.", title="Tyres")
    await crib.embed()
    first = await crib.call("query", query="patch the tube")
    again = await crib.call("query", query="patch the tube")
    assert again == {**first, "cached": "patch the tube"}
    text = await crib.text("query", query="Patch a tube!")
    assert "the same answer as to 'patch the tube' before: nothing has changed" in text
    await crib.call("add_document", text="A tube of glue.", title="Glue")
    await crib.embed()
    assert "cached" not in await crib.call("query", query="patch the tube")


async def test_a_follow_up_is_asked_with_the_question_before_it(crib: Any) -> None:
    await crib.call("add_document", text="The kettle weighs 2 kg.", title="Kettle")
    await crib.call("add_document", text="The boat weighs a ton.", title="Boat")
    await crib.call("query", query="Where is the kettle?")
    answer = await crib.call("query", query="and its weight?")
    assert answer["asked"] == "Where is the kettle and its weight?"
    assert answer["hits"][0]["title"] == "Kettle"


async def test_filters_and_sources_of_the_settings_narrow(open_crib: Open) -> None:
    sources = {"tales": {"description": "Stories", "labels": {"kind": "tale"}}, "rest": {}}
    async with open_crib(sources=sources) as crib:
        for title, kind in (("Fable", "tale"), ("Guide", "manual")):
            await crib.call(
                "add_document", text=f"{title} of a heron", title=title, metadata={"kind": kind}
            )
        answer = await crib.call("query", query="heron", source="tales")
        assert [(hit["title"], hit["origin"]) for hit in answer["hits"]] == [("Fable", "tales")]
        assert (answer["scope"], answer["why"]) == ("knowledge", "tales is a source")
        assert "(tales, text: Fable)" in await crib.text("query", query="heron", source="tales")
        everything = await crib.call("query", query="heron", scope="knowledge")
        assert {hit["origin"] for hit in everything["hits"]} == {"tales", "rest"}
    async with open_crib() as crib:
        narrowed = await crib.call(
            "query", query="heron", filters={"metadata": {"kind": "manual"}, "kinds": "document"}
        )
        assert [hit["title"] for hit in narrowed["hits"]] == ["Guide"]
        nobody = await crib.call("query", query="heron", filters={"entities": ["Nobody"]})
        assert (nobody["hits"], nobody["unknown_entities"]) == ([], ["Nobody"])


async def test_what_is_shown_without_asking_names_the_sources_of_the_settings(
    open_crib: Open, mode: str
) -> None:
    async with open_crib(mode, sources={"tales": {"labels": {"kind": "tale"}}}) as crib:
        await crib.call("add_document", text="A heron.", title="Fable", metadata={"kind": "tale"})
        resource = await crib.client.read_resource("context://relevant?topic=heron")
        prompt = await crib.client.get_prompt("recall", {"topic": "heron"})
        for shown in (resource.contents[0], prompt.messages[0].content):
            assert "[1] Fable (tales, text: Fable)" in str(shown)


async def test_too_many_keys_of_metadata_are_refused_as_such(crib: Any) -> None:
    for count in (100, 101):
        keys = {f"key{number}": number for number in range(count)}
        text = await crib.text("query", query="heron", filters={"metadata": keys})
        assert ("`filters.metadata`" in text) is (count > 100)


async def test_top_k_limits_the_answer(crib: Any) -> None:
    for number in range(7):
        await crib.call("add_document", text=f"Heron number {number}", title=f"t{number}")
    assert len((await crib.call("query", query="heron"))["hits"]) == 5
    assert len((await crib.call("query", query="heron", top_k=7))["hits"]) == 7


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "query"),
    ({"query": ""}, "query"),
    ({"query": " \n"}, "is empty"),
    ({"query": "x" * 10_001}, "10000"),
    ({"query": "x", "top_k": 0}, "top_k"),
    ({"query": "x", "top_k": 101}, "top_k"),
    ({"query": "x", "scope": "mine"}, "scope"),
    ({"query": "x", "layer": "l5"}, "layer"),
    ({"query": "x", "scope": "knowledge", "layer": "l2"}, "Leave layer or scope out."),
    ({"query": "x", "scope": "memory", "source": "docs"}, "Leave source or scope out."),
    ({"query": "x", "layer": "l2", "source": "docs"}, "Leave source or layer out."),
    ({"query": "x", "source": "docs"}, "the settings name none"),
    ({"query": "x", "filters": {"year": 2026}}, "metadata"),
    ({"query": "x", "topk": 3}, "did you mean `top_k`"),
]


async def test_a_wrong_question_is_told_what_is_wrong(crib: Any) -> None:
    for arguments, said in WRONG:
        kind, text = await crib.failure("query", **arguments)
        assert kind == "invalid_arguments"
        assert said in text


async def test_an_answer_never_crosses_users(open_crib: Open) -> None:
    async with open_crib(identity__user_id="ann") as crib:
        await crib.call("add_document", text="The heron of Bob", title="t", user_id="bob")
        assert (await crib.call("query", query="heron of Bob"))["hits"] == []
        assert (await crib.call("query", query="heron of Bob"))["coverage"]["total"] == 0
        found = await crib.call("query", query="heron", user_id="bob")
        assert [hit["content"] for hit in found["hits"]] == ["The heron of Bob"]
