"""What is deleted is gone from the disk: from the record, its log and the vector index's files."""

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from storage.keeping.erasure import LARGEST_BYTES, erase, is_due
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, SearchFilter
from storage.people.models import NewEntity

KINDS = [kind for kind in ContextType if not kind.is_card]
ANN = Identity(user_id="ann")


def remains(directory: Path, marks: list[str]) -> dict[str, set[str]]:
    """The marks that stand anywhere in a directory's files, by file."""
    found: dict[str, set[str]] = {}
    for path in directory.rglob("*"):
        if path.is_file():
            data = path.read_bytes().lower()
            if here := {mark for mark in marks if mark.encode() in data}:
                found[path.name] = here
    return found


def marked(kind: ContextType, number: int, chance: random.Random) -> tuple[NewContext, list[str]]:
    """A context with a mark of its own in each of its fields, and the marks."""
    marks = {
        field: f"zq{field}{number:05d}{chance.getrandbits(40):010x}"
        for field in ("title", "text", "summary", "keyword", "name", "value", "source", "heading")
    }
    filler = "wind and rope " * chance.choice([0, 3, 40, 400])
    text = f"# {marks['heading']}\n\n{filler}{marks['text']} {filler}"
    return NewContext(
        context_type=kind,
        title=marks["title"],
        text=text,
        markdown=True,
        summary=marks["summary"],
        keywords=(marks["keyword"],),
        entities=(marks["name"],),
        metadata={"kept": marks["value"]},
        raw_type="test",
        raw_id=marks["source"],
        file_path=f"notes/{marks['source']}.md",
    ), list(marks.values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_no_byte_of_what_was_deleted_is_on_the_disk(
    library: Library, shelf: Shelf, world: ModuleType, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311  # any mixture
    kept: dict[str, list[str]] = {}
    gone: list[str] = []
    for number in range(250):
        new, marks = marked(chance.choice(KINDS), number, chance)
        kept[shelf.add(new).context.id] = marks
        if chance.random() < 0.1:
            world.drain(library)
        if chance.random() < 0.5:
            doomed = chance.choice(list(kept))
            if shelf.forget([doomed]):
                gone += kept.pop(doomed)
    world.drain(library)
    assert erase(library.database)
    stored = {context.id for context in shelf.contexts(SearchFilter(), 1000)}
    assert gone
    assert remains(library.directory, gone) == {}
    told = [mark for each, marks in kept.items() if each in stored for mark in marks]
    assert remains(library.directory, told) != {}  # this is how they would be found


def test_an_earlier_version_of_a_document_is_not_on_the_disk(
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
    shelf.add(world.new_document("one", "the zqfirst version " * 500, title="zqearlier"))
    world.drain(library)
    shelf.add(world.new_document("one", "the zqsecond version", title="zqlater"))
    world.drain(library)
    assert library.database.fold_log()
    assert remains(library.directory, ["zqfirst", "zqearlier"]) == {}
    assert set.union(*remains(library.directory, ["zqsecond", "zqlater"]).values()) == {
        "zqsecond",
        "zqlater",
    }


def test_an_entity_that_was_deleted_is_not_on_the_disk(library: Library) -> None:
    people = library.shelf(ANN).people
    people.save_entity(NewEntity(name="Zqname", summary="zqsummary", aliases=("Zqalias",)))
    assert library.database.fold_log()
    assert remains(library.directory, ["zqname", "zqsummary", "zqalias"]) != {}
    people.delete_entity("Zqname")
    assert library.database.fold_log()
    assert remains(library.directory, ["zqname", "zqsummary", "zqalias"]) == {}


@pytest.mark.usefixtures("everyone_indexed")
def test_the_vector_index_never_holds_a_text(
    library: Library, world: ModuleType, library_of: Callable[..., Library]
) -> None:
    library.shelf(ANN).add(world.new_document("one", "zqtext " * 50, title="zqtitle"))
    world.drain(library)
    assert library.vectors.count(1, "ann") == 1
    assert remains(library.directory / "chroma", ["zqtext", "zqtitle"]) == {}


def test_the_file_is_written_anew_after_deletions_alone_and_not_all_the_time(
    library: Library, shelf: Shelf, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.add(world.new_document("one", "a text"))
    assert not is_due(library.database)
    shelf.add(world.new_document("one", "another text"))
    assert is_due(library.database)
    with monkeypatch.context() as small:
        small.setattr("storage.keeping.erasure.LARGEST_BYTES", 1000)
        assert not is_due(library.database)
    assert library.database.path.stat().st_size < LARGEST_BYTES
    erase(library.database)
    assert not is_due(library.database)
    shelf.delete_document("text", "one")
    assert not is_due(library.database)  # an hour has not passed
    with monkeypatch.context() as later:
        later.setattr("storage.keeping.erasure.ERASE_SECONDS", -1)
        assert is_due(library.database)


def test_what_is_deleted_while_the_file_is_written_is_for_the_next_time(
    library: Library, shelf: Shelf, world: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        shelf.add(world.new_document(name, "a text"))
    shelf.delete_document("text", "one")
    compact = library.database.compact

    def delete_after() -> None:
        compact()
        shelf.delete_document("text", "two")

    monkeypatch.setattr(library.database, "compact", delete_after)
    monkeypatch.setattr("storage.keeping.erasure.ERASE_SECONDS", -1)
    erase(library.database)
    assert is_due(library.database)


def test_the_background_thread_erases(library: Library, shelf: Shelf, world: ModuleType) -> None:
    shelf.add(world.new_document("one", "the zqfirst version"))
    shelf.delete_document("text", "one")
    log = library.directory / "toolcrib.db-wal"
    assert log.stat().st_size > 0
    library.indexer.start()
    while log.stat().st_size or is_due(library.database):
        pass
    library.indexer.stop()
    assert remains(library.directory, ["zqfirst"]) == {}


def test_a_log_that_another_reads_stays_and_is_emptied_later(
    library: Library, world: ModuleType
) -> None:
    library.shelf(ANN).add(world.new_document("one", "a text"))
    with library.database.read() as connection:
        connection.execute("SELECT count(*) FROM chunks").fetchone()
        library.shelf(ANN).delete_document("text", "one")
        assert not library.database.fold_log()
    assert library.database.fold_log()
    assert library.database.fold_log()  # there is nothing more to do
