import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storage.errors import (
    ContextNotFoundError,
    DocumentNotFoundError,
    InvalidSourceError,
    StorageUnavailableError,
)
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, SearchFilter, TimeRange, Turn

ANN = Identity(user_id="ann")
PHONE = Identity(user_id="ann", device_id="phone")
BOB = Identity(user_id="bob")
LONG = "\n\n".join(f"# Part {part}\n\n" + f"word{part} " * 400 for part in range(4))


def _contents(library: Library, raw_id: str) -> list[str]:
    return [piece.content for piece in library.shelf(ANN).get_document("text", raw_id)[1]]


def test_a_new_version_replaces_the_earlier_and_keeps_when_it_was_first_added(
    shelf: Shelf, world: ModuleType
) -> None:
    first = shelf.add(world.new_document("n", "about herons"))
    second = shelf.add(world.new_document("n", "about kestrels"))
    assert (first.outcome, second.outcome) == ("added", "replaced")
    assert second.context.create_time == first.context.create_time
    assert second.context.update_time >= first.context.update_time
    assert shelf.search("herons", SearchFilter(), 5).hits == ()
    (hit,) = shelf.search("kestrels", SearchFilter(), 5).hits
    assert hit.context == second.context


def test_the_same_version_again_writes_nothing(shelf: Shelf, world: ModuleType) -> None:
    given: dict[str, Any] = {"entities": ("Una", " Duo ", ""), "metadata": {"a": [1]}}
    first = shelf.add(world.new_document("n", "about herons", **given))
    (piece,) = shelf.get_document("text", "n")[1]
    again = shelf.add(world.new_document("n", "about herons", **given))
    assert again.outcome == "unchanged"
    assert again.context == first.context
    assert shelf.get_document("text", "n")[1] == [piece]


@pytest.mark.parametrize(
    "changed",
    [
        {"title": "Other"},
        {"summary": "Other"},
        {"keywords": ("other",)},
        {"importance": 9.0},
        {"entities": ("Una",)},
        {"metadata": {"a": 1}},
        {"event_time": 5.0},
        {"media_type": "text/plain"},
        {"file_path": "other.md"},
        {"sha256": "other"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_is_known_of_a_document_makes_a_new_version(
    shelf: Shelf, world: ModuleType, changed: dict[str, Any]
) -> None:
    shelf.add(world.new_document("n", "about herons"))
    stored = shelf.add(world.new_document("n", "about herons", **changed))
    assert stored.outcome == "replaced"
    ((field, value),) = changed.items()
    assert getattr(stored.context, field) == value


def test_nobody_sees_a_replacement_half_done(library: Library, world: ModuleType) -> None:
    texts = [LONG.replace("word", word) for word in ("heron", "kestrel")]
    shelf = library.shelf(ANN)
    shelf.add(world.new_document("n", texts[0]))
    versions = set()
    for text in texts:
        shelf.add(world.new_document("whole", text))
        versions.add(tuple(_contents(library, "whole")))
    done = threading.Event()
    seen: set[tuple[str, ...]] = set()
    mixed: list[set[str]] = []

    def read() -> None:
        while not done.is_set():
            seen.add(tuple(_contents(library, "n")))
            hits = shelf.search("heron1 kestrel1", SearchFilter(), 100).hits
            words = {hit.chunk.content.split()[-1][:5] for hit in hits if hit.context.raw_id == "n"}
            if len(words) != 1:
                mixed.append(words)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20):
        shelf.add(world.new_document("n", texts[(number + 1) % 2]))
    done.set()
    reader.join()
    assert seen <= versions
    assert mixed == []


def test_a_progress_callback_that_raises_leaves_nothing(
    library: Library, shelf: Shelf, world: ModuleType
) -> None:
    shelf.add(world.new_document("n", "about herons"))
    told: list[tuple[int, int]] = []

    def give_up(done: int, total: int) -> None:
        told.append((done, total))
        if done == 2:
            raise KeyboardInterrupt

    for raw_id in ("n", "new"):
        with pytest.raises(KeyboardInterrupt):
            shelf.add(world.new_document(raw_id, LONG), give_up)
    assert told[:3] == [(0, told[0][1]), (1, told[0][1]), (2, told[0][1])]
    assert _contents(library, "n") == ["about herons"]
    with pytest.raises(DocumentNotFoundError):
        shelf.get_document("text", "new")
    assert shelf.index_status().total == 1


def test_a_full_disk_leaves_the_earlier_version(library: Library, world: ModuleType) -> None:
    shelf = library.shelf(ANN)
    shelf.add(world.new_document("n", "about herons"))
    with (
        library.database.read() as connection
    ):  # the one idle connection, which the next write takes
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageUnavailableError, match="full"):
        shelf.add(world.new_document("n", LONG * 20))
    assert _contents(library, "n") == ["about herons"]
    (hit,) = shelf.search("herons", SearchFilter(), 5).hits
    assert hit.context.raw_id == "n"


@pytest.mark.parametrize("text", ["", " ", "\n\t\n"])
def test_a_blank_text_is_refused(library: Library, world: ModuleType, text: str) -> None:
    with pytest.raises(InvalidSourceError, match="'blank' has no text"):
        library.shelf(ANN).add(world.new_document("blank", text))


def test_what_was_stored_is_there_after_opening_again(
    library_of: Callable[..., Library], world: ModuleType
) -> None:
    first = library_of(world.HashEmbedder())
    first.shelf(ANN).add(world.new_document("n", "about herons", entities=("Una",)))
    world.drain(first)
    first.close()
    second = library_of(world.HashEmbedder())
    (hit,) = second.shelf(ANN).search("herons", SearchFilter(entities=("una",)), 5).hits
    assert hit.dense is not None
    assert hit.context.entities == ("Una",)


@pytest.mark.usefixtures("everyone_indexed")
def test_everything_it_keeps_is_readable_by_its_owner_only(
    library_of: Callable[..., Library], world: ModuleType, tmp_path: Path
) -> None:
    earlier = os.umask(0o022)
    try:
        library = library_of(world.HashEmbedder())
        library.shelf(ANN).add(world.new_document("n", "about herons"))
        world.drain(library)
    finally:
        os.umask(earlier)
    for folder in (tmp_path / "data", tmp_path / "data" / "chroma"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "data" / "toolcrib.db").stat().st_mode) == 0o600


def test_threads_that_add_search_and_delete_at_once_end_in_order(
    library: Library, world: ModuleType
) -> None:
    library.indexer.start()
    failures: list[BaseException] = []

    def work(name: str) -> None:
        shelf = library.shelf(Identity(user_id=name))
        try:
            for number in range(15):
                shelf.add(world.new_document(f"n{number}", f"heron {name} {number}"))
                assert shelf.search(f"heron {name}", SearchFilter(), 5).hits
                if number % 2:
                    shelf.delete_document("text", f"n{number}")
        except BaseException as error:  # noqa: BLE001  # told to the test's own thread
            failures.append(error)

    workers = [threading.Thread(target=work, args=(f"user{number}",)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    library.indexer.stop()
    world.drain(library)
    assert failures == []
    for number in range(4):
        status = library.shelf(Identity(user_id=f"user{number}")).index_status()
        assert (status.total, status.embedded) == (8, 8)
    assert not (library.directory / "chroma").exists()


def _event(text: str, event_time: float = 0.0, **given: object) -> NewContext:
    return NewContext(
        context_type=ContextType.EVENT,
        title="",
        text=text,
        event_time=event_time,
        **given,  # type: ignore[arg-type]  # whatever a test gives
    )


def test_events_are_appended_however_alike_they_are(shelf: Shelf) -> None:
    stored = [shelf.add(_event("watered the beans", raw_type="log", raw_id="1")) for _ in range(2)]
    assert [each.outcome for each in stored] == ["added", "added"]
    assert len({each.context.id for each in stored}) == 2
    assert stored[0].context.time_bucket == "1970-01-01T00:00:00Z"
    assert stored[0].context.hierarchy_level == 0


@pytest.mark.parametrize("event_time", [-1e18, -62135596800.0, 253402300799.0, 1e18])
def test_an_event_may_lie_at_any_end_of_the_calendar(library: Library, event_time: float) -> None:
    stored = library.shelf(ANN).add(_event("far away", event_time))
    assert stored.context.event_time == event_time
    assert stored.context.time_bucket.endswith("Z")


def test_a_conversation_keeps_its_turns_apart(shelf: Shelf) -> None:
    turns = (Turn("Ann, 8 May 2023", "Where are the keys?"), Turn("Bob, 8 May 2023", "In the jar."))
    stored = shelf.add(NewContext(title="Keys", turns=turns, raw_type="chat", raw_id="1"))
    _, chunks = shelf.get(stored.context.id)
    assert [(each.heading, each.content) for each in chunks] == [
        (turn.heading, turn.content) for turn in turns
    ]
    assert chunks[1].start == len(turns[0].content) + 2
    (hit,) = shelf.search("jar", SearchFilter(), 1).hits
    assert hit.chunk.heading == "Bob, 8 May 2023"


def test_a_search_is_narrowed_to_kinds_and_levels(shelf: Shelf) -> None:
    shelf.add(NewContext(title="d", text="heron", raw_type="text", raw_id="d"))
    shelf.add(NewContext(context_type=ContextType.KNOWLEDGE, title="", text="heron facts"))
    shelf.add(_event("heron seen"))
    for kind in (ContextType.DOCUMENT, ContextType.KNOWLEDGE, ContextType.EVENT):
        only = SearchFilter(context_types=(kind,))
        (hit,) = shelf.search("heron", only, 5).hits
        assert hit.context.context_type is kind
        assert shelf.count(only) == 1
    assert shelf.count(SearchFilter(levels=(1, 2, 3))) == 2  # levels are about events alone
    assert shelf.count(SearchFilter(levels=(0,))) == 3


def test_keywords_and_summary_are_found_by_their_words(shelf: Shelf) -> None:
    shelf.add(_event("watered the beans", keywords=("garden",), summary="chores of spring"))
    for query in ("garden", "chores"):
        (hit,) = shelf.search(query, SearchFilter(), 1, alpha=0.0).hits
        assert hit.matched_terms == (query,)


def test_what_is_forgotten_is_gone_for_its_user_alone(library: Library) -> None:
    mine = library.shelf(ANN).add(_event("mine")).context.id
    phones = library.shelf(PHONE).add(_event("the phone's")).context.id
    bobs = library.shelf(BOB).add(_event("bob's")).context.id
    assert library.shelf(PHONE).forget([mine, bobs]) == 0
    assert library.shelf(ANN).forget([mine, phones, bobs, "no such"]) == 2
    for gone in (mine, phones):
        with pytest.raises(ContextNotFoundError, match=gone):
            library.shelf(ANN).get(gone)
    with pytest.raises(ContextNotFoundError):
        library.shelf(ANN).get(bobs)
    assert library.shelf(BOB).get(bobs)[0].id == bobs


def test_the_times_of_a_filter_hold_for_listings_too(shelf: Shelf) -> None:
    for moment in (0.0, 10.0, 20.0):
        shelf.add(_event(f"at {moment}", moment))
    within = SearchFilter(time_range=TimeRange(0, 10))
    assert sorted(each.event_time for each in shelf.contexts(within, 10)) == [0.0, 10.0]
    assert [each.event_time for each in shelf.contexts(within, 1, 1)] == [0.0]
