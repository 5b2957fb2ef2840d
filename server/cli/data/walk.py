"""What in a folder could be documents."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from server.cli.data.ignore import IgnoreRules
from tools.core.errors import InvalidArgumentsError

GENERATED = frozenset({"node_modules", "__pycache__"})
"""Directories that tools fill; nobody wrote what is in them."""

_CONVERSATIONS = re.compile(r"conversations(?:-\d+)?\.json")
_BESIDE_CONVERSATIONS = frozenset(
    """
    chat.html group_chats.json memories.json message_feedback.json model_comparisons.json
    projects.json shared_conversations.json shopping.json sora.json tool_messages.json user.json
    users.json
    """.split()  # noqa: SIM905  # a dozen names read best as text
)
"""What ChatGPT and Claude export beside the conversations: the same once more, and the account."""


class Folder:
    """A folder as import and watch see it.

    Passed over are hidden names, links, what tools generate, what ignore rules leave out (see
    `server.cli.data.ignore`), what stands beside an export's conversations, and whatever is closed.

    Args:
        path: The folder, with no link in it.
        closed: Directories that are not looked into, such as the data directory.

    Attributes:
        path: The folder.
        passed_over: How many entries the last look passed over, by reason; a directory is one.
        unlisted: What the last look could not list, and why.
    """

    def __init__(self, path: Path, closed: Collection[Path] = ()) -> None:
        self.path = path
        self._closed = frozenset(closed)
        self._rules = IgnoreRules(path)
        self.passed_over: Counter[str] = Counter()
        self.unlisted: list[OSError] = []

    @property
    def unlisted_directories(self) -> list[Path]:
        """What the last look could not list."""
        return [Path(error.filename) for error in self.unlisted]

    def files(self, below: Path | None = None) -> Iterator[Path]:
        """The files, in the order of their names, by the rules as they are now.

        Args:
            below: A directory in the folder that is looked at alone.
        """
        self._rules = IgnoreRules(self.path)
        self.passed_over.clear()
        self.unlisted.clear()
        for directory, names, files in os.walk(below or self.path, onerror=self._refused):
            here = Path(directory)
            names[:] = sorted(name for name in names if self._takes(here / name, is_directory=True))
            is_export = any(map(_CONVERSATIONS.fullmatch, files))
            for name in sorted(files):
                if is_export and name in _BESIDE_CONVERSATIONS:
                    self.passed_over["part of a chat export"] += 1
                elif self._takes(here / name, is_directory=False):
                    yield here / name

    def wants(self, path: Path) -> bool:
        """Whether `files` would come to this path, which need not exist any more."""
        way = [*reversed(path.relative_to(self.path).parents), path.relative_to(self.path)][1:]
        return not _is_part_of_export(path) and all(
            self._reason(self.path / each, is_directory=each != way[-1] or path.is_dir()) is None
            for each in way
        )

    def _takes(self, path: Path, *, is_directory: bool) -> bool:
        reason = self._reason(path, is_directory=is_directory)
        if reason is not None:
            self.passed_over[reason] += 1
        return reason is None

    def _reason(self, path: Path, *, is_directory: bool) -> str | None:
        """Why an entry is passed over, if it is."""
        kind = _kind(path)
        reasons = {
            "hidden": path.name.startswith("."),
            "links": stat.S_ISLNK(kind),
            "special files": not is_directory and kind and not stat.S_ISREG(kind),
            "generated": is_directory and path.name in GENERATED,
            "Toolcrib's own": path in self._closed,
        }
        found = next((reason for reason, holds in reasons.items() if holds), None)
        if found is None and self._rules.ignores(path, is_directory=is_directory):
            return "ignored"
        return found

    def _refused(self, error: OSError) -> None:
        self.unlisted.append(error)


def beside(path: Path) -> list[Path]:
    """What is passed over because of this file, if it holds an export's conversations."""
    if not _CONVERSATIONS.fullmatch(path.name):
        return []
    return [path.with_name(name) for name in sorted(_BESIDE_CONVERSATIONS)]


def check_name(path: Path) -> None:
    """Raises if the path is no text; on POSIX a name may be any bytes, which JSON cannot hold."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentsError(
            f"The name {str(path)!r} is not valid UTF-8.", next_actions=["Rename the file."]
        ) from error


def _is_part_of_export(path: Path) -> bool:
    if path.name not in _BESIDE_CONVERSATIONS:
        return False
    try:
        return any(_CONVERSATIONS.fullmatch(each.name) for each in path.parent.iterdir())
    except OSError:
        return False  # the directory is gone, or listing it will say why not


def _kind(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0  # reading it will say why not
