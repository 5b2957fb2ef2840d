from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tools.functions.pythons import find_python, our_own, running_satisfies, version_of

RUNNING = "{}.{}.{}".format(*sys.version_info[:3])


@pytest.fixture
def launcher(tmp_path: Path) -> Callable[[str, str], Path]:
    """Puts a program on a PATH that prints what is given, or fails if that is empty."""

    def make(name: str, printed: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{f'echo {printed}' if printed else 'exit 127'}\n")
        path.chmod(0o755)
        return path

    return make


def test_our_own_versions_are_those_of_the_distribution() -> None:
    assert running_satisfies(our_own())
    assert not our_own().contains("3.10.4")


@pytest.mark.anyio
async def test_an_interpreter_tells_its_version() -> None:
    assert await version_of(Path(sys.executable), {}) == RUNNING


@pytest.mark.anyio
@pytest.mark.parametrize("printed", ["", "nonsense", "3.11"])
async def test_what_is_no_interpreter_has_no_version(
    launcher: Callable[[str, str], Path], printed: str
) -> None:
    assert await version_of(launcher("python3", printed), {}) is None
    assert await version_of(Path("/nowhere/python3"), {}) is None


@pytest.mark.anyio
async def test_the_running_interpreter_is_preferred(launcher: Callable[[str, str], Path]) -> None:
    path = launcher("python3.99", "3.99.0").parent
    assert await find_python(our_own(), {"PATH": str(path)}) == Path(sys.executable)


@pytest.mark.anyio
async def test_the_newest_that_satisfies_and_runs_is_taken(
    launcher: Callable[[str, str], Path], tmp_path: Path
) -> None:
    launcher("first/python3.98", "")  # as a version manager leaves them
    launcher("first/python3.97", "3.97.2")
    launcher("first/python3.97-config", "3.98.0")
    launcher("second/python3.99", "3.99.0")
    wanted = launcher("second/python3.98", "3.98.1")
    path = os.pathsep.join(["/nowhere", "", str(tmp_path / "first"), str(tmp_path / "second")])
    assert await find_python(SpecifierSet(">=3.90,<3.99"), {"PATH": path}) == wanted


@pytest.mark.anyio
async def test_none_is_found_where_none_satisfies(launcher: Callable[[str, str], Path]) -> None:
    path = launcher("python3.99", "3.99.0").parent
    assert await find_python(SpecifierSet(">=4"), {"PATH": str(path)}) is None
    assert await find_python(SpecifierSet(">=4"), {}) is None
