"""Which entries git leaves out: the rules that hold in a directory, read by its descriptor."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from tools.sandbox.search.gitignore import MAX_FILE_BYTES, Rule, byte_text, read_rules
from tools.sandbox.search.opening import open_directory, open_file

__all__ = ["VERSION_CONTROL", "Ignored"]

VERSION_CONTROL = frozenset({".git", ".hg", ".jj", ".svn"})
"""What version control keeps for itself; searches pass over it."""


@dataclass(frozen=True)
class _Level:
    """The rules of one directory.

    Attributes:
        prefix: What is before a path that they see: the directory's own, with a slash.
        rules: The last first.
    """

    prefix: str
    rules: list[Rule]

    @cached_property
    def _names(self) -> re.Pattern[str] | None:
        return _any(rule for rule in self.rules if not rule.anchored)

    @cached_property
    def _paths(self) -> re.Pattern[str] | None:
        return _any(rule for rule in self.rules if rule.anchored)

    def verdict(self, path: str, name: str, *, is_directory: bool) -> bool | None:
        """Whether the entry is left out; None where no rule names it."""
        below = path[len(self.prefix) :]
        if not (self._names and self._names.fullmatch(name)) and not (
            self._paths and self._paths.fullmatch(below)
        ):
            return None
        for rule in self.rules:
            if rule.names(below, is_directory=is_directory):
                return rule.ignores
        return None


class Ignored:
    """The rules that hold in one directory: its own, and those above it in its repository.

    Args:
        levels: The rules of each directory, the deepest first.
    """

    def __init__(self, levels: tuple[_Level, ...] = ()) -> None:
        self._levels = levels

    def below(self, directory: int, path: str, names: Collection[str]) -> Ignored:
        """The rules that hold one directory deeper.

        Args:
            directory: Descriptor of that directory.
            path: Its path, with a slash at the end unless it is empty.
            names: The names in it.
        """
        levels = self._levels
        prefix = byte_text(path)
        if ".git" in names:  # another repository: what is above says nothing of it
            rules = _read(directory, ".git", "info", "exclude")
            levels = (_Level(prefix, rules),) if rules else ()
        if ".gitignore" in names and (rules := _read(directory, ".gitignore")):
            levels = (_Level(prefix, rules), *levels)
        return self if levels is self._levels else Ignored(levels)

    def names(self, path: str, name: str, *, is_directory: bool) -> bool:
        """Whether an entry of the directory is left out.

        Args:
            path: The entry's path.
            name: Its last part.
            is_directory: Whether it is a directory.
        """
        if not self._levels:
            return False
        path, name = byte_text(path), byte_text(name)
        for level in self._levels:
            verdict = level.verdict(path, name, is_directory=is_directory)
            if verdict is not None:
                return verdict
        return False


def _any(rules: Iterable[Rule]) -> re.Pattern[str] | None:
    """One expression for what any of the rules names."""
    patterns = [f"(?:{rule.pattern.pattern})" for rule in rules]
    return re.compile("|".join(patterns), re.DOTALL | re.ASCII) if patterns else None


def _read(directory: int, *parts: str) -> list[Rule]:
    """The rules of a file; none where it is not there, a link, no regular file, or closed to us."""
    *directories, name = parts
    opened = [directory]
    try:
        for part in directories:
            opened.append(open_directory(part, opened[-1]))  # each needs the last
        with os.fdopen(open_file(name, opened[-1])[0], "rb") as file:
            return read_rules(file.read(MAX_FILE_BYTES))
    except OSError:
        return []
    finally:
        for fd in opened[1:]:
            os.close(fd)
