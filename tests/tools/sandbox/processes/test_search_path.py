"""Where programs are found by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import VisiblePaths
from tools.sandbox.processes.models import Level
from tools.sandbox.processes.search_path import SearchPath


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
