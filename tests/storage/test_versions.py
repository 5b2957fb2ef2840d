"""The version of a library: whatever can alter an answer raises it, and nothing else does."""

import time
from collections.abc import Callable

import pytest

from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, NewEntry, SearchFilter
from storage.people.models import NewEntity

ANN, BOB = Identity(user_id="ann"), Identity(user_id="bob")


def version(library: Library, identity: Identity = ANN) -> int:
    with library.database.read() as connection:
        row = connection.execute(
            "SELECT sum(version) FROM versions WHERE user_id IN (?, '')", (identity.user_id,)
        ).fetchone()
    return int(row[0])


def new(text: str, **given: object) -> NewContext:
    return NewContext(**{"title": "", "text": text, "raw_type": "text", "raw_id": text} | given)  # type: ignore[arg-type]  # drawn together by name


def record(library: Library, **given: object) -> int:
    entry = NewEntry(session_id="s", kind="call", time=time.time(), action="a", **given)  # type: ignore[arg-type]  # the same
    return library.entries.record(ANN, entry)


def run(library: Library, sql: str) -> None:
    with library.database.write() as connection:
        connection.execute(sql)


def drain(library: Library) -> None:
    while library.indexer.step():
        pass


@pytest.fixture
def shelf(library: Library) -> Shelf:
    shelf = library.shelf(ANN)
    shelf.add(new("A kettle"))
    shelf.add(new("A boat", context_type=ContextType.KNOWLEDGE, memory_layer=2))
    shelf.people.save_entity(NewEntity(name="Ada"))
    record(library)
    drain(library)
    return shelf


def ids(shelf: Shelf) -> list[str]:
    return [context.id for context in shelf.contexts(SearchFilter(), 10)]


ALTERING: dict[str, Callable[[Library, Shelf], object]] = {
    "a document": lambda _, shelf: shelf.add(new("Another")),
    "its new version": lambda _, shelf: shelf.add(new("A kettle", summary="It whistles.")),
    "a deletion": lambda _, shelf: shelf.forget(ids(shelf)[:1]),
    "a document's deletion": lambda _, shelf: shelf.delete_document("text", "A kettle"),
    "all forgotten": lambda _, shelf: shelf.forget_all(SearchFilter()),
    "metadata": lambda library, _: run(library, "UPDATE contexts SET metadata = '{\"year\": 1}'"),
    "a layer": lambda library, _: run(library, "UPDATE memories SET layer = 4"),
    "no memory any more": lambda library, _: run(library, "DELETE FROM memories"),
    "an entity": lambda _, shelf: shelf.people.save_entity(NewEntity(name="Bob")),
    "an alias": lambda _, shelf: shelf.people.save_entity(NewEntity(name="Ada", aliases=("A",))),
    "an entity's deletion": lambda _, shelf: shelf.people.delete_entity("Ada"),
    "an entry's deletion": lambda library, _: library.entries.forget(ANN, [1]),
    "words thrown away": lambda library, _: library.indexer.rebuild_words(),
    "a model to come": lambda library, _: run(
        library, "INSERT INTO models (scheme, state) VALUES ('other', 'next')"
    ),
}


@pytest.mark.parametrize("what", ALTERING)
def test_what_can_alter_an_answer_raises_the_version(
    library: Library, shelf: Shelf, what: str
) -> None:
    before = version(library)
    ALTERING[what](library, shelf)
    assert version(library) > before


def test_embedding_raises_it_and_words_indexed_anew_do(library: Library, shelf: Shelf) -> None:
    shelf.add(new("Another"))
    before = version(library)
    drain(library)
    embedded = version(library)
    assert embedded > before
    library.indexer.rebuild_words()
    thrown = version(library)
    drain(library)
    assert version(library) > thrown > embedded


def test_what_alters_nothing_leaves_it(library: Library, shelf: Shelf) -> None:
    before = version(library)
    record(library, said="A heron", context_ids=tuple(ids(shelf)))
    record(library, is_recall=True, read_ids=tuple(ids(shelf)))
    run(library, "UPDATE memories SET uses = uses + 1, last_used = 5")
    library.shelf(BOB).add(new("Bob's"))
    shelf.add(new("A kettle"))
    shelf.search("kettle", SearchFilter(), 5)
    drain(library)
    library.indexer.rebuild_vectors()
    drain(library)
    assert version(library) == before


def test_a_user_without_contexts_has_a_version_too(library: Library) -> None:
    library.shelf(BOB).people.save_entity(NewEntity(name="Ada"))
    before = version(library, BOB)
    library.shelf(BOB).people.delete_entity("Ada")
    assert version(library, BOB) > before
