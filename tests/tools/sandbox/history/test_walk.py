from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from storage.keeping.changes.models import FileState, Observed
from tools.sandbox.history.history import Limits, differences, walk


def look(
    root: Path,
    known: Mapping[str, FileState] | None = None,
    *,
    is_after: bool = False,
    limits: Limits = Limits(),  # noqa: B008  # it cannot be changed
) -> Observed:
    fd = os.open(root, os.O_RDONLY)
    try:
        return walk(fd, known or {}, is_after=is_after, limits=limits)
    finally:
        os.close(fd)


def test_a_file_is_read_once_and_again_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    known = {name: state._replace(signature=_signed(path)) for name, state in files(tmp_path)}
    assert look(tmp_path, known).contents == {}
    path.write_text("two")
    assert len(look(tmp_path, known).contents) == 1


def files(root: Path) -> list[tuple[str, FileState]]:
    return list(look(root).files.items())


def _signed(path: Path) -> str:
    """The signature of a file that is settled."""
    status = path.stat()
    numbers = (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
    return ":".join(map(str, (*numbers, status.st_ctime_ns)))


def test_a_file_that_was_written_just_now_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    known = look(tmp_path).files
    assert known["a.txt"].signature == ""
    assert len(look(tmp_path, known).contents) == 1


def test_what_is_passed_over_is_named_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "a.log").write_text("log")
    (tmp_path / "node_modules/x").mkdir(parents=True)
    (tmp_path / "env").mkdir()
    (tmp_path / "env/pyvenv.cfg").write_text("home = /usr")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10_000_000_000)
    found = look(tmp_path)
    assert {path: state.why for path, state in found.files.items()} == {
        ".gitignore": "",
        "a.log": "ignored by git",
        "node_modules": "made by tools",
        "env": "made by tools",
        "link": "a link",
        "pipe": "no regular file",
        "sparse": "too large",
    }
    assert len(found.contents) == 1


def test_a_file_that_is_ignored_by_now_is_still_seen_after_a_program(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    path = tmp_path / "d/a.txt"
    path.write_text("one")
    known = look(tmp_path).files
    path.write_text("two")
    (tmp_path / ".gitignore").write_text("d/\n")
    assert look(tmp_path, known, is_after=True).files["d/a.txt"].state != known["d/a.txt"].state
    assert "d/a.txt" not in look(tmp_path, known).files


def test_a_flood_of_files_or_levels_crowds_out_nothing_above_it(tmp_path: Path) -> None:
    (tmp_path / "a_flood").mkdir()
    for number in range(2_001):
        (tmp_path / f"a_flood/{number}").touch()
    deep = tmp_path / "deep"
    for _ in range(70):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "x").touch()
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.py").write_text("main")
    found = look(tmp_path).files
    assert found["a_flood"].why == "too many files"
    assert found["src/main.py"].is_file
    assert [state.why for path, state in found.items() if path.startswith("deep")] == [
        "too many files"
    ]


def test_no_more_is_kept_than_the_bounds_allow(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(os.urandom(500_000))
    found = look(tmp_path, limits=Limits(content_bytes=1_000_000))
    assert [found.files[name].why for name in ("a", "b", "c")] == ["", "", "too many files"]
    assert [state.why for state in look(tmp_path, limits=Limits(entries=2)).files.values()] == [
        "too many files"
    ]


def test_a_flood_hides_no_change_of_what_was_known(tmp_path: Path) -> None:
    (tmp_path / "z.txt").write_text("one")
    known = look(tmp_path).files
    (tmp_path / "a.bin").write_bytes(os.urandom(500_000))
    (tmp_path / "z.txt").write_text("two")
    limits = Limits(content_bytes=500_001)
    changed = differences(known, look(tmp_path, known, is_after=True, limits=limits).files)
    assert [each.path for each in changed] == ["a.bin", "z.txt"]
    limits = Limits(entries=1)
    changed = differences(known, look(tmp_path, known, is_after=True, limits=limits).files)
    assert [each.path for each in changed] == ["z.txt"]


def test_nothing_in_a_root_that_was_too_large_is_taken_for_new(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "b.txt").touch()
    before = look(tmp_path, limits=Limits(entries=1)).files
    assert differences(before, look(tmp_path, before, is_after=True).files) == []


@pytest.mark.boundary
def test_a_directory_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("outside")
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "d/a.txt").write_text("inside")
    known = look(root).files
    (root / "d/a.txt").unlink()
    (root / "d").rmdir()
    (root / "d").symlink_to(outside)
    found = look(root, known, is_after=True)
    assert set(found.files) == {"d"}
    assert found.contents == {}
