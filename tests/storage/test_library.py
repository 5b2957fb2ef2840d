from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storage.errors import (
    DocumentNotFoundError,
    InvalidSourceError,
    StorageUnavailableError,
)
from storage.library import Library
from storage.models import Identity, SearchFilter

ANN = Identity(user_id="ann")
LONG = "\n\n".join(f"# Part {part}\n\n" + f"word{part} " * 400 for part in range(4))


def _contents(library: Library, raw_id: str) -> list[str]:
    return [piece.content for piece in library.shelf(ANN).get_document("text", raw_id)[1]]


def test_a_new_version_replaces_the_earlier_and_keeps_when_it_was_first_added(
    library: Library, world: ModuleType
) -> None:
    shelf = library.shelf(ANN)
    first = shelf.add(world.new_document("n", "about herons"))
    second = shelf.add(world.new_document("n", "about kestrels"))
    assert (first.outcome, second.outcome) == ("added", "replaced")
    assert second.context.create_time == first.context.create_time
    assert second.context.update_time >= first.context.update_time
    assert shelf.search("herons", SearchFilter(), 5).hits == ()
    (hit,) = shelf.search("kestrels", SearchFilter(), 5).hits
    assert hit.context == second.context


def test_the_same_version_again_writes_nothing(library: Library, world: ModuleType) -> None:
    shelf = library.shelf(ANN)
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
    library: Library, world: ModuleType, changed: dict[str, Any]
) -> None:
    shelf = library.shelf(ANN)
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
    library: Library, world: ModuleType
) -> None:
    shelf = library.shelf(ANN)
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
        assert library.vectors.count(1, f"user{number}") == 8
