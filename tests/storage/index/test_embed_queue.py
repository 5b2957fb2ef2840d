"""What a person has just added is embedded before an import, whoever works on the queue."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from storage.index.embed_queue import BEFORE, FAIR, MOST_TEXTS, RUN_SECONDS, WORDS_ONLY, Pace, take
from storage.index.embedding_models import passage
from storage.library import Library
from storage.models import Identity, NewContext, SearchFilter, Turn

ANN = Identity(user_id="ann")
BOB = Identity(user_id="bob")


def _import(library: Library, world: ModuleType, count: int, identity: Identity = ANN) -> None:
    library.importing = True
    for number in range(count):
        library.shelf(identity).add(world.new_document(f"m{number}", f"imported {number}"))
    library.importing = False


def _waiting(library: Library) -> set[str]:
    """The documents that have no vector."""
    with library.database.read() as connection:
        rows = connection.execute(
            "SELECT x.raw_id FROM embed_queue q JOIN chunks c ON c.seq = q.chunk_seq"
            " JOIN contexts x ON x.seq = c.context_seq"
        )
        return {row[0] for row in rows}


def _passages(library: Library) -> set[str]:
    """What is to be embedded."""
    with library.database.read() as connection:
        (model,) = connection.execute("SELECT seq FROM models").fetchone()
        return {passage(*row[1:]) for row in take(connection, model, Pace())}


def test_a_turn_is_embedded_with_the_end_of_what_was_said_before_it(library: Library) -> None:
    asked = "The fair is near. " * 20 + "When is it?"
    turns = (Turn("Ann", asked), Turn("Bo", "In May."))
    library.shelf(ANN).add(NewContext(title="Fair", turns=turns))
    assert _passages(library) == {f"Fair\nAnn\n{asked}", f"Fair\n{asked[-BEFORE:]}\nBo\nIn May."}


def test_a_part_of_a_document_is_embedded_by_itself(library: Library, world: ModuleType) -> None:
    world.add_many(library, "book", 3)
    assert not any("\n" in each for each in _passages(library))


def test_what_a_program_wrote_gets_no_vector_and_is_found_by_its_words(
    library: Library, world: ModuleType
) -> None:
    new = NewContext(title="Log", text="mooring 4711 done", metadata={WORDS_ONLY: True})
    shelf = library.shelf(ANN)
    shelf.add(replace(new, raw_type="file", raw_id="a.log"))
    status = shelf.index_status()
    assert (status.total, status.complete, _waiting(library)) == (0, True, set())
    world.drain(library)
    assert [hit.context.title for hit in shelf.search("mooring 4711", SearchFilter(), 1).hits] == [
        "Log"
    ]


def test_what_was_added_by_itself_comes_before_an_import(
    library: Library, world: ModuleType
) -> None:
    _import(library, world, 200)
    library.indexer.step()
    assert "m199" in _waiting(library)
    library.shelf(BOB).add(world.new_document("note", "a note of the day"))
    left = len(_waiting(library))
    library.indexer.step()
    assert "note" not in _waiting(library)
    assert len(_waiting(library)) == left - 1  # nothing of the import made it wait


def test_the_newest_comes_before_a_long_document_that_was_added_by_itself(
    library: Library, world: ModuleType
) -> None:
    world.add_many(library, "book", 100)
    library.shelf(ANN).add(world.new_document("note", "a note of the day"))
    library.indexer.step()
    assert "note" not in _waiting(library)


def test_an_import_and_the_oldest_get_on_however_much_is_added(
    library: Library, world: ModuleType
) -> None:
    _import(library, world, 10)
    world.add_many(library, "old", MOST_TEXTS)
    for number in range(20 * FAIR):
        world.add_many(library, f"n{number}", MOST_TEXTS)
        library.indexer.step()
        if _waiting(library).isdisjoint({"old", *(f"m{each}" for each in range(10))}):
            break
    assert _waiting(library).isdisjoint({"old", "m0", "m9"})


def test_priority_outlives_the_process(
    library_of: Callable[..., Library], tmp_path: Path, world: ModuleType
) -> None:
    library = library_of(world.HashEmbedder(), tmp_path / "data")
    _import(library, world, 100)
    library.shelf(ANN).add(world.new_document("note", "a note of the day"))
    library.close()
    again = library_of(world.HashEmbedder(), tmp_path / "data")
    again.indexer.step()
    assert "note" not in _waiting(again)
    assert "m0" in _waiting(again)


def test_another_process_that_works_on_an_import_embeds_it_first_too(
    library_of: Callable[..., Library],
    tmp_path: Path,
    world: ModuleType,
    other_process: Callable[[Path], Any],
) -> None:
    library = library_of(world.HashEmbedder(), tmp_path / "data")
    other = other_process(tmp_path / "data")
    _import(library, world, 100)
    library.shelf(ANN).add(world.new_document("note", "a note of the day"))
    assert other.ask("step") is True
    assert "note" not in _waiting(library)
    assert "m99" in _waiting(library)


def test_a_killed_import_is_embedded_by_who_is_left_and_nothing_twice(
    library_of: Callable[..., Library],
    tmp_path: Path,
    world: ModuleType,
    other_process: Callable[[Path], Any],
) -> None:
    library = library_of(world.HashEmbedder(), tmp_path / "data")
    other = other_process(tmp_path / "data")
    _import(library, world, 300)
    other.tell("drain")
    while len(_waiting(library)) > 200:  # it is in the middle
        pass
    other.kill()
    left = len(_waiting(library))
    library.shelf(ANN).add(world.new_document("note", "a note of the day"))
    world.drain(library)
    remembering: Any = library.models.current()[1]
    assert remembering.embedder.embedded == left + 1
    status = library.shelf(ANN).index_status()
    assert status.total == status.embedded == 301


def test_runs_grow_and_shrink_to_the_speed_of_the_embedder() -> None:
    now = 0.0
    pace = Pace(clock=lambda: now)
    for _ in range(5):
        with pace.timed(pace.texts):
            now += RUN_SECONDS / 10
    assert pace.texts == MOST_TEXTS
    with pace.timed(1):  # few texts say little about many
        now += RUN_SECONDS / 10
    assert pace.texts == MOST_TEXTS
    while pace.texts > 1:
        before = pace.texts
        with pace.timed(pace.texts):
            now += RUN_SECONDS * 2
        assert pace.texts < before
