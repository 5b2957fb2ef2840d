import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage.contexts.ingestion import as_json
from storage.keeping.schema import statements
from storage.library import Library, Shelf
from storage.models import (
    LONGEST_LABEL,
    ContextType,
    Identity,
    NewContext,
    SearchFilter,
    is_labelled,
    label_of,
)

ANN = Identity("ann")
BOB = Identity("bob")

# SQLite ends a text of JSON at a NUL, and keeps no halves of characters.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
    | texts
)
values = scalars | st.lists(scalars | st.lists(scalars, max_size=2), max_size=4)
metadata_objects = st.dictionaries(
    texts, values | st.dictionaries(texts, scalars, max_size=2), max_size=4
)


def _labels(library: Library, context_id: str) -> set[tuple[str, str]]:
    with library.database.read() as connection:
        rows = connection.execute(
            "SELECT key, value FROM labels JOIN contexts x ON x.seq = context_seq WHERE x.id = ?",
            (context_id,),
        )
        return {(row[0], row[1]) for row in rows}


def _expected(metadata: dict[str, Any]) -> set[tuple[str, bytes]]:
    """The labels, without the case of ASCII letters."""
    return {
        (key, label.encode().lower())
        for key, value in metadata.items()
        for label in map(label_of, value if isinstance(value, list) else [value])
        if label is not None
    }


def _ids(library: Library, *labels: tuple[str, tuple[str, ...]], owner: Identity = ANN) -> set[str]:
    found = library.shelf(owner).contexts(SearchFilter(labels=labels), 100)
    return {context.raw_id for context in found}


@pytest.fixture(scope="module")
def record() -> Iterator[sqlite3.Connection]:
    """What of a record has to do with labels."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("CREATE TABLE contexts (seq INTEGER PRIMARY KEY, user_id, metadata)")
        (script,) = (resources.files("storage") / "migrations").iterdir()
        for statement in statements(script.read_text(encoding="utf-8")):
            if "labels" in statement:
                connection.execute(statement)
        yield connection


@given(first=metadata_objects, then=metadata_objects)
@example(first={"n": [2, 2.0, True, "true", 10**30, -0.0, 1e15, 0.1 + 0.2]}, then={"a b.c": "x"})
def test_the_record_labels_as_python_does(
    record: sqlite3.Connection, first: dict[str, Any], then: dict[str, Any]
) -> None:
    def labels() -> set[tuple[str, bytes]]:
        rows = record.execute("SELECT key, value FROM labels").fetchall()
        assert len(set(rows)) == len(rows)
        return {(key, value.encode().lower()) for key, value in rows}

    record.execute("INSERT INTO contexts VALUES (1, 'ann', ?)", (as_json(first),))
    assert labels() == _expected(first)
    record.execute("UPDATE contexts SET metadata = ?", (as_json(then),))
    assert labels() == _expected(then)
    record.execute("DELETE FROM contexts")
    assert labels() == set()


def test_metadata_that_are_no_json_are_kept_without_labels(record: sqlite3.Connection) -> None:
    record.execute("INSERT INTO contexts VALUES (1, 'ann', ?)", (as_json({"a": float("nan")}),))
    assert record.execute("SELECT count(*) FROM labels").fetchone() == (0,)
    record.execute("DELETE FROM contexts")


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (2, "2"),
        (2.0, "2"),
        (-0.0, "0"),
        (2.5, "2.5"),
        (10**30, "1e+30"),
        (10**400, "inf"),
        (True, "true"),
        (False, "false"),
        ("", ""),
        ("x" * LONGEST_LABEL, "x" * LONGEST_LABEL),
        ("x" * (LONGEST_LABEL + 1), None),
        (None, None),
        ({"a": 1}, None),
        (["a"], None),
    ],
)
def test_a_plain_value_has_one_label(value: object, label: str | None) -> None:
    assert label_of(value) == label


def test_labels_find_by_one_of_some_values_under_every_key(
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
    for raw_id, metadata in (
        ("pump", {"product": "Pump", "year": 2024, "tags": ["new", "RED"], "open": True}),
        ("valve", {"product": "valve", "year": 2024.0, "tags": [], "open": False}),
        ("nested", {"product": {"name": "pump"}, "tags": [["new"], {"a": "new"}]}),
        ("none", {}),
    ):
        shelf.add(world.new_document(raw_id, f"heron {raw_id}", metadata=metadata))
    assert _ids(library, ("product", ("pump",))) == {"pump"}
    assert _ids(library, ("product", ("PUMP", "Valve"))) == {"pump", "valve"}
    assert _ids(library, ("year", ("2024",))) == {"pump", "valve"}
    assert _ids(library, ("tags", ("red",))) == {"pump"}
    assert _ids(library, ("open", ("true",))) == {"pump"}
    assert _ids(library, ("year", ("2024",)), ("open", ("false",))) == {"valve"}
    assert _ids(library, ("tags", ("new",))) == {"pump"}
    assert _ids(library, ("nothing", ("pump",))) == set()
    assert _ids(library, ("product", ("%", "' OR 1=1 --"))) == set()
    assert _ids(library, ("product", ())) == set()
    assert _ids(library, ("product", ("pump",)), owner=BOB) == set()
    (hit,) = shelf.search("heron", SearchFilter(labels=(("product", ("pump",)),)), 5).hits
    assert hit.context.raw_id == "pump"


def test_a_new_version_has_its_own_labels_and_a_deleted_one_none(
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
    shelf.add(world.new_document("a", "herons wade", metadata={"state": "draft", "by": "Una"}))
    shelf.add(world.new_document("a", "herons fly", metadata={"state": "final"}))
    assert _ids(library, ("state", ("draft",))) == set()
    assert _ids(library, ("by", ("una",))) == set()
    assert _ids(library, ("state", ("final",))) == {"a"}
    shelf.add(world.new_document("a", "herons fly", metadata={"state": "kept"}))
    assert _ids(library, ("state", ("kept",))) == {"a"}
    shelf.delete_document("text", "a")
    with library.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM labels").fetchone()[0] == 0


def test_what_knowledge_takes_in_labels_it_too(library: Library, shelf: Shelf) -> None:

    def fact(**metadata: object) -> NewContext:
        return NewContext(
            context_type=ContextType.KNOWLEDGE,
            title="Herons",
            text="Herons wade in shallow water.",
            metadata=metadata,
        )

    first = shelf.add(fact(topic="birds", state="draft")).context
    merged = shelf.add(fact(state="checked", by=["Una", "Bo"])).context
    assert merged.id == first.id
    assert _labels(library, first.id) == {
        *(("topic", "birds"), ("state", "checked")),
        *(("by", "Una"), ("by", "Bo")),
    }


@pytest.mark.parametrize(
    ("stored", "asked", "is_there"),
    [
        ("Straße", "STRAßE", True),
        ("Straße", "strasse", False),
        ("Émile", "émile", False),  # only ASCII letters lose their case
        ("Émile", "ÉMILE", True),
        ([1, 2.0], "2", True),
        (True, "1", False),
        (None, "None", False),
    ],
)
def test_python_and_sql_find_the_same(
    library: Library, world: ModuleType, stored: object, asked: str, is_there: bool
) -> None:
    library.shelf(ANN).add(world.new_document("a", "heron", metadata={"k": stored}))
    assert _ids(library, ("k", (asked,))) == ({"a"} if is_there else set())
    assert is_labelled({"k": stored}, "k", [asked]) is is_there
