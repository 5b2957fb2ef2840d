"""A record that is gone or damaged is told from a new library, with what can be restored."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import ModuleType

import pytest

from storage.database import Database
from storage.errors import BackupError, StorageUnavailableError
from storage.keeping.backup import back_up, restore
from storage.keeping.export import export_jsonl
from storage.keeping.lost import restorable
from storage.library import Library
from storage.models import Identity, SearchFilter


@pytest.fixture
def data(tmp_path: Path, world: ModuleType) -> Path:
    """A data directory with a document, its index and a backup."""
    data = tmp_path / "data"
    with closing(Library(data, world.HashEmbedder())) as library:
        library.shelf(Identity("ann")).add(world.new_document("d", "sourdough bread"))
        while library.indexer.step():
            pass
        (tmp_path / "kept").mkdir()
        back_up(library.database, tmp_path / "kept" / "a copy")
    return data


def state(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (Path.unlink, "missing"),
        (lambda record: record.write_bytes(b""), "empty"),
        (lambda record: record.write_bytes(b"no database " * 1000), "not a database"),
    ],
    ids=["missing", "empty", "garbage"],
)
def test_a_record_that_is_gone_is_an_error_that_names_the_backup(
    data: Path, harm: Callable[[Path], object], says: str, world: ModuleType
) -> None:
    harm(data / "toolcrib.db")
    before = state(data)
    with pytest.raises(StorageUnavailableError, match=says) as caught:
        Library(data, world.HashEmbedder())
    backup = data.parent / "kept" / "a copy"
    assert f"with 1 contexts: `toolcrib restore {backup} --force`" in " ".join(
        caught.value.suggestions
    )
    assert state(data) == before
    assert restore(backup, data, force=True)
    assert restorable(data / "toolcrib.db")[0].endswith(f"`toolcrib restore {backup} --force`.")
    with closing(Library(data, world.HashEmbedder())) as library:
        assert library.shelf(Identity("ann")).count(SearchFilter()) == 1


def test_what_a_first_start_leaves_is_no_lost_record(tmp_path: Path) -> None:
    """A first start that was killed left an empty file; tools make files before any record."""
    data = tmp_path / "data"
    (data / "files").mkdir(parents=True)
    (data / "chroma").mkdir()
    (data / "audit").write_text("{}")
    (data / "toolcrib.db").touch()
    Database(data / "toolcrib.db").close()
    assert restorable(data / "toolcrib.db") == []


def test_a_refused_restore_leaves_nothing(data: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    with closing(sqlite3.connect(data / "toolcrib.db")) as source:
        source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy = raw / "toolcrib.db"
    content = bytearray((data / "toolcrib.db").read_bytes())
    content[-8192:] = b"\xff" * 8192  # of which table, depends on the migrations
    copy.write_bytes(content)
    before = state(tmp_path)
    with pytest.raises(BackupError, match=r"damaged|malformed"):
        restore(copy, tmp_path / "new" / "deep" / "data")
    with pytest.raises(BackupError, match=r"damaged|malformed"):
        restore(copy, data, force=True)
    assert state(tmp_path) == before
    assert not (tmp_path / "new").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"data", "kept", "raw"}


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

ANN = Identity("ann")


@pytest.fixture(params=["full", "read-only"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, world: ModuleType) -> Iterator[Path]:
    """A data directory with a document, on a disk that takes nothing more."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with closing(Library(tmp_path / "data", world.HashEmbedder())) as library:
        library.shelf(ANN).add(world.new_document("d", "sourdough bread"))
        while library.indexer.step():
            pass
    options = ["-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if subprocess.run(["/bin/mount", *options], check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        shutil.copytree(tmp_path / "data", disk / "data")
        if request.param == "full":
            with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
                while filler.write(b"x" * 4096):
                    pass
        else:
            subprocess.run(["/bin/mount", "-o", "remount,ro", str(disk)], check=True)
        yield disk
    finally:
        subprocess.run(["/bin/umount", "-l", str(disk)], check=True)


def test_what_is_stored_is_read_and_a_write_says_why_not(
    disk: Path, tmp_path: Path, world: ModuleType
) -> None:
    with closing(Library(disk / "data", world.HashEmbedder())) as library:
        library.indexer.start()
        shelf = library.shelf(ANN)
        assert [
            hit.context.raw_id for hit in shelf.search("sourdough", SearchFilter(), 5).hits
        ] == ["d"]
        assert back_up(library.database, tmp_path / "copy").contexts == 1
        assert export_jsonl(library.database, tmp_path / "out", ANN) == 1
        with pytest.raises(StorageUnavailableError, match=r"No space|full|Read-only") as caught:
            shelf.add(world.new_document("e", "more"))
        assert (
            "disk space" in caught.value.suggestions[0]
            or "permission" in (caught.value.suggestions[0])
        )
        if (disk / "filler").exists():
            (disk / "filler").unlink()
            shelf.add(world.new_document("e", "there is room again"))
            assert shelf.count(SearchFilter()) == 2
