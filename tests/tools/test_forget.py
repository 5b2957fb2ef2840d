from typing import Any

import pytest

from storage.models import ContextType, NewContext, SearchFilter

FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"context_types": ["document"]}, {"Herons", "Tyres"}),
    ({"context_types": ["event", "knowledge"]}, {"Ann sailed.", "Tea"}),
    ({"entities": ["ÅSA"]}, {"Herons", "Ann sailed."}),
    ({"entities": ["Åsaa"]}, set()),  # merely like a name that is there
    ({"entities": ["Åsa", "Tyre Ltd"]}, {"Herons", "Ann sailed.", "Tyres"}),
    ({"time_range": {"start": "2020-01-01", "end": "2020-12-31"}}, {"Ann sailed."}),
    ({"raw_type": "book"}, {"Tyres"}),
    ({"raw_type": "text", "raw_id": "Herons"}, {"Herons"}),
    ({"context_types": ["document"], "entities": ["åsa"]}, {"Herons"}),
    ({"context_types": ["knowledge"], "raw_type": "book"}, set()),
]


async def fill(crib: Any) -> dict[str, str]:
    """Four contexts, by what they are called here, with their ids."""
    herons = await crib.call(
        "add_document", title="Herons", text="They stand still.", entities=["Åsa"]
    )
    tyres = await crib.call(
        "add_document",
        title="Tyres",
        text="Patch them.",
        raw_type="book",
        raw_id="7",
        entities=["Tyre Ltd"],
    )
    tea = await crib.call("add_knowledge", title="Tea", content="Ann drinks tea.")
    sailed = await crib.call(
        "add_event", content="Ann sailed.", event_time="2020-05-01", entities=["Åsa"]
    )
    return {
        "Herons": herons["id"],
        "Tyres": tyres["id"],
        "Tea": tea["id"],
        "Ann sailed.": sailed["id"],
    }


def left(crib: Any, ids: dict[str, str]) -> set[str]:
    shelf = crib.app.library.shelf(crib.app.identity)
    stored = {context.id for context in shelf.contexts(SearchFilter(), 100)}
    return {name for name, each in ids.items() if each in stored}


async def test_a_dry_run_shows_what_fits_every_given_filter_and_deletes_nothing(crib: Any) -> None:
    ids = await fill(crib)
    for given, doomed in FILTERS:
        shown = await crib.call("forget", **given)
        assert (shown["dry_run"], shown["count"]) == (True, len(doomed)), given
        assert {each["id"] for each in shown["first"]} == {ids[name] for name in doomed}, given
    assert left(crib, ids) == set(ids)


@pytest.mark.parametrize(("given", "doomed"), FILTERS[1:5])
async def test_what_a_dry_run_shows_is_what_goes(
    crib: Any, given: dict[str, Any], doomed: set[str]
) -> None:
    ids = await fill(crib)
    shown = await crib.call("forget", **given)
    gone = await crib.call("forget", **given, dry_run=False)
    assert (gone["dry_run"], gone["kinds"]) == (False, shown["kinds"])
    assert left(crib, ids) == set(ids) - doomed


async def test_contexts_go_by_their_ids_and_what_is_none_is_named(crib: Any) -> None:
    ids = await fill(crib)
    asked = [ids["Tea"], "no-such-id", ids["Tea"], ids["Tyres"]]
    told = await crib.text("forget", ids=asked)
    assert told.startswith("Would forget 1 document, 1 piece of knowledge.")
    assert "- Tea (knowledge, 20" in told
    untitled = await crib.text("forget", ids=[ids["Ann sailed."]])
    assert "- Ann sailed. (event, 2020-05-01, " in untitled
    assert "No context has the id no-such-id. Profiles, entities" in told
    assert "dry_run=false" in told
    gone = await crib.call("forget", ids=asked, dry_run=False)
    assert (gone["kinds"], gone["missing"]) == ({"document": 1, "knowledge": 1}, ["no-such-id"])
    assert left(crib, ids) == {"Herons", "Ann sailed."}
    again = await crib.call("forget", ids=asked, dry_run=False)
    assert (again["count"], len(again["missing"])) == (0, 3)


async def test_what_is_added_between_the_dry_run_and_the_deletion_goes_and_is_counted(
    crib: Any,
) -> None:
    ids = await fill(crib)
    assert (await crib.call("forget", context_types=["document"]))["count"] == 2
    await crib.call("add_document", title="Late", text="A late text.")
    gone = await crib.call("forget", context_types=["document"], dry_run=False)
    assert gone["count"] == 3
    assert left(crib, ids) == {"Tea", "Ann sailed."}


async def test_more_than_one_transaction_takes_all_go(crib: Any) -> None:
    shelf = crib.app.library.shelf(crib.app.identity)
    for number in range(450):
        shelf.add(
            NewContext(
                context_type=ContextType.EVENT, title=f"Event {number}", text=f"Happened {number}."
            )
        )
    shown = await crib.call("forget", context_types=["event"])
    assert (shown["count"], len(shown["first"])) == (450, 20)
    assert "and 430 more" in await crib.text("forget", context_types=["event"])
    gone = await crib.call("forget", context_types=["event"], dry_run=False)
    assert gone["kinds"] == {"event": 450}
    assert (await crib.call("forget", context_types=["event"]))["count"] == 0


NOTHING: list[dict[str, Any]] = [
    {},
    {"ids": []},
    {"context_types": [], "entities": []},
    {"time_range": {}},
    {"ids": ["x"], "raw_type": "text"},
    {"ids": ["x"], "context_types": ["event"]},
]


async def test_nothing_is_not_taken_for_everything(crib: Any) -> None:
    ids = await fill(crib)
    for given in NOTHING:
        for dry_run in (True, False):
            error_type, told = await crib.failure("forget", **given, dry_run=dry_run)
            assert error_type == "invalid_arguments"
            assert "at least one of context_types" in told
    assert left(crib, ids) == set(ids)


async def test_nothing_of_another_user_is_seen_or_goes(crib: Any) -> None:
    ids = await fill(crib)
    other = await crib.call("forget", context_types=["document"], user_id="eve", dry_run=False)
    assert other["count"] == 0
    named = await crib.call("forget", ids=list(ids.values()), user_id="eve", dry_run=False)
    assert (named["count"], len(named["missing"])) == (0, 4)
    assert left(crib, ids) == set(ids)


async def test_what_names_the_same_in_its_text_alone_stays_and_is_named(crib: Any) -> None:
    ids = await fill(crib)
    told = await crib.text("forget", entities=["ann"])
    assert told.startswith("Would forget nothing.\n2 contexts stay with such a name in the text")
    assert "- Tea (knowledge, 20" in told
    assert "call again with its ids" in told
    await crib.call("save_entity", entity_name="Åsa", aliases=["Aurora Berg"])
    by_alias = await crib.call("add_knowledge", content="Aurora Berg sails. Åsas has no such.")
    declared = await crib.call("add_event", content="A party.", entities=["Aurora Berg"])
    for dry_run in (True, False):
        answer = await crib.call("forget", entities=["Åsa"], dry_run=dry_run)
        assert answer["count"] == 2
        assert answer["left"] == 2
        assert {each["id"] for each in answer["left_first"]} == {by_alias["id"], declared["id"]}
        assert "What is stored of Åsa as an entity stays too: delete_entity" in answer["note"]
    await crib.call("forget", ids=[by_alias["id"], declared["id"]], dry_run=False)
    assert (await crib.call("forget", entities=["Åsa"]))["left"] == 0
    assert left(crib, ids) == {"Tyres", "Tea"}


async def test_what_stays_is_narrowed_as_what_goes_is_and_is_nobody_elses(crib: Any) -> None:
    await fill(crib)
    narrowed = await crib.call("forget", entities=["Ann"], context_types=["event"])
    assert [each["context_type"] for each in narrowed["left_first"]] == ["event"]
    assert (await crib.call("forget", entities=["Ann"], user_id="eve"))["left"] == 0


async def test_many_that_stay_are_counted_and_the_newest_shown(crib: Any) -> None:
    shelf = crib.app.library.shelf(crib.app.identity)
    for number in range(250):
        for names in ((), ("Ann",)):
            shelf.add(
                NewContext(
                    context_type=ContextType.EVENT,
                    title=f"Event {number}",
                    text=f"Ann sailed {number} times.",
                    entities=names,
                    event_time=float(number),
                )
            )
    shown = await crib.call("forget", entities=["Ann"])
    assert (shown["count"], shown["left"], len(shown["left_first"])) == (250, 250, 20)
    assert len({each["id"] for each in (*shown["first"], *shown["left_first"])}) == 40
    assert (await crib.text("forget", entities=["Ann"])).count("and 230 more") == 2


async def test_what_was_forgotten_is_found_no_more(crib: Any) -> None:
    ids = await fill(crib)
    await crib.embed()
    await crib.call("forget", ids=[ids["Herons"]], dry_run=False)
    found = await crib.call("retrieve_document_context", query="stand still herons")
    assert ids["Herons"] not in {hit.get("id", hit.get("context_id")) for hit in found["hits"]}
