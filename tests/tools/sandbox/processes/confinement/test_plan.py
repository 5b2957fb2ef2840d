"""Which paths programs see in addition to the root, and where programs are found by name."""

import sys
from pathlib import Path

import pytest

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.bubblewrap import EtcCopy
from tools.sandbox.processes.confinement.plan import (
    SearchPath,
    VisiblePaths,
    find_visible_paths,
    is_beneath,
)
from tools.sandbox.processes.models import Level


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


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory in which `visible/bin` has a program that `hidden` and `root` link to."""
    top = tmp_path.resolve()
    for folder in ("visible", "hidden", "root"):
        (top / folder).mkdir()
    program = top / "visible" / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for folder in ("hidden", "root"):
        (top / folder / "program").symlink_to(program)
    return top


def found(place: Path, *folders: str) -> str:
    path = ":".join(str(place / each) for each in folders)
    visible = VisiblePaths(readable=(str(place / "visible"),), links=())
    return SearchPath(path, str(place / "root"), visible).find("program", Level.BUBBLEWRAP)


def test_a_link_in_a_directory_that_programs_do_not_see_is_passed_over(place: Path) -> None:
    assert found(place, "hidden", "visible") == str(place / "visible" / "program")
    with pytest.raises(UnavailableError, match=f"is in {place}/hidden, which programs cannot see"):
        found(place, "hidden")


def test_a_link_in_the_root_is_not_found_by_name_wherever_it_leads(place: Path) -> None:
    assert found(place, "root", "visible") == str(place / "visible" / "program")
    with pytest.raises(UnavailableError, match="is not installed"):
        found(place, "root")


def test_the_directory_of_the_interpreter_is_searched_last(place: Path) -> None:
    visible = VisiblePaths(readable=(sys.prefix, sys.base_prefix), links=())
    path = SearchPath(str(place / "visible"), str(place / "root"), visible)
    assert path.find(Path(sys.executable).name, Level.NONE) == sys.executable
