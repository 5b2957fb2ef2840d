"""What is never captured: paused projects, ignored paths, and lines that name them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from server.hooks.project import Project
from storage.database import Database
from tools.core.audit.secret_patterns import redacted_text

IGNORE_FILE = ".toolcribignore"
LEFT_OUT = "[left out]"

_PAUSED = "memory paused"
_TEXT = "text:"  # begins a pattern of words instead of a path
_PATH = re.compile(r"[^\s\"'`<>|()\[\]{},;:*?!]+")
_ANY_NAME = "\x01 any name"  # that only a pattern for everything matches
_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Paused:
    """Where the memory is paused."""

    everywhere: bool
    projects: tuple[str, ...]  # directories

    def covers(self, project: Path) -> bool:
        """Returns whether nothing of a project is captured or shown."""
        return self.everywhere or str(project) in self.projects


def read_paused(database: Database) -> Paused:
    """Returns where the memory is paused."""
    stored = json.loads(database.get_meta(_PAUSED) or "{}")
    return Paused(bool(stored.get("everywhere")), tuple(stored.get("projects", ())))


def set_paused(database: Database, project: Path | None, *, paused: bool) -> Paused:
    """Pauses or resumes a project, or everything; resuming everything resumes each project."""
    before = read_paused(database)
    if project is None:
        after = Paused(paused, before.projects if paused else ())
    else:
        others = tuple(each for each in before.projects if each != str(project))
        after = Paused(before.everywhere, (*others, str(project)) if paused else others)
    stored = {"everywhere": after.everywhere, "projects": after.projects}
    database.set_meta(_PAUSED, json.dumps(stored))
    return after


class Exclusions:
    """The patterns of a project's `.toolcribignore` and of the settings.

    They are those of `.gitignore`; one that begins with `text:` means lines with these words.
    """

    def __init__(self, project: Project, given: Sequence[str]) -> None:
        self._checkout = project.checkout
        lines = [*given, *_lines_of(project.checkout / IGNORE_FILE)]
        self._words = [
            each.removeprefix(_TEXT).strip().casefold() for each in lines if each.startswith(_TEXT)
        ]
        self._rules = []
        if globs := [each for each in lines if not each.startswith(_TEXT)]:
            from tools.sandbox.search.gitignore import read_rules  # most projects have no patterns

            self._rules = read_rules("\n".join(globs).encode())

    def cover_directory(self, directory: Path) -> bool:
        """Returns whether nothing that is done in a directory is captured."""
        everything = self._matches(_ANY_NAME, is_directory=True)
        return everything or self._names(directory, is_directory=True)

    def covers_file(self, path: str) -> bool:
        """Returns whether a file is ignored."""
        return self._names(self._checkout / path, is_directory=False)

    def storable(self, text: str, limit: int) -> str:
        """Returns a text without secrets and without what is ignored, up to a length."""
        looked_at = text[: 2 * limit]
        if len(looked_at) < len(text):  # the last word may be half a secret
            looked_at = looked_at.rpartition(" ")[0] or looked_at
        return redacted_text(self.apply(looked_at), limit)

    def apply(self, text: str) -> str:
        """Returns a text without the lines that name an ignored path or an excluded word."""
        if not (self._words or self._rules):
            return text
        return "\n".join(LEFT_OUT if self._excludes(line) else line for line in text.split("\n"))

    def _excludes(self, line: str) -> bool:
        folded = line.casefold()
        return any(words in folded for words in self._words if words) or any(
            self.covers_file(path.rstrip(".")) for path in _PATH.findall(line)
        )

    def _names(self, path: Path, *, is_directory: bool) -> bool:
        """Returns whether a rule matches a path or a directory above it."""
        if not self._rules:
            return False
        try:
            parts = path.relative_to(self._checkout).parts
        except ValueError:  # outside the project: only its names count
            parts = path.parts[1:]
        return any(
            self._matches(
                "/".join(parts[: end + 1]), is_directory=is_directory or end + 1 < len(parts)
            )
            for end in range(len(parts))
        )

    def _matches(self, path: str, *, is_directory: bool) -> bool:
        for rule in self._rules:
            if rule.names(path, is_directory=is_directory):
                return rule.ignores
        return False


def _lines_of(file: Path) -> list[str]:
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
