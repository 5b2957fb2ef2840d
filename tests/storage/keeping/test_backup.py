"""Backups: whole, private, checked, and the same searches after the way back."""

import os
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storage.database import Database
from storage.errors import BackupError, SchemaVersionError, StorageUnavailableError
from storage.keeping.backup import back_up, restore
from storage.keeping.examination import damage
from storage.library import Library
from storage.models import Identity, NewEntry, SearchFilter

ANN = Identity(user_id="ann")
BOB = Identity(user_id="bob")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def found(library: Library, query: str, identity: Identity = ANN) -> list[tuple[object, ...]]:
    """Everything that a search tells of its hits."""
    result = library.shelf(identity).search(query, SearchFilter(), 5)
    return [
        (
            hit.context.id,
            hit.chunk.position,
            hit.chunk.content,
            # Scaled by the least similar of a hundred candidates, of which a rebuilt graph of
            # nearest neighbours may miss another one.
            pytest.approx(hit.score, abs=0.01),
            hit.dense,
            hit.lexical,
            hit.matched_terms,
        )
        for hit in result.hits
    ]


@pytest.fixture(scope="module")
def full_directory(world: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory of two people, one with more vectors than are compared one by one."""
    directory = tmp_path_factory.mktemp("full") / "data"
    library = Library(directory, world.HashEmbedder())
    world.add_many(library, "a", 2300)
    world.add_many(library, "b", 30, BOB)
    library.shelf(ANN).people.save_profile(summary="Ann sails.")
    world.drain(library)
    library.close()
    return directory


@pytest.fixture
def data(full_directory: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(full_directory, tmp_path / "data"))


@pytest.fixture(scope="module")
def backup(full_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("backups") / "toolcrib.backup"
    with closing(Database(full_directory / "toolcrib.db")) as database:
        back_up(database, target)
    return target


@pytest.fixture
def small(tmp_path: Path, world: ModuleType, library_of: Callable[..., Library]) -> Library:
    library = library_of(world.HashEmbedder())
    library.shelf(ANN).add(world.new_document("one", "a first text"))
    return library


def test_the_same_searches_give_the_same_results_after_a_restore(
    data: Path, backup: Path, tmp_path: Path, world: ModuleType, library_of: Callable[..., Library]
) -> None:
    before = library_of(world.HashEmbedder(), data)
    assert restore(backup, tmp_path / "restored") is None
    embedder = world.HashEmbedder()
    after = library_of(embedder, tmp_path / "restored")
    queries = [world.content_of("a", number) for number in (0, 77, 1234, 2299)]
    queries += ["ax5", "ay100 az14"]
    at_once = [found(after, query) for query in queries]
    after.indexer.consulted()
    world.drain(after)
    assert not after.indexer.step()
    for query, early in zip(queries, at_once, strict=True):
        assert found(after, query) == early == found(before, query) != []
    assert found(after, "bx3", BOB) == found(before, "bx3", BOB) != []
    assert after.shelf(ANN).people.profile() == before.shelf(ANN).people.profile()
    assert embedder.embedded == 0


def test_recorded_calls_are_in_a_backup_and_still_know_what_they_told_of(
    small: Library, tmp_path: Path, world: ModuleType, library_of: Callable[..., Library]
) -> None:
    (context,) = small.shelf(ANN).contexts(SearchFilter(), 1)
    told = NewEntry(
        session_id="s",
        kind="call",
        time=1.0,
        action="add_document",
        target="one",
        context_ids=(context.id,),
    )
    seq = small.entries.record(ANN, told)
    back_up(small.database, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "restored")
    restored = library_of(world.HashEmbedder(), tmp_path / "restored")
    assert restored.entries.get(ANN, [seq]) == small.entries.get(ANN, [seq])
    restored.shelf(ANN).forget([context.id])
    assert [entry.tells for entry in restored.entries.get(ANN, [seq])] == [False]
    with restored.database.read() as connection:
        assert damage(connection) == ""


def test_what_waits_to_be_embedded_is_in_a_backup(
    small: Library, tmp_path: Path, world: ModuleType, library_of: Callable[..., Library]
) -> None:
    made = back_up(small.database, tmp_path / "copy")
    assert (made.contexts, made.size) == (1, (tmp_path / "copy").stat().st_size)
    restore(tmp_path / "copy", tmp_path / "restored")
    restored = library_of(world.HashEmbedder(), tmp_path / "restored")
    assert restored.shelf(ANN).index_status().embedded == 0
    world.drain(restored)
    assert restored.shelf(ANN).index_status().complete


def test_a_backup_is_one_private_file_that_can_be_read_where_nothing_can_be_written(
    backup: Path,
) -> None:
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert names_in(backup.parent) == [backup.name]
    with closing(sqlite3.connect(f"{backup.as_uri()}?mode=ro&immutable=1", uri=True)) as copy:
        assert copy.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
        assert copy.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert copy.execute("SELECT count(*) FROM chunks").fetchone()[0] == 2331  # one of a card


def test_a_write_during_a_backup_is_not_kept_waiting_and_not_in_it(
    data: Path, tmp_path: Path, world: ModuleType, library_of: Callable[..., Library]
) -> None:
    library = library_of(world.HashEmbedder(), data)
    reports = []

    def write(done: int, total: int) -> None:
        reports.append((done, total))
        with closing(sqlite3.connect(data / "toolcrib.db", timeout=0)) as other:
            other.execute("INSERT INTO meta VALUES (?, 'written meanwhile')", (str(done),))
            other.commit()

    database = Database(data / "toolcrib.db")
    pages = database.path.stat().st_size // 4096
    back_up(database, tmp_path / "copy", on_copied=write)
    database.close()
    assert len(reports) == len(set(reports)) == -(-pages // 1024)  # it did not start over
    assert reports[-1] == (reports[-1][1], reports[-1][1])
    with closing(sqlite3.connect(tmp_path / "copy")) as copy:
        query = "SELECT count(*) FROM meta WHERE value = 'written meanwhile'"
        assert copy.execute(query).fetchone()[0] == 0
    assert found(library, "ax5") != []


def test_an_earlier_file_is_replaced_by_force_alone(small: Library, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    target.write_text("mine")
    with pytest.raises(BackupError, match="copy exists") as caught:
        back_up(small.database, target)
    assert "--force" in caught.value.suggestions[0]
    assert target.read_text() == "mine"
    back_up(small.database, target, force=True)
    assert target.read_bytes().startswith(b"SQLite format 3")
    assert names_in(tmp_path) == ["copy", "data"]


def test_a_file_that_appears_meanwhile_is_not_replaced(small: Library, tmp_path: Path) -> None:
    target = tmp_path / "copy"

    def take_the_name(*_: int) -> None:
        target.write_text("mine")

    with pytest.raises(BackupError, match="exists"):
        back_up(small.database, target, on_copied=take_the_name)
    assert target.read_text() == "mine"
    assert names_in(tmp_path) == ["copy", "data"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("data/copy", "inside the data directory"),
        ("data/deeper/../copy", "inside the data directory"),
        ("data/toolcrib.db", "inside the data directory"),
        ("folder", "is a directory"),
        ("nowhere/copy", "No such file or directory"),
        ("file/copy", "Not a directory"),
        ("n" * 300, "File name too long"),
    ],
)
def test_a_place_that_cannot_take_a_backup_is_refused_and_left_as_it_is(
    small: Library, tmp_path: Path, name: str, says: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "data" / "deeper").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BackupError, match=says):
        back_up(small.database, tmp_path / name, force=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_backup_that_is_broken_off_leaves_nothing(small: Library, tmp_path: Path) -> None:
    def give_up(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(small.database, tmp_path / "copy", on_copied=give_up)
    assert names_in(tmp_path) == ["data"]
    small.shelf(ANN).forget([])  # the record can be written


def test_a_disk_that_fills_up_leaves_nothing(
    data: Path, tmp_path: Path, full_disk: Callable[[int], AbstractContextManager[None]]
) -> None:
    (tmp_path / "disk").mkdir()
    with (
        closing(Database(data / "toolcrib.db")) as database,
        full_disk(500_000),
        pytest.raises(BackupError, match=r"full|I/O error|too large") as caught,
    ):
        back_up(database, tmp_path / "disk" / "copy")
    assert str(tmp_path / "disk" / "copy") in caught.value.message
    assert names_in(tmp_path / "disk") == []


def test_a_damaged_record_makes_no_backup(data: Path, tmp_path: Path) -> None:
    with (data / "toolcrib.db").open("r+b") as file:
        file.seek(200 * 4096)
        file.write(random.Random(1).randbytes(400 * 4096))  # noqa: S311  # any bytes
    with (
        closing(Database(data / "toolcrib.db")) as database,
        pytest.raises((BackupError, StorageUnavailableError), match=r"damaged|malformed"),
    ):
        back_up(database, tmp_path / "copy")
    assert names_in(tmp_path) == ["data"]


def not_there(path: Path) -> None:
    path.unlink()


def other_bytes(path: Path) -> None:
    path.write_bytes(b"no database " * 1000)


def no_bytes(path: Path) -> None:
    path.write_bytes(b"")


def other_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE meta (key, value)")
        other.commit()


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def damaged(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(200 * 4096)
        file.write(random.Random(1).randbytes(400 * 4096))  # noqa: S311  # any bytes


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    "harm", [not_there, other_bytes, no_bytes, other_database, cut_short, damaged]
)
def test_what_is_no_sound_backup_is_refused_and_nothing_changes(
    backup: Path, tmp_path: Path, harm: Callable[[Path], None], force: bool
) -> None:
    bad = Path(shutil.copy(backup, tmp_path / "bad"))
    harm(bad)
    target = tmp_path / "data"
    if force:
        target.mkdir()
        (target / "mine").write_text("mine")
    with pytest.raises(BackupError, match=r"not a Toolcrib backup|cannot be restored|damaged"):
        restore(bad, target, force=force)
    left = [path.name for path in target.iterdir()] if target.exists() else []
    assert left == (["mine"] if force else [])
    assert {path.name for path in tmp_path.iterdir()} <= {"bad", "data"}


@pytest.mark.parametrize("version", [24, 999])
def test_a_backup_of_another_schema_is_refused(backup: Path, tmp_path: Path, version: int) -> None:
    other = Path(shutil.copy(backup, tmp_path / "other"))
    with closing(sqlite3.connect(other)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(SchemaVersionError, match=f"schema {version}"):
        restore(other, tmp_path / "data")
    assert names_in(tmp_path) == ["other"]


def test_a_directory_that_is_not_empty_is_refused_or_moved_aside_whole(
    small: Library, backup: Path, tmp_path: Path, world: ModuleType
) -> None:
    data = small.directory
    small.close()
    with pytest.raises(BackupError, match="is not empty"):
        restore(backup, data)
    kept = {path.name: path.read_bytes() for path in data.iterdir() if path.is_file()}
    aside = restore(backup, data, force=True)
    assert aside is not None
    assert aside.parent == tmp_path
    assert {path.name: path.read_bytes() for path in aside.iterdir() if path.is_file()} == kept
    with closing(Library(data, world.HashEmbedder())) as restored:
        titles = {context.raw_id for context in restored.shelf(ANN).contexts(SearchFilter(), 9)}
        assert titles == {"a"}
    assert restore(backup, data, force=True) not in {aside, None}


def test_what_a_killed_restore_left_does_not_make_a_directory_taken(
    backup: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / ".toolcrib-0123456789abcdef.tmp").write_text("half")
    (data / ".toolcrib-0123456789abcdef.tmp-journal").write_text("half")
    assert restore(backup, data) is None
    assert (data / "toolcrib.db").exists()


def test_a_server_on_the_directory_that_was_moved_aside_says_to_be_restarted(
    small: Library, backup: Path, world: ModuleType
) -> None:
    restore(backup, small.directory, force=True)
    with pytest.raises(StorageUnavailableError, match="replaced") as caught:
        small.shelf(ANN).add(world.new_document("two", "a second text"))
    assert caught.value.suggestions == ("Restart Toolcrib.",)


def test_a_restored_directory_is_private(backup: Path, tmp_path: Path) -> None:
    restore(backup, tmp_path / "deep" / "data")
    assert stat.S_IMODE((tmp_path / "deep" / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "deep" / "data" / "toolcrib.db").stat().st_mode) == 0o600


def test_a_raw_copy_with_its_log_is_restored_too(
    small: Library, tmp_path: Path, library_of: Callable[..., Any], world: ModuleType
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("toolcrib.db", "toolcrib.db-wal"):
        shutil.copy(small.directory / name, copy / name)
    restore(copy / "toolcrib.db", tmp_path / "restored")
    restored = library_of(world.HashEmbedder(), tmp_path / "restored")
    assert len(found(restored, "first text")) == 1
