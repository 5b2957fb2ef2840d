import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.tools.conftest import Open


async def _fill(crib: Any, **identity: str) -> None:
    """A few people and what they do."""
    for entity in (
        {
            "entity_name": "Zoë Müller",
            "entity_type": "person",
            "summary": "Leads the wetlands survey",
            "aliases": ["Zo"],
        },
        {"entity_name": "John Smith", "entity_type": "person", "summary": "Bakes bread"},
        {"entity_name": "Heron", "entity_type": "project", "summary": "A survey of wetlands"},
    ):
        await crib.call("save_entity", **entity, **identity)
    for source, relation in (("Zo", "leads"), ("John Smith", "works on")):
        await crib.call(
            "relate_entities", source=source, relation=relation, target="Heron", **identity
        )


def _found(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["name"], each["how"]) for each in answer["found"]["entities"]]


async def test_a_profile_is_saved_and_read(open_crib: Open, mode: str) -> None:
    async with open_crib(mode, identity__user_id="ann") as crib:
        kind, text = await crib.failure("retrieve_profile_context", operation="get_profile")
        assert kind == "not_found"
        assert "save_profile" in text
        saved = await crib.call("save_profile", summary="An engineer", facts={"city": "Rome"})
        assert saved["outcome"] == "created"
        saved = await crib.call("save_profile", facts={"city": None, "pets": ["Rex"]})
        assert saved["outcome"] == "updated"
        answer = await crib.call("retrieve_profile_context", operation="get_profile")
        assert answer["profile"]["user_id"] == "ann"
        assert answer["profile"]["summary"] == "An engineer"
        assert answer["profile"]["facts"] == {"pets": ["Rex"]}
        text = await crib.text("retrieve_profile_context", operation="get_profile")
        assert text == "Profile of ann\nAn engineer\n- pets: ['Rex']"


async def test_former_values_are_told_with_their_dates_where_the_past_is_asked_for(
    open_crib: Open,
) -> None:
    profile = {"operation": "get_profile"}
    entity = {"operation": "find_entity", "entity_name": "acme"}
    async with open_crib(identity__user_id="ann") as crib:
        for city, limit in (("Rome", 100), ("Oslo", 200)):
            await crib.call("save_profile", facts={"city": city})
            await crib.call("save_entity", entity_name="Acme", metadata={"limit": limit})
        for asked in (profile, entity):
            assert "former" not in str(await crib.call("retrieve_profile_context", **asked))
        today = datetime.now(UTC).date()
        days = {str(today), str(today - timedelta(days=1))}  # midnight may just have passed
        answer = await crib.call("retrieve_profile_context", **profile, past=True)
        (before,) = answer["profile"]["former"]
        assert before.pop("until") in days
        assert before == {"name": "city", "value": "Rome"}
        text = await crib.text("retrieve_profile_context", **profile, past=True)
        assert re.search(r"- city: Oslo\nFormerly:\n- city: Rome \(until 20\S+\)$", text)
        answer = await crib.call("retrieve_profile_context", **entity, past=True)
        (before,) = answer["found"]["entities"][0]["former"]
        assert before.pop("until") in days
        assert before == {"name": "limit", "value": 100}
        text = await crib.text("retrieve_profile_context", **entity, past=True)
        assert re.search(r"\n  formerly limit: 100 \(until 20\S+\)$", text)


async def test_saving_an_entity_says_whether_it_was_there(crib: Any) -> None:
    saved = await crib.call("save_entity", entity_name="Zoë Müller", entity_type="person")
    assert saved["outcome"] == "created"
    saved = await crib.call("save_entity", entity_name="zoe muller", aliases=["Zo"], importance=9)
    assert saved["outcome"] == "updated"
    assert saved["entity"]["name"] == "Zoë Müller"
    assert saved["entity"]["entity_type"] == "person"
    assert saved["entity"]["aliases"] == ["Zo"]
    text = await crib.text("save_entity", entity_name="zo", summary="Plays the harp")
    assert text == "updated: Zoë Müller (person, also Zo): Plays the harp"


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        ("Zoë Müller", "exact"),
        ("Zo", "alias"),
        ("MULLER, zoe", "folded"),
        ("Dr. Müller", "partial"),
        ("Z. Müller", "partial"),
        ("Zoe Mueller", "fuzzy"),
    ],
)
async def test_an_entity_is_found_in_any_spelling(crib: Any, asked: str, how: str) -> None:
    await _fill(crib)
    answer = await crib.call("retrieve_profile_context", operation="find_entity", entity_name=asked)
    assert _found(answer) == [("Zoë Müller", how)]
    assert 0 < answer["found"]["entities"][0]["score"] <= 1
    exact = {"operation": "find_exact_entity", "entity_name": asked}
    if how in {"exact", "alias", "folded"}:
        assert _found(await crib.call("profile_entity_tool", **exact)) == [("Zoë Müller", how)]
    else:
        kind, text = await crib.failure("profile_entity_tool", **exact)
        assert kind == "not_found"
        assert "Did you mean: Zoë Müller" in text


async def test_an_unknown_entity_comes_with_the_nearest_names(crib: Any) -> None:
    await _fill(crib)
    kind, text = await crib.failure(
        "retrieve_profile_context", operation="find_entity", entity_name="Jon Smyth"
    )
    assert kind == "not_found"
    assert "Did you mean: John Smith" in text
    kind, text = await crib.failure(
        "retrieve_profile_context", operation="find_entity", entity_name="Quentin"
    )
    assert kind == "not_found"
    assert "Did you mean" not in text


async def test_a_search_ranks_and_may_find_nothing(crib: Any) -> None:
    await _fill(crib)
    search = {"operation": "search_entities", "query": "wetlands survey"}
    answer = await crib.call("retrieve_profile_context", **search)
    assert _found(answer) == [("Heron", "words"), ("Zoë Müller", "words")]
    answer = await crib.call("retrieve_profile_context", **search, entity_type="person")
    assert _found(answer) == [("Zoë Müller", "words")]
    answer = await crib.call("retrieve_profile_context", **search, top_k=1)
    assert len(answer["found"]["entities"]) == 1
    for nothing in ("volcano", "%", "_", "*"):
        arguments = {"operation": "search_entities", "query": nothing}
        assert await crib.text("retrieve_profile_context", **arguments) == "No entity fits."


async def test_similar_entities_are_ranked(crib: Any) -> None:
    await _fill(crib)
    await crib.call("save_entity", entity_name="Jon Smyth", entity_type="person")
    for parameter in ("entity_name", "query"):
        answer = await crib.call(
            "profile_entity_tool", operation="find_similar_entity", **{parameter: "jon smyth"}
        )
        assert _found(answer) == [("Jon Smyth", "folded"), ("John Smith", "fuzzy")]
    answer = await crib.call(
        "profile_entity_tool", operation="find_similar_entity", entity_name="Quentin"
    )
    assert answer["found"] == {"entities": [], "total": 0}


@pytest.mark.parametrize("name", ["retrieve_profile_context", "profile_entity_tool"])
async def test_entities_are_listed_by_name_in_pages(crib: Any, name: str) -> None:
    listing = {"operation": "list_entities"}
    assert await crib.text(name, **listing) == "No entity fits."
    await _fill(crib)
    page = await crib.call(name, **listing, top_k=2)
    assert [each["name"] for each in page["found"]["entities"]] == ["Heron", "John Smith"]
    assert page["found"]["total"] == 3
    assert (await crib.text(name, **listing, top_k=2)).startswith("2 of 3 entities\n- Heron")
    page = await crib.call(name, **listing, top_k=2, offset=2)
    assert _found(page) == [("Zoë Müller", "listed")]
    page = await crib.call(name, **listing, entity_type="project")
    assert _found(page) == [("Heron", "listed")]
    assert await crib.text(name, **listing, offset=9) == "No more; there are 3."


async def test_relationships_are_told_with_direction_and_both_ends(crib: Any) -> None:
    await _fill(crib)
    check = {"operation": "check_entity_relationships"}
    answer = await crib.call("profile_entity_tool", **check, entity1="heron")
    told = [
        (each["source"], each["relation"], each["target"], each["direction"])
        for each in answer["relationships"]
    ]
    assert told == [
        ("Zoë Müller", "leads", "Heron", "incoming"),
        ("John Smith", "works on", "Heron", "incoming"),
    ]
    answer = await crib.call("profile_entity_tool", **check, entity1="Zo", entity2="Heron")
    assert [each["direction"] for each in answer["relationships"]] == ["outgoing"]
    answer = await crib.call("profile_entity_tool", **check, entity1="Zo", entity_type="person")
    assert answer["relationships"] == []


async def test_an_entity_found_by_name_comes_with_the_relationships_of_its_card(crib: Any) -> None:
    await _fill(crib)
    find = {"operation": "find_entity", "entity_name": "heron"}
    text = await crib.text("retrieve_profile_context", **find)
    assert "\n  Zoë Müller -[leads]-> Heron\n  John Smith -[works on]-> Heron" in text
    moved = {"source": "Zo", "relation": "works on", "target": "Heron", "replaces": "source"}
    await crib.call("relate_entities", **moved)
    answer = await crib.call("retrieve_profile_context", **find)
    (heron,) = answer["found"]["entities"]
    assert {each["source"] for each in heron["relationships"]} == {"Zoë Müller"}
    text = await crib.text("retrieve_profile_context", **find, past=True)
    assert "John Smith -[works on]-> Heron (until " in text


@pytest.mark.parametrize(
    "names",
    [
        ("from_entity", "relation_type", "to_entity"),
        ("from", "predicate", "to"),
        ("subject", "relationship", "object"),
    ],
)
async def test_ends_of_a_relationship_are_understood_by_other_names(
    crib: Any, names: tuple[str, ...]
) -> None:
    await _fill(crib)
    given = dict(zip(names, ("Zo", "knows", "John Smith"), strict=True))
    saved = await crib.call("relate_entities", **given)
    told = saved["relationship"]
    assert (told["source"], told["relation"], told["target"]) == (
        "Zoë Müller",
        "knows",
        "John Smith",
    )
    await crib.call("unrelate_entities", **given)


async def test_two_that_know_a_third_are_related_through_it(crib: Any) -> None:
    await _fill(crib)
    check = {"operation": "check_entity_relationships", "entity1": "Zo", "entity2": "John Smith"}
    answer = await crib.call("profile_entity_tool", **check)
    assert answer["relationships"] == []
    assert [path["through"] for path in answer["paths"]] == ["Heron"]
    assert await crib.text("profile_entity_tool", **check) == (
        "Zoë Müller and John Smith: no relationships\n"
        "- through Heron: Zoë Müller -[leads]-> Heron; John Smith -[works on]-> Heron"
    )


async def test_an_unknown_end_is_refused_or_made(crib: Any) -> None:
    await _fill(crib)
    new = {"source": "Jon Smith", "relation": "knows", "target": "Mary"}
    kind, text = await crib.failure("relate_entities", **new)
    assert kind == "not_found"
    assert "Did you mean: John Smith" in text
    saved = await crib.call("relate_entities", **new, create_missing=True, target_type="person")
    assert saved["outcome"] == "created"
    assert saved["created_entities"] == ["Jon Smith", "Mary"]
    assert saved["relationship"]["target_type"] == "person"
    saved = await crib.call("relate_entities", **new, description="since school")
    assert (saved["outcome"], saved["created_entities"]) == ("updated", [])


async def test_an_entity_goes_with_its_relationships(crib: Any) -> None:
    await _fill(crib)
    kind, text = await crib.failure("delete_entity", entity_name="Herons")
    assert kind == "not_found"
    assert "Did you mean: Heron" in text
    gone = await crib.call("delete_entity", entity_name="heron")
    assert gone == {"name": "Heron", "entity_type": "project", "relationships_deleted": 2}
    assert (await crib.failure("delete_entity", entity_name="heron"))[0] == "not_found"
    answer = await crib.call(
        "profile_entity_tool", operation="check_entity_relationships", entity1="Zo"
    )
    assert answer["relationships"] == []


async def test_a_relationship_goes_and_its_ends_stay(crib: Any) -> None:
    await _fill(crib)
    wrong = {"source": "Zo", "relation": "eats", "target": "Heron"}
    kind, text = await crib.failure("unrelate_entities", **wrong)
    assert kind == "not_found"
    assert "Did you mean: Zoë Müller leads Heron" in text
    await crib.call("unrelate_entities", **{**wrong, "relation": "Leads"})
    assert (await crib.failure("unrelate_entities", **{**wrong, "relation": "leads"}))[
        0
    ] == "not_found"
    listing = await crib.call("profile_entity_tool", operation="list_entities")
    assert listing["found"]["total"] == 3


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("retrieve_profile_context", {}, "operation"),
    ("retrieve_profile_context", {"operation": "find"}, "operation"),
    ("retrieve_profile_context", {"operation": "find_entity"}, "entity_name"),
    ("retrieve_profile_context", {"operation": "find_entity", "entity_name": " "}, "entity_name"),
    ("retrieve_profile_context", {"operation": "search_entities"}, "query"),
    ("retrieve_profile_context", {"operation": "list_entities", "top_k": 0}, "top_k"),
    ("retrieve_profile_context", {"operation": "list_entities", "offset": -1}, "offset"),
    ("retrieve_profile_context", {"operation": "list_entities", "entity_type": "cat"}, "team"),
    ("profile_entity_tool", {"operation": "find_exact_entity"}, "entity_name"),
    ("profile_entity_tool", {"operation": "find_similar_entity"}, "entity_name"),
    ("profile_entity_tool", {"operation": "check_entity_relationships"}, "entity1"),
    ("profile_entity_tool", {"operation": "check_entity_relationships", "entity2": "A"}, "entity1"),
    ("save_profile", {}, "summary, facts and metadata"),
    ("save_entity", {"entity_name": " "}, "blank"),
    ("save_entity", {"entity_name": "A", "aliases": ["x" * 257]}, "256"),
    ("save_entity", {"entity_name": "A", "importance": 11}, "importance"),
    ("relate_entities", {"source": "A", "relation": "is", "target": ""}, "target"),
    (
        "relate_entities",
        {"source": "A", "relation": "is", "target": "a", "create_missing": True},
        "both",
    ),
    ("delete_entity", {}, "entity_name"),
]


async def test_a_wrong_call_is_told_what_is_wrong(crib: Any) -> None:
    for name, arguments, said in WRONG:
        kind, text = await crib.failure(name, **arguments)
        assert kind == "invalid_arguments", (name, arguments)
        assert said in text, (name, arguments, text)


async def test_a_name_of_several_entities_is_asked_for_more(crib: Any) -> None:
    await crib.call("save_entity", entity_name="Mercury", entity_type="project")
    await crib.call("save_entity", entity_name="Mercury", entity_type="organization")
    kind, text = await crib.failure("delete_entity", entity_name="mercury")
    assert kind == "invalid_arguments"
    assert "Mercury (organization), Mercury (project)" in text
    gone = await crib.call("delete_entity", entity_name="mercury", entity_type="project")
    assert gone["entity_type"] == "project"


async def test_an_alias_filters_documents_of_every_spelling(crib: Any) -> None:
    await _fill(crib)
    for title, name in (("one", "ZOE MULLER"), ("two", "Zo"), ("three", "John Smith")):
        await crib.call("add_document", text="heron", title=title, entities=[name])
    for asked in ("zo", "Müller, Zoë", "Zoe Mueller"):
        found = await crib.call("retrieve_document_context", query="heron", entities=[asked])
        assert {hit["raw_id"] for hit in found["hits"]} == {"one", "two"}, asked


async def test_no_tool_crosses_users(open_crib: Open) -> None:
    async with open_crib(identity__user_id="ann") as crib:
        await _fill(crib, user_id="bob")
        await crib.call("save_profile", summary="Bob's secret", user_id="bob")
        await crib.call("save_entity", entity_name="Ann's own")
        zoe = {"entity_name": "Zoë Müller"}
        for name, arguments in (
            ("retrieve_profile_context", {"operation": "get_profile"}),
            ("retrieve_profile_context", {"operation": "find_entity", **zoe}),
            ("profile_entity_tool", {"operation": "find_exact_entity", **zoe}),
            ("profile_entity_tool", {"operation": "check_entity_relationships", "entity1": "Zo"}),
            ("relate_entities", {"source": "Ann's own", "relation": "is", "target": "Heron"}),
            ("delete_entity", zoe),
            ("unrelate_entities", {"source": "Zo", "relation": "leads", "target": "Heron"}),
        ):
            kind, text = await crib.failure(name, **arguments)
            assert kind == "not_found", (name, arguments)
            assert "Did you mean" not in text, (name, text)
        for name, arguments in (
            ("retrieve_profile_context", {"operation": "search_entities", "query": "wetlands"}),
            ("profile_entity_tool", {"operation": "find_similar_entity", **zoe}),
        ):
            assert (await crib.call(name, **arguments))["found"]["entities"] == [], name
        listed = await crib.call("profile_entity_tool", operation="list_entities")
        assert _found(listed) == [("Ann's own", "listed")]
        listed = await crib.call("profile_entity_tool", operation="list_entities", user_id="bob")
        assert listed["found"]["total"] == 3


async def test_a_question_finds_an_entity_and_says_which_tool_has_it(crib: Any) -> None:
    await crib.call("save_entity", entity_name="Brückner Werke", summary="Builds organs.")
    related = {"source": "Ilse Roth", "relation": "runs", "target": "Brückner Werke"}
    await crib.call("relate_entities", **related, create_missing=True)
    answer = await crib.call("query", query="Who runs Bruckner Werke?")
    hit = answer["hits"][0]
    assert (hit["context_type"], hit["origin"]) == ("entity", "people")
    assert hit["title"] == "Brückner Werke"
    assert "Ilse Roth runs Brückner Werke." in hit["content"]
    text = await crib.text("query", query="Who runs Brückner Werke?")
    assert 'operation="find_entity" entity_name="Brückner Werke"' in text
    replaced = {**related, "source": "Jan Vos", "replaces": "source"}
    await crib.call("relate_entities", **replaced, create_missing=True)
    checked = await crib.call(
        "profile_entity_tool", operation="check_entity_relationships", entity1="Ilse Roth"
    )
    assert checked["relationships"][0]["until"]
