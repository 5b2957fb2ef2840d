"""What git, or the person who keeps a folder, says is not worth keeping.

Rules stand in `.gitignore` files at every level and in the repository's `info/exclude`;
`.toolcribignore` has the same form and, in one directory, the last word.
"""

from __future__ import annotations

from pathlib import Path

from tools.sandbox.search.gitignore import MAX_FILE_BYTES, Rule, byte_text, read_rules

__all__ = ["IgnoreRules"]

RULE_FILES = (".gitignore", ".toolcribignore")
"""In the order of their weight; of two rules in them that match, the later one holds."""

_EXCLUDE = Path(".git", "info", "exclude")


class IgnoreRules:
    """The rules that hold below one folder, read once.

    Args:
        folder: The folder; where it is part of a git repository, those of the folders above it up
            to the repository's hold too.
    """

    def __init__(self, folder: Path) -> None:
        self._top = _repository(folder) or folder
        self._read: dict[Path, list[Rule]] = {}

    @staticmethod
    def is_rule_file(path: Path) -> bool:
        """Whether a change of this file changes rules."""
        return path.name in RULE_FILES or path.parts[-3:] == _EXCLUDE.parts

    def ignores(self, path: Path, *, is_directory: bool) -> bool:
        """Whether the rules leave out a path whose directories they do not leave out."""
        for directory in path.parents:
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
