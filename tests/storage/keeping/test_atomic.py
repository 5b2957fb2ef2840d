import errno
import os
from pathlib import Path

import pytest

from storage.keeping.atomic import atomic_file, atomic_folder, is_temporary


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_not_there_before_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with atomic_file(target, replace=False) as temporary:
        temporary.write_text("whole")
        assert is_temporary(temporary)
        assert not target.exists()
    assert target.read_text() == "whole"
    assert names_in(tmp_path) == ["file"]


@pytest.mark.parametrize("taken", [False, True])
def test_a_disk_without_links_takes_a_file_where_nothing_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    target = tmp_path / "file"

    def arrive() -> None:
        with atomic_file(target, replace=False) as temporary:
            temporary.write_text("mine")
            if taken:
                target.write_text("another's")

    if taken:
        with pytest.raises(FileExistsError):
            arrive()
    else:
        arrive()
    assert target.read_text() == ("another's" if taken else "mine")
    assert names_in(tmp_path) == ["file"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("another's")
    (tmp_path / "link").symlink_to("other")
    with atomic_file(tmp_path / "link", replace=True) as temporary:
        temporary.write_text("mine")
    assert (tmp_path / "other").read_text() == "another's"
    assert (tmp_path / "link").read_text() == "mine"
    assert not (tmp_path / "link").is_symlink()


def test_what_sqlite_puts_beside_a_file_goes_with_it(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "file", replace=False) as temporary:
        for ending in ("-journal", "-wal", "-shm"):
            temporary.with_name(temporary.name + ending).touch()
            assert is_temporary(temporary.with_name(temporary.name + ending))
    assert names_in(tmp_path) == ["file"]


@pytest.mark.parametrize("full", [False, True])
def test_a_folder_takes_the_place_of_an_empty_one_alone(tmp_path: Path, full: bool) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    if full:
        (target / "mine").touch()

    def arrive() -> None:
        with atomic_folder(target) as temporary:
            (temporary / "new").touch()

    if full:
        with pytest.raises(OSError, match="not empty"):
            arrive()
    else:
        arrive()
    assert names_in(target) == (["mine"] if full else ["new"])
    assert names_in(tmp_path) == ["folder"]


@pytest.mark.parametrize(
    "name",
    ["notes.md", ".toolcrib-1.tmp", ".toolcrib-0123456789ABCDEF.tmp", ".toolcrib-0123456789abcdef"],
)
def test_other_names_are_not_ours(name: str) -> None:
    assert not is_temporary(Path(name))
