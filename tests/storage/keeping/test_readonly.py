"""A full or a read-only disk is read, searched, exported and backed up; writes say why not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import ModuleType

import pytest

from storage.errors import StorageUnavailableError
from storage.keeping.backup import back_up
from storage.keeping.export import export_jsonl
from storage.library import Library
from storage.models import Identity, SearchFilter

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
