"""Ignore rules: reads what git, or the owner of a folder, excludes.

Rules are in `.gitignore` files at every level and in the repository's `info/exclude`;
`.toolcribignore` has the same format and takes precedence within a directory.
"""

from __future__ import annotations

from pathlib import Path

from tools.sandbox.search.gitignore import MAX_FILE_BYTES, Rule, byte_text, read_rules

RULE_FILES = (".gitignore", ".toolcribignore")
"""In ascending precedence: of two matching rules, the later one applies."""

_EXCLUDE = Path(".git", "info", "exclude")

_ANY = "\0"
"""A name that no file has: only a rule that matches everything in a folder matches it."""


class IgnoreRules:
    """The ignore rules for one folder, each file read once.

    Args:
        folder: The folder. Inside a git repository, the rules of its parents up to the repository
         apply too, unless they ignore the folder itself, which the user named.
    """

    def __init__(self, folder: Path) -> None:
        self._read: dict[Path, list[Rule]] = {}
        self._top = _repository(folder) or folder
        if self._is_left_out(folder):
            self._top = folder

    @staticmethod
    def is_rule_file(path: Path) -> bool:
        """Returns whether the file contains rules."""
        return path.name in RULE_FILES or path.parts[-3:] == _EXCLUDE.parts

    def ignores(self, path: Path, *, is_directory: bool) -> bool:
        """Returns whether the rules ignore a path whose parents they do not ignore."""
        return self._says(path, path.parent, is_directory=is_directory)

    def _is_left_out(self, folder: Path) -> bool:
        """Returns whether rules above a folder ignore it, a parent of it, or all its content."""
        way = [each for each in (folder, *folder.parents) if each.is_relative_to(self._top)][:-1]
        return any(self.ignores(each, is_directory=True) for each in way) or (
            bool(way) and self._says(folder / _ANY, folder.parent, is_directory=False)
        )

    def _says(self, path: Path, lowest: Path, *, is_directory: bool) -> bool:
        """Returns whether the rules of a directory and its parents ignore a path."""
        for directory in (lowest, *lowest.parents):
            name = byte_text(path.relative_to(directory).as_posix())
            for rule in self._rules_in(directory):
                if rule.names(name, is_directory=is_directory):
                    return rule.ignores
            if directory == self._top:
                break
        return False

    def _rules_in(self, directory: Path) -> list[Rule]:
        """Returns the rules of a directory's files, the last first."""
        if directory not in self._read:
            files = (directory / name for name in (*map(Path, reversed(RULE_FILES)), _EXCLUDE))
            self._read[directory] = [rule for file in files for rule in read_rules(_content(file))]
        return self._read[directory]


def _repository(folder: Path) -> Path | None:
    """Returns the nearest folder, from this one upwards, that contains a git repository."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _content(file: Path) -> bytes:
    """Reads a rule file; empty if it is missing, irregular or unreadable."""
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as opened:
            return opened.read(MAX_FILE_BYTES)
    except OSError:
        return b""
