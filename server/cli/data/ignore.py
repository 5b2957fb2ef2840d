"""What git, or the person who keeps a folder, says is not worth keeping.

Rules stand in `.gitignore` files at every level and in the repository's `info/exclude`;
`.toolcribignore` has the same form and, in one directory, the last word.
"""

from __future__ import annotations

from pathlib import Path

from tools.sandbox.search.gitignore import MAX_FILE_BYTES, Rule, byte_text, read_rules

RULE_FILES = (".gitignore", ".toolcribignore")
"""In the order of their weight; of two rules in them that match, the later one holds."""

_EXCLUDE = Path(".git", "info", "exclude")

_ANY = "\0"
"""No file has this name: only a rule for whatever is in a folder fits it."""


class IgnoreRules:
    """The rules that hold below one folder, read once.

    Args:
        folder: The folder; where it is part of a git repository, those of the folders above it up
            to the repository's hold too, unless they leave out the folder itself: it was named.
    """

    def __init__(self, folder: Path) -> None:
        self._read: dict[Path, list[Rule]] = {}
        self._top = _repository(folder) or folder
        if self._is_left_out(folder):
            self._top = folder

    @staticmethod
    def is_rule_file(path: Path) -> bool:
        """Whether a change of this file changes rules."""
        return path.name in RULE_FILES or path.parts[-3:] == _EXCLUDE.parts

    def ignores(self, path: Path, *, is_directory: bool) -> bool:
        """Whether the rules leave out a path whose directories they do not leave out."""
        return self._says(path, path.parent, is_directory=is_directory)

    def _is_left_out(self, folder: Path) -> bool:
        """Whether rules above a folder leave out it, a folder that it is in, or all that it has."""
        way = [each for each in (folder, *folder.parents) if each.is_relative_to(self._top)][:-1]
        return any(self.ignores(each, is_directory=True) for each in way) or (
            bool(way) and self._says(folder / _ANY, folder.parent, is_directory=False)
        )

    def _says(self, path: Path, lowest: Path, *, is_directory: bool) -> bool:
        """Whether the rules of a directory and those above it leave out a path."""
        for directory in (lowest, *lowest.parents):
            name = byte_text(path.relative_to(directory).as_posix())
            for rule in self._rules_in(directory):
                if rule.names(name, is_directory=is_directory):
                    return rule.ignores
            if directory == self._top:
                break
        return False

    def _rules_in(self, directory: Path) -> list[Rule]:
        """The rules in a directory's files, the last first."""
        if directory not in self._read:
            files = (directory / name for name in (*map(Path, reversed(RULE_FILES)), _EXCLUDE))
            self._read[directory] = [rule for file in files for rule in read_rules(_content(file))]
        return self._read[directory]


def _repository(folder: Path) -> Path | None:
    """The nearest folder, from this one upwards, that is a git repository's."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _content(file: Path) -> bytes:
    """What a rule file says; nothing where it is not there, no regular file, or closed to us."""
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as opened:
            return opened.read(MAX_FILE_BYTES)
    except OSError:
        return b""
