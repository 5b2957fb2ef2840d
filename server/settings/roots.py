"""Which directories can be the root."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def check_root(path: Path) -> Path:
    """Returns a root with its links resolved.

    Raises:
        ValueError: If it is none.
    """
    if not path.is_dir():  # before it is resolved, which a loop of links cannot be
        raise ValueError("is not an existing directory")
    resolved = path.resolve()
    if resolved == Path(resolved.anchor):
        raise ValueError("is the whole file system; choose the directory that agents may work in")
    return resolved


def default_root(values: Mapping[str, Any]) -> Path:
    """The working directory if somebody works there, else `<data_dir>/files`.

    Clients with a window start their servers in `/`, in the home directory or in the folder of the
    program: none of them is meant to be handed to an agent.
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
    """Whether a directory is the user's home, or holds it, under whatever name."""
    places = {each for home in _homes() for each in (home, *home.parents)}
    for each in (*places, Path("/home"), Path("/Users")):
        with suppress(OSError):
            if each.samefile(path):
                return True
    return False


def _homes() -> Iterator[Path]:
    """Yields the home that the environment names, and that of the user in fact."""
    with suppress(RuntimeError):  # the user has none
        yield Path.home().resolve()
    with suppress(ImportError, KeyError):
        import pwd  # not on Windows

        yield Path(pwd.getpwuid(os.geteuid()).pw_dir).resolve()
