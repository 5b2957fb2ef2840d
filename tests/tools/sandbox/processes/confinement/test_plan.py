"""Which paths programs see beside the root."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.sandbox.processes.confinement.bubblewrap import EtcCopy
from tools.sandbox.processes.confinement.plan import find_visible_paths, is_beneath


def test_private_places_are_not_visible() -> None:
    visible = find_visible_paths([])
    for place in ("/etc/shadow", "/etc/ssh", "/etc/sudoers", "/etc/ssl/private", "/var", "/run"):
        assert not visible.include(place), place
    for place in ("/root/.ssh", "/home", "/mnt", "/srv", "/boot", "/etc", "/"):
        assert not visible.include(place), place


def test_programs_and_the_interpreter_are_visible() -> None:
    visible = find_visible_paths([])
    for place in ("/usr/bin/env", "/bin/sh", sys.executable, sys.prefix, sys.base_prefix):
        assert visible.include(place), place


def test_what_lies_within_another_is_not_named_twice(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    visible = find_visible_paths(
        [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "link", tmp_path / "no"]
    )
    assert str(tmp_path / "a") in visible.readable
    assert str(tmp_path / "a" / "b") not in visible.readable
    assert (str(tmp_path / "link"), str(tmp_path / "a" / "b")) in visible.links
    assert not visible.include(str(tmp_path / "no"))


def test_the_home_is_spelled_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".nvm").mkdir()
    assert find_visible_paths([Path("~/.nvm")]).include(str(tmp_path / ".nvm"))


@pytest.mark.parametrize(
    ("path", "top", "beneath"),
    [("/a", "/a", True), ("/a/b", "/a", True), ("/ab", "/a", False), ("/a", "/", True)],
)
def test_a_path_is_beneath_by_whole_names(path: str, top: str, *, beneath: bool) -> None:
    assert is_beneath(path, top) is beneath


@pytest.mark.skipif(sys.platform != "linux", reason="it is for bubblewrap")
def test_the_copy_of_etc_has_what_programs_see_and_goes() -> None:
    copy = EtcCopy(find_visible_paths([]))
    assert Path(copy.path, "passwd").read_text() == Path("/etc/passwd").read_text()
    assert not Path(copy.path, "shadow").exists()
    assert not any(is_beneath(path, "/etc") for path in copy.others.readable)
    copy.close()
    assert not Path(copy.path).exists()
