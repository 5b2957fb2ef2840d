"""Directories and files swapped for links while searches run.

Each swapper is first shown to get a naive search out of the root, so that a race that does not
race cannot pass for a search that holds.
"""

import ctypes
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pytest

from tools.core.errors import ToolError
from tools.sandbox.search.search import Scope

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "renameat2"), reason="the swapper needs Linux"
)

FILES = 40
"""Files in the directory that is swapped: each is one try of a search."""

SWAPS = """
import ctypes, os

libc = ctypes.CDLL(None)

def exchange(one, other):
    if libc.renameat2(-100, one.encode(), -100, other.encode(), 2):
        raise OSError("renameat2")

def swap_directory(home):
    \"\"\"The directory "a" becomes a link that leads out, and a directory again.\"\"\"
    exchange(home + "/root/a", home + "/root/z")

def swap_files(home):
    \"\"\"Each file in "a" becomes a link that leads out, and a file again.\"\"\"
    for number in range(40):
        exchange(home + f"/root/a/{number}", home + f"/links/{number}")

def move_out(home):
    \"\"\"The directory "a/b" moves out of the root and back.\"\"\"
    os.rename(home + "/root/a/b", home + "/outside/moved")
    os.rename(home + "/outside/moved", home + "/root/a/b")
"""

Swapping = Callable[[Path, str], AbstractContextManager[None]]


@pytest.fixture
def home(root: Path) -> Path:
    home = root.parent
    for directory in ("root/a/b", "outside/b", "links"):
        (home / directory).mkdir(parents=True)
    for number in range(FILES):
        (home / "root" / "a" / str(number)).write_text("inside\n")
        (home / "outside" / str(number)).write_text("outside\n")
        (home / "links" / str(number)).symlink_to(home / "outside" / str(number))
    (home / "root" / "a" / "b" / "file").write_text("inside\n")
    (home / "outside" / "b" / "file").write_text("outside\n")
    (home / "outside" / "private").write_text("outside\n")
    (home / "root" / "z").symlink_to("../outside")
    return home


def naive_search_escapes(home: Path) -> bool:
    """What many tools do: walk without following links, look at each file, open it by its path."""
    for _ in range(20_000):
        for directory, _names, files in os.walk(home / "root"):
            for name in files:
                path = Path(directory, name)
                with suppress(OSError):
                    if not path.is_symlink() and path.read_text() == "outside\n":
                        return True
    return False


SWAPPERS = ["swap_directory", "swap_files"]


@pytest.mark.parametrize("swap", SWAPPERS)
def test_the_swapper_gets_a_naive_search_out(home: Path, swap: str, swapping: Swapping) -> None:
    with swapping(home, swap):
        assert naive_search_escapes(home)


def search_while_swapping(searcher: Any, tries: int) -> tuple[int, int]:
    """Counts the tries, and what was found inside; raises where anything is from outside."""
    done = inside = 0
    while done < tries or not inside:
        done += FILES
        for path in (".", "a"):
            with suppress(ToolError):
                found = searcher.grep("^(in|out)side$", Scope(path=path))
                assert {item["text"] for item in found.items} <= {"inside"}
                inside += len(found.items)
        with suppress(ToolError):
            shown = searcher.glob(Scope(names="**"))
            assert not [item for item in shown.items if item["path"].endswith("private")]
    return done, inside


@pytest.mark.parametrize("tries", [1_000, pytest.param(100_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("swap", [*SWAPPERS, "move_out"])
def test_no_search_escapes_while_links_are_swapped(
    searcher: Any, home: Path, swap: str, tries: int, swapping: Swapping
) -> None:
    with swapping(home, swap):
        done, inside = search_while_swapping(searcher, tries)
    assert done >= tries
    assert inside > 0
