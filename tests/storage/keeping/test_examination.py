import sqlite3
from contextlib import closing
from types import ModuleType

import pytest

from storage.keeping.examination import damage, unindexed
from storage.library import Library
from storage.models import Identity

ANN = Identity(user_id="ann")


TWICE = (
    "INSERT INTO lexical_fresh SELECT seq, user_id, 0, x'', x'' FROM chunks"
    " WHERE user_id = 'ann' ORDER BY seq LIMIT 7"
)


@pytest.fixture
def folded(library: Library, world: ModuleType) -> Library:
    """A library whose index of words has segments, fresh rows and deleted chunks."""
    world.add_many(library, "a", 1500)
    world.add_many(library, "b", 30, Identity(user_id="bob"))
    library.shelf(ANN).add(world.new_document("gone", "a text"))
    world.drain(library)
    library.shelf(ANN).delete_document("text", "gone")
    library.shelf(ANN).add(world.new_document("late", "another text"))
    return library


def seen(library: Library) -> tuple[str, int]:
    with library.database.read() as connection:
        return damage(connection), unindexed(connection)


def test_a_sound_record_is_indexed_whole(folded: Library) -> None:
    with folded.database.read() as connection:
        (segments,) = connection.execute("SELECT count(*) FROM lexical_segments").fetchone()
    assert segments > 0
    assert seen(folded) == ("", 0)


def test_chunks_that_wait_to_be_indexed_are_not_missing(folded: Library) -> None:
    folded.indexer.rebuild_words()
    assert seen(folded) == ("", 0)


@pytest.mark.parametrize(
    ("harm", "wrong"),
    [
        ("DELETE FROM lexical_fresh WHERE user_id = 'bob'", 30),
        ("DELETE FROM lexical_blocks", 1000),
        ("UPDATE lexical_segments SET live = 0", 1000),
        (TWICE, 7),
        ("INSERT INTO lexical_fresh VALUES (99999, 'ann', 0, x'', x'')", 1),
        ("INSERT INTO lexical_fresh VALUES (99999, 'eve', 0, x'', x'')", 1),
    ],
)
def test_what_the_index_of_words_says_wrong_is_counted(
    folded: Library, harm: str, wrong: int
) -> None:
    with folded.database.write() as connection:
        connection.execute(harm)
    assert seen(folded) == ("", wrong)


def test_rows_that_belong_to_nothing_are_damage(folded: Library) -> None:
    with closing(sqlite3.connect(folded.database.path)) as connection:
        connection.execute("UPDATE mentions SET context_seq = 99999")
        connection.execute("DELETE FROM contexts WHERE raw_id = 'late'")  # no foreign keys here
        connection.commit()
    assert seen(folded)[0] == "1 rows of chunks refer to missing rows"
