"""Checks of the root directory, and its default."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def check_root(path: Path) -> Path:
    """Resolves and checks a root.

    Raises:
        ValueError: If it cannot be a root.
    """
    if not path.is_dir():  # checked first: a loop of links cannot be resolved
        raise ValueError("is not an existing directory")
    resolved = path.resolve()
    if resolved == Path(resolved.anchor):
        raise ValueError("is the whole file system; choose the directory that agents may work in")
    return resolved


def default_root(values: Mapping[str, Any]) -> Path:
    """Returns the working directory if it is a place for work, else `<data_dir>/files`.

    Desktop clients start servers in `/`, in the home directory or in the program's folder, none of
    which should be given to an agent.
    """
    fallback: Path = values["data_dir"] / "files"
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return fallback
    system = here == Path(here.anchor) or not os.access(here, os.W_OK)
    return fallback if system or _holds_home(here) else here


def _holds_home(path: Path) -> bool:
    return any(home.is_relative_to(path) for home in _homes())


def is_broad(path: Path) -> bool:
    """Returns whether a directory is or contains the user's home, under any name."""
    places = {each for home in _homes() for each in (home, *home.parents)}
    for each in (*places, Path("/home"), Path("/Users")):
        with suppress(OSError):
            if each.samefile(path):
                return True
    return False


def _homes() -> Iterator[Path]:
    """Yields the home from the environment, and the user's actual home."""
    with suppress(RuntimeError):  # the user has no home
        yield Path.home().resolve()
    with suppress(ImportError, KeyError):
        import pwd  # not on Windows

        yield Path(pwd.getpwuid(os.geteuid()).pw_dir).resolve()
