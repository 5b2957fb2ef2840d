from types import ModuleType
from typing import Any

import pytest

from storage.contexts.contexts import ContextRepository
from storage.contexts.ingestion import PreparedChunk
from storage.database import Database, View
from storage.errors import DocumentNotFoundError, StorageUnavailableError
from storage.models import Context, Identity, SearchFilter
from storage.people.mentions_index import mentioned_names

ANN = Identity(user_id="ann")
ANN_PHONE = Identity(user_id="ann", device_id="phone")
ANN_BOT = Identity(user_id="ann", agent_id="bot")
BOB = Identity(user_id="bob")


@pytest.fixture
def contexts(database: Database) -> ContextRepository:
    return ContextRepository(database)


@pytest.fixture
def put(contexts: ContextRepository, world: ModuleType) -> Any:
    """Stores a document of some chunks; says whether it took another's place."""

    def put(identity: Identity, raw_id: str, *texts: str, **given: Any) -> tuple[Context, bool]:
        chunks = [
            PreparedChunk(
                heading="", content=text, start=0, title_terms=(), body_terms=tuple(text.split())
            )
            for text in texts
        ]
        document = world.new_document(raw_id, " ".join(texts), **given)
        return contexts.replace_document(identity, document, chunks)

    return put


def _names(database: Database, identity: Identity) -> list[str]:
    with database.read() as connection:
        return mentioned_names(View(connection, identity))


def _rows(database: Database) -> dict[str, int]:
    tables = ("contexts", "chunks", "lexical_fresh", "mentions", "embed_queue", "vector_outbox")
    with database.read() as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608  # our own names
            for table in tables
        }


def test_a_document_comes_back_as_it_was_stored(contexts: ContextRepository, put: Any) -> None:
    metadata = {"pages": 3, "tags": ["a", "ü"], "nested": {"deep": None}}
    stored, replaced = put(
        ANN,
        "n",
        "one",
        "two",
        entities=("Zoë",),
        metadata=metadata,
        event_time=0.0,
        file_path="n.md",
    )
    assert not replaced
    found, chunks = contexts.get_document(ANN, "text", "n")
    assert found == stored
    assert (found.metadata, found.entities, found.event_time) == (metadata, ("Zoë",), 0.0)
    assert (found.file_path, found.chunk_count) == ("n.md", 2)
    assert [(piece.position, piece.content) for piece in chunks] == [(0, "one"), (1, "two")]


def test_a_replacement_takes_every_trace_of_the_earlier_version(
    database: Database, contexts: ContextRepository, put: Any
) -> None:
    first, _ = put(ANN, "n", "one", "two", "three", entities=("Una", "Duo"))
    second, replaced = put(ANN, "n", "four", entities=("Tria",))
    assert replaced
    assert second.create_time == first.create_time
    assert second.update_time >= first.update_time
    assert _rows(database) == {
        "contexts": 1,
        "chunks": 1,
        "lexical_fresh": 1,
        "mentions": 1,
        "embed_queue": 1,
        "vector_outbox": 0,  # the vector index holds none of ann
    }
    assert _names(database, ANN) == ["tria"]


def test_a_replacement_that_fails_leaves_the_earlier_version(
    database: Database, contexts: ContextRepository, put: Any
) -> None:
    put(ANN, "n", "one", "two")
    before = _rows(database)
    with database.read() as connection:  # the one idle connection, which the next write takes
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageUnavailableError, match="full"):
        put(ANN, "n", *("long " * 5000 for _ in range(20)))
    assert _rows(database) == before
    assert [piece.content for piece in contexts.get_document(ANN, "text", "n")[1]] == ["one", "two"]


def test_devices_and_agents_keep_versions_of_their_own(
    contexts: ContextRepository, put: Any
) -> None:
    for identity, text in ((ANN, "desk"), (ANN_PHONE, "phone"), (ANN_BOT, "bot")):
        _, replaced = put(identity, "n", text)
        assert not replaced
    assert contexts.get_document(ANN_PHONE, "text", "n")[1][0].content == "phone"
    assert contexts.get_document(ANN_BOT, "text", "n")[1][0].content == "bot"
    assert len(contexts.newest(ANN, SearchFilter(), 10)) == 3
    assert len(contexts.newest(ANN_PHONE, SearchFilter(), 10)) == 1


def test_a_document_stored_for_any_device_is_answered_though_another_has_a_later_one(
    contexts: ContextRepository, database: Database, put: Any
) -> None:
    put(ANN_PHONE, "n", "phone")
    with database.write() as connection:
        connection.execute("UPDATE contexts SET update_time = 1e12")
    stored, _ = put(ANN, "n", "desk", "top")
    assert stored.chunk_count == 2


def test_a_deletion_takes_all_that_the_identity_sees_under_the_source(
    database: Database, contexts: ContextRepository, put: Any
) -> None:
    put(ANN, "n", "one")
    put(ANN_PHONE, "n", "two", "three")
    put(BOB, "n", "four")
    assert contexts.delete_document(ANN_PHONE, "text", "n") == 2
    put(ANN_PHONE, "n", "two", "three")
    assert contexts.delete_document(ANN, "text", "n") == 3
    assert contexts.newest(ANN, SearchFilter(), 10) == []
    assert contexts.newest(BOB, SearchFilter(), 10)[0].raw_id == "n"
    assert _rows(database)["chunks"] == 1


@pytest.mark.parametrize(
    ("raw_type", "raw_id"), [("text", "m"), ("file", "n"), ("", ""), ("text", "%")]
)
def test_an_unknown_source_is_named(
    contexts: ContextRepository, put: Any, raw_type: str, raw_id: str
) -> None:
    put(ANN, "n", "one")
    for call in (contexts.get_document, contexts.delete_document):
        with pytest.raises(DocumentNotFoundError) as error:
            call(ANN, raw_type, raw_id)
        assert repr(raw_id) in error.value.message
        assert error.value.suggestions
    with pytest.raises(DocumentNotFoundError, match="'bob'"):
        contexts.get_document(BOB, "text", "n")


def test_documents_are_listed_newest_first_a_page_at_a_time(
    contexts: ContextRepository, put: Any
) -> None:
    for number in range(5):
        put(ANN, f"n{number}", "text")
    put(ANN, "n1", "again")
    ids = ["n1", "n4", "n3", "n2", "n0"]
    assert [document.raw_id for document in contexts.newest(ANN, SearchFilter(), 10)] == ids
    assert [document.raw_id for document in contexts.newest(ANN, SearchFilter(), 2, 1)] == ids[1:3]
    assert contexts.newest(ANN, SearchFilter(), 10, 5) == []


def test_names_are_known_to_their_user_alone(database: Database, put: Any) -> None:
    put(ANN, "n", "one", "two", entities=("Una", "Duo"))
    put(BOB, "n", "one", entities=("Tria",))
    assert _names(database, ANN) == ["duo", "una"]
    assert _names(database, BOB) == ["tria"]
