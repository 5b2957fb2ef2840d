"""Analyzes a command line by what it runs.

A line is plain if all its commands and files are known: our own small grammar and the syntax tree
have to agree on it. Allow rules about commands apply only to plain lines. Deny and ask rules apply
to every command anywhere in the tree, in scripts passed to shells, or after a wrapper.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache

from tools.policy.shell.interpreters import SHELLS
from tools.policy.shell.plain_line import PlainLine, harmless_variables, may_hide
from tools.policy.shell.reader import read_script
from tools.policy.shell.script import LONGEST, NotPlainError, check_characters
from tools.policy.shell.tree import commands_in, parsed, script_of, scripts_in, values_in
from tools.policy.shell.words import (
    ESCAPES,
    QUOTES,
    Word,
    base_name,
    is_expanded,
    names_stdin,
    pieces_of,
)
from tools.policy.shell.wrappers import RUNS_SHELL, inner_commands, is_opaque

DEEPEST = 8  # limit on scripts nested in scripts
MOST_WORDS = 2_000  # limit on the words of all commands that a line runs
LONGEST_COMMAND = 200  # limit on the words of one command; further words count as unseen
MOST_CHARACTERS = 4 * LONGEST  # limit on the characters parsed, over all scripts in a line
MOST_SIGNS = 200  # limit on `<` or `|` in a line, for which the parser takes quadratic time
GLOB = re.compile(r"[*?\[]")
CODE_VARIABLE = re.compile(r"(PERL5OPT|PERL5DB|RUBYOPT)=|.*data:", re.DOTALL | re.IGNORECASE)
COMMAND_VARIABLE = re.compile(
    r"GIT_CONFIG_(KEY|VALUE)_.*|GIT_CONFIG_PARAMETERS|GIT_EXTERNAL_DIFF|GIT_SSH|TAR_OPTIONS|ZIPOPT"
    r"|\w*(COMMAND|EDITOR|PAGER|BROWSER|ASKPASS|VISUAL|MAKEFLAGS|_RSH|LESSOPEN|LESSCLOSE)"
)
"""Variables whose values are commands, or settings that name commands."""

NO_COMMAND = re.compile(r"(cat|true|false|:|echo|less|more|none|[-jkns0-9 ]*)")
"""Values of these variables that run nothing else."""

EXPORTING = frozenset({"declare", "export", "local", "readonly", "typeset"})
OPEN_FILES = re.compile(
    r"(.*/)?(fd|stdin|stdout|stderr)(/.*)?|/+(dev(?!/+(null|shm))|proc)(/.*)?|/[^/]*[*?\[].*",
    re.DOTALL,
)
"""Paths through which a program may reach its open files under another name."""

PLACING = frozenset({"cd", "link", "ln", "pushd"})
LATER = re.compile(r"`|\$\\*([({\[]|'?$)|^\$'.*\\[0-7xuUc]", re.DOTALL)
"""Characters in a literal that run a command if a shell expands it later."""

CONTINUATION = re.compile(r"\\\r?\n")


@dataclass(frozen=True)
class Found:
    """A command that a line runs, or may run."""

    words: tuple[Word, ...]
    is_certain: bool = True  # whether its words are certainly those of a command

    @cached_property
    def texts(self) -> frozenset[str] | None:
        """Its words; None if one of them is not known exactly."""
        seen = [word.text for word in self.words if word.text is not None and not word.is_glob]
        return frozenset(seen) if len(seen) == len(self.words) else None

    @cached_property
    def pieces(self) -> frozenset[str]:
        """All texts in the arguments of an unknown program that may begin a command."""
        if not is_opaque(self.words):
            return frozenset()
        first = int(
            base_name(self.words[0].text or "") != "git"
        )  # git's subcommands may be aliases
        texts = [word.text for word in self.words[first:] if word.text is not None]
        return frozenset(base_name(piece) for text in texts for piece in pieces_of(text)) - {""}

    def may_run(self, name: str, needed: frozenset[str]) -> bool:
        """Returns whether its arguments may contain a command with this name and these words."""
        if name in self.pieces or any(fnmatchcase(name, each) for each in _globs(self.pieces)):
            bare = QUOTES.sub("", " ".join(word.text or "" for word in self.words))
            return all(word in bare for word in needed)
        return False


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command line."""

    line: str
    plain: PlainLine | None  # its commands, if it is plain
    reason: str
    # For each command of a plain line, the commands it runs, itself first; for any other line,
    # everything it runs as one group.
    found: tuple[tuple[Found, ...], ...]
    # For each of these, why not everything can be seen; empty if everything can.
    unseen: tuple[str, ...]
    # For each of these, the base names of all commands; None if some cannot be seen, or may be
    # hidden in texts and variables.
    names: tuple[frozenset[str] | None, ...]
    bare: str  # the line without quotes, and with spaces for escapes of blanks

    @classmethod
    @lru_cache(maxsize=128)
    def parse(cls, line: str, variables: tuple[tuple[str, str], ...] = ()) -> ShellCommand:
        """Analyzes any line, with the variables passed with it; never fails."""
        plain, reason = _parse_plain(line)
        bare = f"{QUOTES.sub('', line)}\n{ESCAPES.sub(' ', line)}".casefold()
        if plain is None:
            look = _Look()
            look.into_line(line, 0)
            look.into_variables(variables)
            return cls(line, None, reason, (tuple(look.found),), (look.unseen,), (None,), bare)
        looks = []
        for words in plain.commands:
            looks.append(_Look())
            looks[-1].into_command(words, 0)
        for look, run in zip(looks, plain.runs, strict=True):
            look.into_variables((*variables, *run.assigned))
        if any(look.runs_shell for look in looks):
            for text in plain.texts:
                looks[-1].into_line(text, 1)
        found = tuple(tuple(look.found) for look in looks)
        unseen = tuple(look.unseen for look in looks)
        names = (None,) * len(looks) if may_hide(plain) else tuple(map(_names, looks))
        return cls(line, plain, "", found, unseen, names, bare)

    def mentions(self, name: str) -> bool:
        """Returns whether a name occurs anywhere in the line, quoted in any way."""
        word = re.escape(base_name(name))
        return re.search(rf"(?<![\w.-]){word}(?![\w.-])", self.bare) is not None


def _parse_plain(line: str) -> tuple[PlainLine | None, str]:
    try:
        read = read_script(line)
        root = parsed(line)
        if root.has_error:
            return None, "it cannot be parsed"
        if script_of(root) != read:
            return None, "it can be read in more than one way"
        return PlainLine.of(read), ""
    except NotPlainError as error:
        return None, str(error)


def _names(look: _Look) -> frozenset[str] | None:
    firsts = [found.words[0] for found in look.found]
    if look.unseen or any(first.text is None or first.is_glob for first in firsts):
        return None
    names = frozenset(base_name(first.text or "") for first in firsts)
    names = names.union(*(found.pieces for found in look.found))
    return None if _globs(names) else names


def _globs(pieces: Iterable[str]) -> list[str]:
    """Returns the globs that a shell may replace by the name of a program."""
    return [piece for piece in pieces if GLOB.search(piece) and piece.strip("*[]")]


class _Look:
    """Collects everything that a line runs."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self._known: set[Found] = set()
        self.unseen = ""
        self._words = 0
        self._characters = 0

    @property
    def runs_shell(self) -> bool:
        """True if a shell is among the commands found."""
        return any(base_name(found.words[0].text or "") in SHELLS for found in self.found)

    def into_line(self, line: str, depth: int) -> None:
        """Analyzes a line and everything its commands run."""
        self._characters += len(line)
        if (
            depth > DEEPEST
            or len(line) > LONGEST
            or self._characters > MOST_CHARACTERS
            or max(line.count("<"), line.count("|")) > MOST_SIGNS
        ):
            self._miss("it runs too much to look at")
            return
        try:
            check_characters(line)
        except NotPlainError as error:
            self._miss(str(error))
        with contextlib.suppress(NotPlainError):
            for words in PlainLine.of(read_script(line)).commands:
                self.into_command(words, depth)
        forms = dict.fromkeys((line, CONTINUATION.sub("", line)))
        for form in forms:
            self._into_form(form, depth)

    def into_command(self, words: Sequence[Word], depth: int) -> None:
        """Analyzes a command and everything it runs."""
        if len(words) > LONGEST_COMMAND:
            words = (*words[:LONGEST_COMMAND], Word(None))
        if not self._note(Found(tuple(words)), depth):
            return
        if words[0].text is None or words[0].is_glob:
            self._miss("a command's name cannot be determined")
        self._into_places(words)
        for inner in inner_commands(words):
            if inner.unseen:
                self._miss(inner.unseen)
            elif inner.script is not None:
                self.into_line(inner.script, depth + 1)
            elif not inner.words:
                self._miss("what it runs cannot be determined")
            elif inner.is_certain:
                self.into_command(inner.words, depth + 1)
            else:
                self._note(Found(inner.words, is_certain=False), depth)

    def _into_places(self, words: Sequence[Word]) -> None:
        """Analyzes variables and file names that affect later commands."""
        name, *rest = (word.text or "" for word in words)
        if name in EXPORTING:
            halves = (each.partition("=") for each in rest)
            self.into_variables((each, value) for each, sign, value in halves if sign)
        if base_name(name) in PLACING and any(map(OPEN_FILES.fullmatch, rest)):
            self._miss(f"{name} may name what a program is given open")
        if is_opaque(words) and any(map(RUNS_SHELL.search, rest)):
            self._miss(f"{name} may hand a text to a shell")

    def into_variables(self, assigned: Iterable[tuple[str, str]]) -> None:
        """Analyzes variables that are set for a command, whose values it may run."""
        for name, value in assigned:
            if not harmless_variables([(name, value)]):
                if (
                    CODE_VARIABLE.match(f"{name}={value}")
                    or (COMMAND_VARIABLE.fullmatch(name) and not NO_COMMAND.fullmatch(value))
                    or is_expanded(value)
                    or RUNS_SHELL.search(value)
                    or names_stdin(value)
                ):
                    self._miss(f"{name} may run what is in {value!r}")
                self._note(Found((Word(f"{name}="), Word(value)), is_certain=False), 0)

    def _into_form(self, line: str, depth: int) -> None:
        try:
            root = parsed(line)
            for name, text, is_literal in values_in(root):
                if COMMAND_VARIABLE.fullmatch(name):
                    self.into_variables([(name, text.strip("'\""))])
                elif is_literal and (LATER.search(text) or RUNS_SHELL.search(text)):
                    self._miss(f"{name} has a text that the shell may expand later")
                    self.into_line(QUOTES.sub("", text), depth + 1)
            for words in commands_in(root):
                self.into_command(words, depth)
                if self._words > MOST_WORDS:
                    return
        except ValueError as error:  # invalid Unicode, or nested too deeply
            self._miss(str(error))
            return
        if root.has_error:
            self._miss("it cannot be parsed")
        if self.runs_shell:
            for script in scripts_in(root):
                self.into_line(script, depth + 1)

    def _note(self, found: Found, depth: int) -> bool:
        """Records a command; returns whether it is new."""
        self._words += len(found.words)
        if self._words > MOST_WORDS or depth > DEEPEST:
            self._miss("it runs too much to look at")
            return False
        if found in self._known:
            return False
        self._known.add(found)
        self.found.append(found)
        return True

    def _miss(self, reason: str) -> None:
        self.unseen = self.unseen or reason
