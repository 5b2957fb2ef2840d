import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.contexts.filters import compile_filter
from storage.database import identity_clause
from storage.errors import DocumentNotFoundError
from storage.library import Library, Shelf
from storage.models import Identity, SearchFilter, TimeRange, TimeType

ANN = Identity(user_id="ann")
PHONE = Identity(user_id="ann", device_id="phone")
BOT = Identity(user_id="ann", agent_id="bot")
PHONE_BOT = Identity("ann", "phone", "bot")

EVENTS = {"old": -86_400.0, "epoch": 0.0, "later": 1_000.0, "last": 2_000.0}


def _ids(library: Library, identity: Identity = ANN, **criteria: Any) -> set[str]:
    """What a search and a listing find alike."""
    shelf = library.shelf(identity)
    ways = [shelf.search(query, SearchFilter(**criteria), 100) for query in ("heron", None)]
    searched, listed = ({hit.context.raw_id for hit in way.hits} for way in ways)
    assert searched == listed
    return searched


@pytest.fixture
def dated(library: Library, world: ModuleType) -> Library:
    for raw_id, event_time in EVENTS.items():
        library.shelf(ANN).add(world.new_document(raw_id, f"heron {raw_id}", event_time=event_time))
    return library


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (None, None, {"old", "epoch", "later", "last"}),
        (0, None, {"epoch", "later", "last"}),
        (None, 0, {"old", "epoch"}),
        (0, 0, {"epoch"}),
        (0.5, 1_000, {"later"}),
        (-86_400, -1, {"old"}),
        (2_000.001, None, set()),
        (1_000, 999, set()),
    ],
)
def test_both_bounds_are_included_and_zero_is_a_real_one(
    dated: Library, start: float | None, end: float | None, expected: set[str]
) -> None:
    assert _ids(dated, time_range=TimeRange(start, end)) == expected


@pytest.mark.parametrize("time_type", list(TimeType))
def test_each_time_is_compared_by_its_own_type(
    library: Library, world: ModuleType, time_type: TimeType
) -> None:
    library.shelf(ANN).add(world.new_document("one", "heron", event_time=1.0))
    column = {
        TimeType.EVENT: "event_time",
        TimeType.CREATE: "create_time",
        TimeType.UPDATE: "update_time",
    }[time_type]
    with library.database.write() as connection:
        connection.execute("UPDATE contexts SET event_time = 1, create_time = 1, update_time = 1")
        connection.execute(f"UPDATE contexts SET {column} = 500")  # noqa: S608  # our own names
    assert _ids(library, time_range=TimeRange(400, 600, time_type)) == {"one"}
    for other in set(TimeType) - {time_type}:
        assert _ids(library, time_range=TimeRange(400, 600, other)) == set()


def test_entities_really_filter_in_any_spelling(library: Library, world: ModuleType) -> None:
    shelf = library.shelf(ANN)
    shelf.add(world.new_document("one", "heron", entities=("Zoë Müller", "Acme")))
    shelf.add(world.new_document("two", "heron", entities=("Bob Stone",)))
    shelf.add(world.new_document("three", "heron about Zoë Müller"))
    for spelling in ("Zoë Müller", "zoe muller", "MÜLLER, ZOË", "Zoë Mülller", "acme"):
        assert _ids(library, entities=(spelling,)) == {"one"}, spelling
    assert _ids(library, entities=("Acme", "Bob Stone")) == {"one", "two"}
    assert _ids(library, entities=("Nobody Known",)) == set()
    assert _ids(library, entities=("",)) == set()
    assert _ids(library, entities=("%", "' OR 1=1 --")) == set()


def test_the_names_of_another_user_find_nothing(library: Library, world: ModuleType) -> None:
    library.shelf(ANN).add(world.new_document("one", "heron", entities=("Acme",)))
    library.shelf(Identity("bob")).add(world.new_document("two", "heron", entities=("Acme Corp",)))
    assert _ids(library, Identity("bob"), entities=("Acme",)) == {"two"}
    assert _ids(library, entities=("Acme",)) == {"one"}


def test_filters_add_up(library: Library, shelf: Shelf, world: ModuleType) -> None:
    for raw_id, raw_type, when, name in (
        ("yes", "mail", 5.0, "Acme"),
        ("type", "file", 5.0, "Acme"),
        ("time", "mail", 50.0, "Acme"),
        ("name", "mail", 5.0, "Other"),
    ):
        shelf.add(
            world.new_document(
                raw_id, f"heron {raw_id}", raw_type=raw_type, event_time=when, entities=(name,)
            )
        )
    assert _ids(library, raw_types=("mail",), time_range=TimeRange(0, 10), entities=("acme",)) == {
        "yes"
    }


def test_an_empty_device_or_agent_is_any_and_a_named_one_is_that_one(
    library: Library, world: ModuleType
) -> None:
    for identity, raw_id in ((ANN, "bare"), (PHONE, "phone"), (BOT, "bot"), (PHONE_BOT, "both")):
        library.shelf(identity).add(world.new_document(raw_id, f"heron {raw_id}"))
    assert _ids(library) == {"bare", "phone", "bot", "both"}
    assert _ids(library, PHONE) == {"phone", "both"}
    assert _ids(library, BOT) == {"bot", "both"}
    assert _ids(library, PHONE_BOT) == {"both"}
    assert _ids(library, Identity("ann", "laptop")) == set()


def test_a_condition_says_whether_it_narrows_and_starts_with_the_user() -> None:
    owner = compile_filter(ANN, SearchFilter(cards=True))
    assert (owner.values, owner.narrows) == (("ann",), False)
    narrower = [
        compile_filter(PHONE, SearchFilter(cards=True)),
        compile_filter(ANN, SearchFilter()),
        compile_filter(ANN, SearchFilter(time_range=TimeRange(start=0))),
        compile_filter(ANN, SearchFilter(entities=("x",))),
        compile_filter(ANN, SearchFilter(raw_types=("x",))),
    ]
    for where in narrower:
        assert where.narrows
        assert where.sql.startswith("x.user_id = ?")
        assert where.values[0] == "ann"
        assert where.sql.count("?") == len(where.values)
    always = SearchFilter(cards=True, time_range=TimeRange())
    assert not compile_filter(ANN, always).narrows
    assert identity_clause(BOT, "d").sql.startswith("d.user_id = ?")


@contextmanager
def _new_library(world: ModuleType) -> Iterator[Library]:
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory) / "data", world.HashEmbedder())
        try:
            yield library
        finally:
            library.close()


user_ids = st.sampled_from(["ann", "Ann", "ann ", "", "%", "bob", "a'--", "ann\x00", "änn"])
identities = st.builds(
    Identity,
    user_id=user_ids,
    device_id=st.sampled_from(["", "phone", "ann"]),
    agent_id=st.sampled_from(["", "bot", "ann"]),
)
additions = st.lists(
    st.tuples(identities, st.sampled_from(["n", "m"]), st.sampled_from(["heron", "lake"])),
    min_size=1,
    max_size=8,
)
all_criteria = st.builds(
    SearchFilter,
    time_range=st.none()
    | st.builds(TimeRange, start=st.sampled_from([None, 0.0]), time_type=st.sampled_from(TimeType)),
    entities=st.sampled_from([(), ("Una",), ("una", "ann")]),
    raw_types=st.sampled_from([(), ("text",)]),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(added=additions, reader=identities, criteria=all_criteria, embedded=st.booleans())
def test_nothing_ever_crosses_users(
    world: ModuleType,
    added: list[tuple[Identity, str, str]],
    reader: Identity,
    criteria: SearchFilter,
    embedded: bool,
) -> None:
    with _new_library(world) as library:
        for owner, raw_id, word in added:
            library.shelf(owner).add(
                world.new_document(
                    raw_id, f"{word} {owner!r}", entities=("Una",), metadata={"of": owner.user_id}
                )
            )
        if embedded:
            world.embed(library)
        shelf = library.shelf(reader)
        others = {(owner, raw_id) for owner, raw_id, _ in added if owner.user_id != reader.user_id}
        own = {(owner, raw_id) for owner, raw_id, _ in added} - others
        for query in (None, "heron lake", repr(reader)):
            for hit in shelf.search(query, criteria, 100).hits:
                assert hit.context.metadata == {"of": reader.user_id}
                assert f"user_id={reader.user_id!r}" in hit.chunk.content
        assert {listed.metadata["of"] for listed in shelf.contexts(SearchFilter(), 1000)} <= {
            reader.user_id
        }
        assert shelf.index_status().total == len(own)
        assert (shelf.index_status().embedded == len(own)) or not embedded
        for raw_id in ("n", "m"):
            try:
                found, _ = shelf.get_document("text", raw_id)
            except DocumentNotFoundError:
                continue
            assert found.metadata == {"of": reader.user_id}
            shelf.delete_document("text", raw_id)
        for owner, raw_id in others:
            assert library.shelf(owner).get_document("text", raw_id)
