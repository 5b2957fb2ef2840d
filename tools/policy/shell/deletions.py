"""Commands that delete much: a look at a line for what a person wants to be asked about.

It is no boundary: a program can delete without saying so on its line.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tools.policy.shell.command_match import Match, match_command
from tools.policy.shell.inner import QUOTES
from tools.policy.shell.operands import RISKY
from tools.policy.shell.reading.pieces import LONGEST
from tools.policy.shell.shell_command import Found, ShellCommand
from tools.policy.shell.words import CommandPattern, LinePattern, Word, base_name

if TYPE_CHECKING:
    from tools.sandbox.files.extent import Extent

MANY = 20
"""Files that are many."""

SHOWN = 80
"""Characters of paths that are shown."""

MADE_AGAIN = frozenset(
    {"node_modules", "dist", "build", "target", "out", "coverage", "htmlcov", "venv", ".venv"}
    | {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".cache", ".tox", ".nox"}
    | {".next", ".nuxt", ".turbo", ".parcel-cache", ".gradle", ".eggs"}
)
"""Names of directories that tools make, and make again."""

MOVING = frozenset({"cd", "pushd", "popd"})
FINDING = frozenset({"find", "gfind", "fd", "fdfind", "xargs", "parallel"})
PRINTING = frozenset({"cat", "echo", "printf"})
COMMAND_END, BETWEEN = re.compile(r"[;|&\n]"), re.compile(r"[\s,()\[\]{}!=:]+")
FORCE = re.compile(r"-\w*f\w*|--force")
UNTOLD = "It deletes what cannot be told from the line."
RECURSIVE = re.compile(r"--recursive|-[A-Za-z]*[rR][A-Za-z]*")


class LookAt(Protocol):
    """Tells how much there is."""

    def __call__(self, path: str, *, is_glob: bool, is_recursive: bool) -> Extent:
        """Tells how much there is at a path, or at all paths that fit a glob."""


def _patterns(*texts: str) -> tuple[CommandPattern, ...]:
    return tuple(LinePattern.parse(text).commands[0] for text in texts)


LOSSES = {
    "git": (
        (
            _patterns("git clean -f *", "git clean --force *"),
            _patterns("git clean -n *", "git clean --dry-run *"),
            "It deletes all files that git does not track.",
        ),
        (
            _patterns(
                *("git reset --hard *", "git checkout . *", "git checkout * . *"),
                *("git checkout -f *", "git checkout --force *", "git restore . *"),
                *("git restore * . *", "git switch -f *", "git switch --discard-changes *"),
            ),
            _patterns("git restore --staged *", "git restore -S *"),
            "It discards all changes that are not committed.",
        ),
    ),
    "rsync": (
        (
            _patterns("rsync --del* *"),
            _patterns("rsync -n *", "rsync --dry-run *"),
            "It deletes what rsync does not find at its source.",
        ),
    ),
}
"""By its name, what a program deletes: the commands, those of them that only show it, what goes."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What rm is given.

    Attributes:
        word: As it is given.
        is_recursive: Whether what is below it goes too.
    """

    word: Word
    is_recursive: bool


@dataclass(frozen=True, slots=True)
class Deletions:
    """What the commands of a line delete.

    Attributes:
        look: Tells how much there is; None where nobody can look.
        cwd: The directory in which the line starts, relative to the root.
        moves: Whether the line changes its directory.
    """

    look: LookAt | None
    cwd: str
    moves: bool

    @classmethod
    def of(cls, command: ShellCommand, cwd: str, look: LookAt | None) -> Deletions:
        """Those of a line."""
        names = {_name(found) for part in command.found for found in part}
        return cls(look, cwd, moves=not names.isdisjoint(MOVING))

    def say(self, found: Sequence[Found]) -> str:
        """What some commands of the line delete, in a sentence; empty where it is not much."""
        for each in found:
            for does, keeps, says in LOSSES.get(_name(each), ()):
                if _is_any(does, each) and not _is_any(keeps, each):
                    return says
        finding = [each for each in found if _name(each) in FINDING]
        if any(word.text == "-delete" for each in finding for word in each.words):
            return "It deletes all that find finds."
        removed = dict.fromkeys(_removed(found, finds=bool(finding)))
        return self._say_removed([*removed])

    def hidden(self, command: ShellCommand, part: int) -> str:
        """What a part of the line may delete in a text that is run, in a sentence."""
        texts = [each for each in command.found[part] if each.pieces]
        if command.unseen[part]:
            texts += [each for other in command.found for each in other if _name(each) in PRINTING]
            texts += [each for each in command.found[part] if _name(each) in RISKY]
        words = (word.text or "" for each in texts for word in (*each.words, Word("\n")))
        text = command.bare if len(command.line) > LONGEST else QUOTES.sub("", " ".join(words))
        return UNTOLD if any(map(_deletes_much, COMMAND_END.split(text))) else ""

    def _say_removed(self, removed: Sequence[Removed]) -> str:
        files, is_more = 0, False
        for each in removed:
            text = each.word.text
            if text is None or self.look is None or (self.moves and not text.startswith("/")):
                return UNTOLD
            there = self.look(
                posixpath.join(self.cwd, text),
                is_glob=each.word.is_glob,
                is_recursive=each.is_recursive,
            )
            if there.has_repository:
                return f"It deletes a git repository ({_shown(text)})."
            files, is_more = files + there.files, is_more or there.is_more
        if files < MANY and not is_more:
            return ""
        where = _shown(", ".join(str(each.word.text) for each in removed))
        return f"It deletes {'more than ' * is_more}{files} files ({where})."


def _deletes_much(text: str) -> bool:
    """Whether a text, if it is a command, deletes directories or what git does not keep."""
    words = {base_name(word) for word in BETWEEN.split(text)}
    if {"git", "clean"} <= words and any(map(FORCE.fullmatch, words)):
        return True
    return {"git", "reset", "--hard"} <= words or (
        "rm" in words and any(map(RECURSIVE.fullmatch, words))
    )


def _removed(found: Sequence[Found], *, finds: bool) -> Iterator[Removed]:
    """What rm is given of which there may be many files, without what is made again."""
    for each in found:
        if _name(each) != "rm":
            continue
        words = each.words[1:]
        options = [word.text for word in words if word.text is not None and _is_option(word)]
        is_recursive = any(map(RECURSIVE.fullmatch, options))
        for word in words:
            is_many = is_recursive or word.is_glob or (word.text is None and finds)
            is_made = not word.is_glob and base_name(word.text or "") in MADE_AGAIN
            if is_many and not is_made and not _is_option(word):
                yield Removed(word, is_recursive)


def _is_option(word: Word) -> bool:
    return word.text is not None and word.text.startswith("-")


def _is_any(patterns: Sequence[CommandPattern], found: Found) -> bool:
    return any(match_command(pattern, found.words) is Match.YES for pattern in patterns)


def _name(found: Found) -> str:
    return base_name(found.words[0].text or "")


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
