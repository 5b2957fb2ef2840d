"""Finds the project that a directory belongs to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_POINTER_BYTES = 4_096  # of a `.git` file, which names the directory of a worktree or submodule


@dataclass(frozen=True, slots=True)
class Project:
    """A project: a git repository, all worktrees of which are one, or else a plain directory."""

    directory: Path  # the same for all worktrees
    checkout: Path  # where its files are: the worktree
    git: Path | None  # the directory of the repository; None without git


def project_of(directory: Path) -> Project:
    """Returns the project of a directory, which need not exist.

    The repository of a home directory, which holds its dotfiles, is not that of the directories
    in it.
    """
    start = Path(os.path.realpath(directory))
    home = Path(os.path.realpath(Path.home()))
    for folder in (start, *start.parents):
        marker = folder / ".git"
        if folder == home and folder != start:
            break
        if marker.is_dir():
            return Project(folder, folder, marker)
        if marker.is_file():
            return _linked(folder, marker)
    return Project(start, start, None)


def _linked(folder: Path, marker: Path) -> Project:
    """Returns the project of a worktree or a submodule, whose `.git` is a file."""
    try:
        with marker.open(encoding="utf-8") as file:
            pointer = file.read(_POINTER_BYTES).removeprefix("gitdir:").strip()
        own = Path(os.path.realpath(folder / pointer))
        common = own / (own / "commondir").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):  # a submodule has no `commondir`: it is a project by itself
        return Project(folder, folder, None)
    shared = Path(os.path.realpath(common))
    return Project(shared.parent if shared.name == ".git" else folder, folder, shared)
