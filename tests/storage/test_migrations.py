from __future__ import annotations

import sqlite3
from importlib import resources
from pathlib import Path
from types import ModuleType

from storage.library import Library
from storage.models import ContextType, Identity, SearchFilter
from storage.tokenize import tokenize

ANN = Identity(user_id="ann")


def _first_schema(path: Path, world: ModuleType) -> None:
    """A record of the first schema: one document of two chunks, one of them queued."""
    path.parent.mkdir()
    script = (resources.files("storage") / "migrations" / "0001_documents.sql").read_text()
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.execute("PRAGMA user_version = 1")
    connection.execute(
        "INSERT INTO documents VALUES (7, 'ann', '', '', 'text', 'n', 'Birds', 'text/plain', '',"
        " 'abc', 1, 2, 3, '[\"Una\"]', '{\"a\": 1}')"
    )
    for seq, content in ((40, "herons wade"), (41, "kestrels hover")):
        connection.execute(
            "INSERT INTO contexts VALUES"
            " (?, ?, 'document', 7, ?, 0, '', ?, 'ann', '', '', 1, 2, 3)",
            (seq, f"id{seq}", seq - 40, content),
        )
        connection.execute(
            "INSERT INTO lexical (rowid, title, body) VALUES (?, 'bird', ?)",
            (seq, " ".join(tokenize(content))),
        )
        connection.execute("INSERT INTO mentions VALUES ('una', ?, 'Una')", (seq,))
    vector = world.HashEmbedder().embed_passages(["Birds\nherons wade"])[0]
    connection.execute("INSERT INTO embeddings VALUES (40, ?)", (vector.tobytes(),))
    connection.execute("INSERT INTO embed_queue VALUES (41)")
    connection.execute("INSERT INTO vector_outbox (context_seq, user_id) VALUES (40, 'ann')")
    connection.execute(
        "INSERT INTO contexts SELECT 99, 'x', context_type, document_seq, 9, 0, '',"
        " 'gone', user_id, '', '', 1, 2, 3 FROM contexts WHERE seq = 40"
    )
    connection.execute("DELETE FROM contexts WHERE seq = 99")
    connection.execute("INSERT INTO meta VALUES ('embedder', 'hash/64')")
    connection.commit()
    connection.close()


def test_what_the_first_schema_kept_is_all_there(tmp_path: Path, world: ModuleType) -> None:
    _first_schema(tmp_path / "data" / "toolcrib.db", world)
    embedder = world.HashEmbedder()
    library = Library(tmp_path / "data", embedder)
    shelf = library.shelf(ANN)
    document, chunks = shelf.get_document("text", "n")
    assert document.context_type is ContextType.DOCUMENT
    assert (document.create_time, document.update_time, document.event_time) == (1, 2, 3)
    assert (document.metadata, document.entities) == ({"a": 1}, ("Una",))
    assert [chunk.content for chunk in chunks] == ["herons wade", "kestrels hover"]
    world.drain(library)
    assert embedder.embedded == 1  # what had its vector keeps it
    assert shelf.index_status().complete
    (hit,) = shelf.search("kestrels", SearchFilter(entities=("una",)), 5, alpha=0.0).hits
    assert hit.chunk.content == "kestrels hover"
    with library.database.read() as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    library.close()


def test_numbers_of_texts_that_are_gone_are_not_given_again(
    tmp_path: Path, world: ModuleType
) -> None:
    _first_schema(tmp_path / "data" / "toolcrib.db", world)
    library = Library(tmp_path / "data", world.HashEmbedder())
    library.shelf(ANN).add(world.new_document("new", "a new text"))
    with library.database.read() as connection:
        assert connection.execute("SELECT max(seq) FROM chunks").fetchone()[0] == 100
    library.close()


def test_what_older_schemas_kept_is_found_by_its_metadata(
    tmp_path: Path, world: ModuleType
) -> None:
    _first_schema(tmp_path / "data" / "toolcrib.db", world)
    library = Library(tmp_path / "data", world.HashEmbedder())
    shelf = library.shelf(ANN)
    (found,) = shelf.contexts(SearchFilter(labels=(("a", ("1",)),)), 10)
    assert found.raw_id == "n"
    assert shelf.contexts(SearchFilter(labels=(("a", ("2",)),)), 10) == []
    library.close()
