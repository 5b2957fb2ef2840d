"""Finds programs by name, in the visible directories of PATH."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import VisiblePaths, is_beneath
from tools.sandbox.processes.models import Level


class SearchPath:
    """The PATH of the server, reduced to what programs can see."""

    def __init__(self, path: str, root: str, visible: VisiblePaths) -> None:
        own = str(Path(sys.executable).parent)
        self._folders = [each for each in (*path.split(":"), own) if each.startswith("/")]
        self._root = root
        self._visible = visible
        self._variables: dict[Level, str] = {}

    def find(self, name: str, level: Level) -> str:
        """Returns the path of a program; programs in the root are not found by name."""
        if "/" in name:
            return name
        invisible = ""
        for folder in self._folders:
            found = shutil.which(name, path=folder)
            if found and not (self._is_in_root(folder) or self._is_in_root(found)):
                # A virtual environment is more than the interpreter it links to.
                if self._is_visible(folder, level) and self._is_visible(found, level):
                    return found
                invisible = invisible or folder
        if invisible:
            raise UnavailableError(
                f"The program {name!r} is in {invisible}, which programs cannot see.",
                next_actions=[f"Ask the user to add {invisible} to the setting system.readable."],
            )
        raise UnavailableError(
            f"The program {name!r} is not installed.",
            next_actions=[f"Install {name}, or do without it."],
        )

    def find_hidden(self, name: str) -> str:
        """Returns the directory of a program that is hidden from programs; else empty."""
        folders = [each for each in self._folders if not self._visible.include(each)]
        found = shutil.which(name, path=":".join(folders)) if folders else None
        return str(Path(found).parent) if found and not self._is_in_root(found) else ""

    def variable(self, level: Level, *, outside: bool = False) -> str:
        """Returns the PATH variable; cached for each level, as directories rarely change.

        `outside`: whether to leave out the root, so that files written there are not run as
        programs.
        """
        path = self._variables.get(level)
        if path is None:
            folders = [each for each in self._folders if self._is_visible(each, level)]
            path = self._variables[level] = ":".join(dict.fromkeys(folders))
        if outside:
            return ":".join(each for each in path.split(":") if not self._is_in_root(each))
        return path

    def _is_visible(self, path: str, level: Level) -> bool:
        """Returns whether programs see a path and its target."""
        return level is Level.NONE or self._is_in_root(path) or self._visible.include(path)

    def _is_in_root(self, path: str) -> bool:
        return is_beneath(os.path.realpath(path), self._root)
