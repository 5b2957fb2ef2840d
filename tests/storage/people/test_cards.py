"""Cards: what is stored of people is found by one search, is as current, and goes as it does."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storage.keeping.export import export_jsonl
from storage.keeping.importing import import_jsonl
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, SearchFilter, TimeRange, TimeType
from storage.people.models import EntityType, NewEntity, NewRelationship
from storage.retrieval.routing import Scope, Source, UnifiedQuery

ANN, BOB = Identity("ann"), Identity("bob")
PERSON, PROJECT = EntityType.PERSON, EntityType.PROJECT


def save(shelf: Shelf, name: str, entity_type: EntityType = PERSON, **given: Any) -> None:
    shelf.people.save_entity(NewEntity(name=name, entity_type=entity_type, **given))


def relate(shelf: Shelf, source: str, relation: str, target: str, **given: Any) -> None:
    new = NewRelationship(source=source, relation=relation, target=target, **given)
    shelf.people.relate(new, create_missing=True)


def found(shelf: Shelf, query: str, **given: Any) -> list[tuple[str, str]]:
    """The titles and texts of the cards that answer a question, best first."""
    result = shelf.ask(UnifiedQuery(text=query, **{"top_k": 10, **given}))
    hits = [hit.passage for hit in result.hits if hit.passage is not None]
    return [
        (hit.context.title, hit.chunk.content) for hit in hits if hit.context.context_type.is_card
    ]


def titles(shelf: Shelf, query: str, **given: Any) -> list[str]:
    return [title for title, _ in found(shelf, query, **given)]


@pytest.fixture
def shelf(library: Library) -> Shelf:
    shelf = library.shelf(ANN)
    shelf.people.save_profile(summary="Repairs sails.", facts={"home_port": "Turku"})
    save(shelf, "Beacon", PROJECT, summary="A lighthouse museum.", metadata={"budget": "40k"})
    save(shelf, "Zoë Lindqvist", summary="Carpenter.", aliases=("Skipper",))
    save(shelf, "Otto Brandt")
    save(shelf, "王小明", summary="北京的工程师。")
    relate(shelf, "Zoë Lindqvist", "leads", "Beacon")
    relate(shelf, "Otto Brandt", "trains", "Zoë Lindqvist", description="since May")
    shelf.add(NewContext(title="Tides", text="Ebb and flood.", raw_type="text", raw_id="t"))
    return shelf


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("Which port is home to the user?", "The user"),
        ("Who leads Beacon?", "Beacon"),
        ("lighthouse museum", "Beacon"),
        ("zoe lindqvist", "Zoë Lindqvist"),
        ("Lindqvist, Zoë", "Zoë Lindqvist"),
        ("Zoe Lindkvist", "Zoë Lindqvist"),  # a typo
        ("Skipper", "Zoë Lindqvist"),
        ("王小明是谁?", "王小明"),
        ("Who trains the one that leads Beacon?", "Otto Brandt"),  # two steps away
    ],
)
def test_a_question_finds_whom_it_is_about_at_once(shelf: Shelf, query: str, title: str) -> None:
    assert title in titles(shelf, query, top_k=3)


def test_a_card_says_in_sentences_what_is_known(shelf: Shelf) -> None:
    assert found(shelf, "Zoë Lindqvist")[0][1] == (
        "Zoë Lindqvist is a person, also called Skipper. Carpenter. Zoë Lindqvist leads Beacon."
        " Otto Brandt trains Zoë Lindqvist (since May)."
    )
    assert "Beacon's budget is 40k." in found(shelf, "Beacon")[0][1]
    assert "The user's home port is Turku." in found(shelf, "home port")[0][1]


def test_what_changes_is_found_changed(library: Library, shelf: Shelf, world: ModuleType) -> None:
    world.drain(library)
    save(shelf, "Beacon", PROJECT, summary="A windmill.")
    assert "Beacon" in titles(shelf, "windmill")
    assert "Beacon" not in titles(shelf, "museum")
    shelf.people.unrelate("Zoë Lindqvist", "leads", "Beacon")
    assert "leads" not in found(shelf, "Beacon")[0][1]


def test_a_deleted_entity_is_told_of_by_no_card(library: Library, shelf: Shelf) -> None:
    shelf.people.delete_entity("Zoë Lindqvist")
    assert titles(shelf, "Skipper") == []
    assert found(shelf, "Otto Brandt") == [("Otto Brandt", "Otto Brandt is a person.")]
    with library.database.read() as connection:
        texts = [row[0] for row in connection.execute("SELECT content FROM chunks")]
    assert not any("Lindqvist" in text for text in texts)


def test_filters_and_scopes_hold_for_cards_too(library: Library, shelf: Shelf) -> None:
    of_projects = SearchFilter(entities=("Beacon",))
    named = set(titles(shelf, "Lindqvist Brandt", criteria=of_projects))
    assert named == {"Beacon", "Zoë Lindqvist"}
    documents = SearchFilter(context_types=(ContextType.DOCUMENT,))
    assert titles(shelf, "Beacon", criteria=documents) == []
    entities = SearchFilter(context_types=(ContextType.ENTITY,))
    assert titles(shelf, "user Beacon", criteria=entities)[0] == "Beacon"
    before = SearchFilter(time_range=TimeRange(end=1, time_type=TimeType.UPDATE))
    assert titles(shelf, "Beacon", criteria=before) == []
    for scope in (Scope.MEMORY, Scope.KNOWLEDGE, Scope.ALL):
        assert "Beacon" in titles(shelf, "Beacon", scope=scope)
    assert titles(shelf, "Beacon", layers=(4,)) == []
    assert titles(shelf, "Beacon", source=Source(name="all")) == []


def test_cards_are_no_documents(shelf: Shelf) -> None:
    assert shelf.count(SearchFilter()) == 1
    assert [each.title for each in shelf.contexts(SearchFilter(), 10)] == ["Tides"]
    assert shelf.search("Beacon", SearchFilter(), 5).hits == ()
    entities = SearchFilter(context_types=(ContextType.ENTITY,))
    (card, *_) = shelf.contexts(entities, 10)
    assert shelf.forget([card.id]) == 0
    assert shelf.forget_all(SearchFilter(entities=("Beacon",))) == {}
    assert "Beacon" in titles(shelf, "Beacon")


def test_no_card_is_seen_by_others(library: Library, shelf: Shelf) -> None:
    others = library.shelf(BOB)
    assert found(others, "Beacon user Skipper") == []
    phone = library.shelf(Identity("ann", "phone"))
    save(phone, "Beacon", PROJECT, summary="A ferry.")
    relate(phone, "Mika", "sails", "Beacon")
    assert found(phone, "Zoë Lindqvist") == []
    assert {text for _, text in found(phone, "ferry")} >= {
        "Beacon is a project. A ferry. Mika sails Beacon."
    }
    laptop = library.shelf(Identity("ann", "laptop"))
    assert found(laptop, "ferry Beacon Mika") == []


def test_a_replaced_fact_is_told_as_former_where_the_past_is_asked_for(shelf: Shelf) -> None:
    shelf.people.save_profile(facts={"Home port": "Kotka"})
    save(shelf, "Beacon", PROJECT, metadata={"budget": "55k"})
    relate(shelf, "Otto Brandt", "lives in", "Hanko")
    relate(shelf, "Otto Brandt", "lives in", "Vaasa")
    relate(shelf, "Mika", "leads", "Beacon", replaces="source")
    for now, then in (
        ("What is the home port of the user?", "What was the home port of the user before?"),
        ("Beacon budget", "Wie hoch war das budget von Beacon früher?"),
        ("Where is the home of Otto Brandt, who lives in", "以前 Otto Brandt lives in"),
        ("Who leads Beacon", "Who led Beacon previously, who leads Beacon"),
    ):
        assert not any("Until" in text for _, text in found(shelf, now))
        assert any("Until" in text for _, text in found(shelf, then))
    profile = shelf.people.profile()
    assert profile is not None
    assert profile.facts == {"home_port": "Kotka"}
    assert "Turku" in str(found(shelf, "former home port of the user"))
    assert "Hanko" in str(found(shelf, "where Otto Brandt lived before"))
    assert "Otto Brandt lives in Vaasa." in str(found(shelf, "Otto Brandt"))


def test_a_removed_fact_leaves_no_former_one(library: Library, shelf: Shelf) -> None:
    shelf.people.save_profile(facts={"home_port": "Kotka"})
    shelf.people.save_profile(facts={"home_port": None})
    assert "Turku" not in str(found(shelf, "former home port of the user"))
    with library.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM former_facts").fetchone()[0] == 0


def test_the_past_comes_along_with_an_export(
    library: Library,
    shelf: Shelf,
    world: ModuleType,
    library_of: Callable[..., Library],
    tmp_path: Path,
) -> None:
    shelf.people.save_profile(facts={"home_port": "Kotka"})
    save(shelf, "Beacon", PROJECT, metadata={"budget": "55k"})
    relate(shelf, "Mika", "leads", "Beacon", replaces="source")
    target = tmp_path / "export.jsonl"
    export_jsonl(library.database, target, ANN)
    assert '"record": "context", "user_id": "ann"' in target.read_text()
    assert target.read_text().count('"record": "context"') == 1  # no card
    other = library_of(world.HashEmbedder(), tmp_path / "other")
    first = import_jsonl(other.database, target, None)
    assert set(first.outcomes) == {"added"}
    assert set(import_jsonl(other.database, target, None).outcomes) == {"unchanged"}
    world.drain(other)
    there = other.shelf(ANN)
    for query in ("Beacon", "former home port of the user", "who led Beacon before, its budget"):
        assert sorted(found(there, query)) == sorted(found(shelf, query))


def test_what_was_saved_before_there_were_cards_gets_one(
    library: Library,
    shelf: Shelf,
    world: ModuleType,
    library_of: Callable[..., Library],
    tmp_path: Path,
) -> None:
    library.close()
    with closing(sqlite3.connect(tmp_path / "data" / "toolcrib.db")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM contexts WHERE context_type IN ('profile', 'entity')")
        connection.execute("INSERT INTO stale_cards (entity_seq) SELECT seq FROM entities")
        connection.execute("INSERT INTO stale_cards (user_id) SELECT user_id FROM profiles")
        connection.commit()
    opened = library_of(world.HashEmbedder())
    world.drain(opened)
    again = opened.shelf(ANN)
    assert {"Beacon", "Zoë Lindqvist"} <= set(titles(again, "Who leads Beacon?"))
    assert titles(again, "home port")[0] == "The user"


def test_another_process_finds_what_was_saved_here(
    shelf: Shelf, library_of: Callable[..., Library], world: ModuleType
) -> None:
    other = library_of(world.HashEmbedder()).shelf(ANN)
    assert "Beacon" in titles(other, "lighthouse")
    save(shelf, "Beacon", PROJECT, summary="A windmill.")
    assert "Beacon" in titles(other, "windmill")
