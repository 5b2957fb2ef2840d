"""Commands that delete much: inspects a line for deletions the user should approve.

This is not a security boundary: a program can delete without naming it in its command line.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Protocol

from storage.index.bounded import clip
from tools.policy.shell.command_match import Match, match_command
from tools.policy.shell.operands import RISKY
from tools.policy.shell.script import LONGEST
from tools.policy.shell.shell_command import Found, ShellCommand
from tools.policy.shell.words import QUOTES, CommandPattern, LinePattern, Word, base_name

if TYPE_CHECKING:
    from tools.sandbox.files.size_limits import Extent

MANY = 20  # number of files that count as many
SHOWN = 80  # limit on the characters of paths shown

MADE_AGAIN = frozenset(
    {"node_modules", "dist", "build", "target", "out", "coverage", "htmlcov", "venv", ".venv"}
    | {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".cache", ".tox", ".nox"}
    | {".next", ".nuxt", ".turbo", ".parcel-cache", ".gradle", ".eggs"}
)
"""Names of generated directories, which tools create again."""

MOVING = frozenset({"cd", "pushd", "popd"})
FINDING = frozenset({"find", "gfind", "fd", "fdfind", "xargs", "parallel"})
PRINTING = frozenset({"cat", "echo", "printf"})
COMMAND_END, BETWEEN = re.compile(r"[;|&\n]"), re.compile(r"[\s,()\[\]{}!=:]+")
FORCE = re.compile(r"-\w*f\w*|--f\w*")
HARD = re.compile(r"--ha?r?d?")
DISCARDS = "It discards all changes that are not committed."
VARIABLES = "GIT_CONFIG"  # prefix of variables that make git run programs not named in its words
UNTOLD = "It deletes what cannot be determined from the line."
RECURSIVE = re.compile(r"--r\w*|-[A-Za-z]*[rR][A-Za-z]*")


class LookAt(Protocol):
    """Measures files."""

    def __call__(self, path: str, *, is_glob: bool, is_recursive: bool) -> Extent:
        """Measures a path, or all paths that match a glob."""


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
                *("git switch --force *", "git read-tree --reset *"),
                *("git checkout-index -f *", "git checkout-index --force *"),
            ),
            _patterns("git restore --staged *", "git restore -S *"),
            DISCARDS,
        ),
        (_patterns("git restore --worktree * . *", "git restore -W * . *"), (), DISCARDS),
    ),
    "rsync": (
        (
            _patterns("rsync --del* *"),
            _patterns("rsync -n *", "rsync --dry-run *"),
            "It deletes what rsync does not find at its source.",
        ),
    ),
}
"""For each program, the deleting commands, their dry runs, and what is lost."""

RESTORING = frozenset({"checkout", "restore"})
MAGIC = re.compile(r":|.*\*")  # paths that git itself expands
KEEPS = _patterns("git restore --staged *", "git restore -S *", "git checkout -b *")


@dataclass(frozen=True, slots=True)
class Deletions:
    """Finds what the commands of a line delete."""

    look: LookAt | None  # measures files; None if that is impossible
    cwd: str  # the initial working directory, relative to the root
    moves: bool  # whether the line changes its working directory

    @classmethod
    def of(cls, command: ShellCommand, cwd: str, look: LookAt | None) -> Deletions:
        """Prepares the check of a line."""
        names = {_name(found) for part in command.found for found in part}
        return cls(look, cwd, moves=not names.isdisjoint(MOVING))

    def say(self, found: Sequence[Found]) -> str:
        """Describes what commands of the line delete, in a sentence; empty if it is not much."""
        says = [
            loss
            for each in found
            for does, keeps, loss in LOSSES.get(_name(each), ())
            if _is_any(does, each.words) and not _is_any(keeps, _before_paths(each.words))
        ]
        if any(self._discards(each) for each in found):
            says.append(DISCARDS)
        finding = [each for each in found if _name(each) in FINDING]
        if any(word.text == "-delete" for each in finding for word in each.words):
            says.append("It deletes all that find finds.")
        removed = dict.fromkeys(_removed(found, finds=bool(finding)))
        return " ".join(filter(None, dict.fromkeys((*says, *self._describe_removed([*removed])))))

    def _discards(self, found: Found) -> bool:
        """Returns whether git restores paths that hold many files."""
        if _name(found) != "git" or _is_any(KEEPS, _before_paths(found.words)):
            return False
        behind = dropwhile(lambda word: word.text not in RESTORING, found.words)
        paths = [word for word in behind if word.text and not _is_option(word)][1:]
        there = [each for word in paths if (each := self._extent(word, is_recursive=True))]
        return any(MAGIC.match(word.text or "") for word in paths) or any(
            each.files >= MANY or each.is_more for each in there
        )

    def hidden(self, command: ShellCommand, part: int) -> str:
        """Describes what a part of the line may delete through a script it runs, in a sentence."""
        texts = [each for each in command.found[part] if each.pieces]
        if command.unseen[part]:
            texts += [each for other in command.found for each in other if _name(each) in PRINTING]
            texts += [each for each in command.found[part] if _name(each) in RISKY]
        words = (word.text or "" for each in texts for word in (*each.words, Word("\n")))
        is_whole = len(command.line) > LONGEST or VARIABLES in command.line
        text = command.bare if is_whole else QUOTES.sub("", " ".join(words))
        return UNTOLD if any(map(_deletes_much, COMMAND_END.split(text))) else ""

    def _extent(self, word: Word, *, is_recursive: bool) -> Extent | None:
        """Measures a path; None if it cannot be determined."""
        text = word.text
        if text is None or self.look is None or (self.moves and not text.startswith("/")):
            return None
        path = posixpath.join(self.cwd, text)
        return self.look(path, is_glob=word.is_glob, is_recursive=is_recursive)

    def _describe_removed(self, removed: Sequence[tuple[Word, bool]]) -> Iterator[str]:
        files, is_more = 0, False
        for word, is_recursive in removed:
            there = self._extent(word, is_recursive=is_recursive)
            if there is None:
                yield UNTOLD
                continue
            if there.has_repository:
                yield f"It deletes a git repository ({clip(str(word.text), SHOWN)})."
            files, is_more = files + there.files, is_more or there.is_more
        if files >= MANY or is_more:
            where = clip(", ".join(str(word.text) for word, _ in removed), SHOWN)
            yield f"It deletes {'more than ' * is_more}{files} files ({where})."


def _deletes_much(text: str) -> bool:
    """Returns whether a text, run as a command, would delete directories or untracked files."""
    words = {base_name(word) for word in BETWEEN.split(text)}
    return any(
        names <= words and any(map(options.fullmatch, words))
        for names, options in (
            ({"git", "clean"}, FORCE),
            ({"git", "reset"}, HARD),
            ({"rm"}, RECURSIVE),
        )
    )


def _removed(found: Sequence[Found], *, finds: bool) -> Iterator[tuple[Word, bool]]:
    """Yields arguments of rm that may hold many files, and whether all below goes too.

    Leaves out generated directories.
    """
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
                yield word, is_recursive


def _is_option(word: Word) -> bool:
    return word.text is not None and word.text.startswith("-")


def _is_any(patterns: Sequence[CommandPattern], words: Sequence[Word]) -> bool:
    texts = {None if word.is_glob else word.text for word in words}
    for pattern in patterns:
        name, second = (word.text if word else "" for word in pattern.words[:2])
        if name == "git" and None not in texts and second not in texts:  # matching takes longer
            continue
        if match_command(pattern, _expand_options(pattern, words)) is Match.YES:
            return True
    return False


def _expand_options(pattern: CommandPattern, words: Sequence[Word]) -> list[Word]:
    """Replaces abbreviations of a pattern's long options by the full names."""
    names = [word.text for word in pattern.words if word and word.text.startswith("--")]
    return [
        next((Word(name) for name in names if name.startswith(given) and given > "--"), word)
        for word, given in ((word, (word.text or "").partition("=")[0]) for word in words)
    ]


def _before_paths(words: Sequence[Word]) -> list[Word]:
    """Returns the words before `--`, which include all options."""
    return [*takewhile(lambda word: word.text != "--", words)]


def _name(found: Found) -> str:
    return base_name(found.words[0].text or "")
