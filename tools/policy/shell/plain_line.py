r"""Plain lines, whose commands and files are all known, and what they may do without a rule.

Their words are literal, or variables of a loop over literal words. Lines with any other shell
syntax are not plain.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile, product

from tools.policy.shell.reader import MOST_WORDS
from tools.policy.shell.script import (
    Document,
    Item,
    Loop,
    NotPlainError,
    Redirect,
    Simple,
    Template,
)
from tools.policy.shell.words import OPERATORS, Word
from tools.policy.shell.wrappers import inner_commands, is_activation, runs_nothing

MOST_DIRECTORIES = 16  # limit on the directories a command may run in, after a series of `cd`

SETTING = frozenset(
    {".", "builtin", "command", "declare", "enable", "eval", "export", "getopts", "let", "local"}
    | {"mapfile", "read", "readarray", "readonly", "source", "trap", "typeset", "unset", "wait"}
)
"""Commands that may change a variable within a loop."""

MOVING = frozenset(
    {".", "builtin", "cd", "command", "enable", "eval", "popd", "pushd", "source", "trap"}
)
"""Commands after which the working directory may differ."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that a redirection opens."""

    path: str | None  # its path; None if unknown
    writes: bool  # whether it is opened for writing
    directories: tuple[str, ...] | None  # the directories it may be relative to; None if unknown

    def paths(self, cwd: str) -> tuple[str, ...] | None:
        """Returns all possible paths, given the line's initial directory; None if unknown."""
        if self.path is None:
            return None
        if self.path.startswith("/"):
            return (self.path,)
        if self.directories is None:
            return None
        return tuple(posixpath.join(cwd, each, self.path) for each in self.directories)


@dataclass(frozen=True, slots=True)
class Run:
    """A command of a plain line."""

    words: tuple[Word, ...]
    assigned: tuple[tuple[str, str], ...] = ()  # its variables, each as name and value
    opened: tuple[Opened, ...] = ()  # the files that its redirections open
    directories: tuple[str, ...] | None = (".",)  # where it may run; None if unknown


@dataclass(frozen=True, slots=True)
class PlainLine:
    """The commands of a line."""

    runs: tuple[Run, ...]  # its commands in order; those in a loop once for each value
    # The operators between them, with a line break as `;`; None if other syntax joins them.
    operators: tuple[str, ...] | None
    texts: tuple[str, ...] = ()  # texts of its here-documents and here-strings

    @classmethod
    def of(cls, script: Sequence[Item]) -> PlainLine:
        """Evaluates a parsed line; a NotPlainError if not everything it runs is known."""
        walk = _Walk()
        for item in script:
            walk.take(item)
        operators = None
        if all(isinstance(item, Simple) or item in OPERATORS for item in script):
            operators = tuple(item for item in script if isinstance(item, str))
        if operators is not None and len(operators) != len(walk.runs) - 1:
            operators = None
        return cls(tuple(walk.followed()), operators, tuple(walk.texts))

    @property
    def commands(self) -> tuple[tuple[Word, ...], ...]:
        """The words of each command."""
        return tuple(run.words for run in self.runs)

    @property
    def only_runs(self) -> bool:
        """True if it sets no variables, opens no files and has no texts."""
        return not self.texts and not any(run.assigned or run.opened for run in self.runs)


@dataclass(slots=True)
class _Walk:
    """The state while a line is evaluated."""

    runs: list[Run] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    _loops: list[dict[str, tuple[Word, ...]]] = field(default_factory=list)
    _head: dict[str, tuple[Word, ...]] = field(default_factory=dict)
    _directories: tuple[str, ...] | None = (".",)
    _moves_in_loop: bool = False
    _count: int = 0

    def followed(self) -> Iterator[Run]:
        """Yields the commands; drops directories that changes within a loop make uncertain."""
        for run in self.runs:
            opened = run.opened
            if self._moves_in_loop:
                opened = tuple(replace(each, directories=None) for each in opened)
            yield replace(run, opened=opened)

    def take(self, item: Item) -> None:
        """Evaluates the next item."""
        match item:
            case Simple():
                self._run(item)
            case Loop(name, values):
                if any(name in loop for loop in self._loops):
                    raise NotPlainError(f"two loops set {name}")
                self._head = {name: tuple(self._fill(values))}
            case Redirect():
                for known in self._values([item.target]):
                    self._add(1)
                    opened = (*self.runs[-1].opened, *self._open_files([item], known))
                    self.runs[-1] = replace(self.runs[-1], opened=opened)
            case "do":
                self._loops.append(self._head)
                self._head = {}
            case "done":
                self._loops.pop()

    def _run(self, simple: Simple) -> None:
        templates = (*simple.words, *(redirect.target for redirect in simple.redirects))
        for template in templates:
            if any(isinstance(piece, Document) for piece in template.pieces):
                self.runs.append(Run((Word("cat"),), directories=self._directories))
        for values in self._values(templates):
            words = tuple(word.filled(values) for word in simple.words)
            self._add(len(words))
            assigned = tuple((name, value.literal or "") for name, value in simple.assigned)
            opened = tuple(self._open_files(simple.redirects, values))
            self._check_loops(words)
            self.runs.append(Run(words, assigned, opened, self._directories))
            self._move(words)

    def _add(self, words: int) -> None:
        self._count += words
        if self._count > MOST_WORDS:
            raise NotPlainError(f"it has more than {MOST_WORDS} words")

    def _fill(self, templates: Iterable[Template]) -> Iterator[Word]:
        for template in templates:
            for values in self._values([template]):
                self._add(1)
                yield template.filled(values)

    def _values(self, templates: Iterable[Template]) -> Iterator[Mapping[str, Word]]:
        """Yields all combined values of the variables in some words."""
        known = {name: words for loop in self._loops for name, words in loop.items()}
        known["?"] = (Word("0", is_glob=True),)  # a number, which only `*` matches
        names = sorted({name for template in templates for name in template.variables})
        if any(name not in known for name in names):
            raise NotPlainError("it expands something ($)")
        for values in product(*(known[name] for name in names)):
            yield dict(zip(names, values, strict=True))

    def _open_files(
        self, redirects: Iterable[Redirect], values: Mapping[str, Word]
    ) -> Iterator[Opened]:
        for redirect in redirects:
            word = redirect.target.filled(values)
            if redirect.operator.startswith("<<"):
                self.texts.append(word.text or "")
            elif redirect.operator != ">&" and word.text != "/dev/null":
                path = None if word.is_glob else word.text
                yield Opened(path, redirect.operator != "<", self._directories)

    def _check_loops(self, words: Sequence[Word]) -> None:
        name, *rest = _without_time(words)
        changes = name in SETTING or (
            name == "printf" and any(word.startswith("-v") for word in rest)
        )
        if changes and any(self._loops):
            raise NotPlainError(f"{name} may set the variable of a loop")

    def _move(self, words: Sequence[Word]) -> None:
        """Evaluates `cd`, which may fail, or affect only a part of the line."""
        name, *rest = _without_time(words)
        if name not in MOVING or is_activation(words):
            return
        self._moves_in_loop = self._moves_in_loop or bool(self._loops)
        is_named = len(rest) == 1 and rest[0][:1] not in {"", "-"} and not words[-1].is_glob
        if self._directories is None or name != "cd" or not is_named:
            self._directories = None
            return
        moved = (posixpath.join(each, rest[0]) for each in self._directories)
        found = tuple(dict.fromkeys((*self._directories, *moved)))
        self._directories = found if len(found) <= MOST_DIRECTORIES else None


def _without_time(words: Sequence[Word]) -> list[str]:
    """Returns the words of a command, without the shell's `time`."""
    texts = [word.text or "" for word in words]
    if texts[0] == "time":
        return list(dropwhile({"time", "-p", "--"}.__contains__, texts)) or texts
    return texts


# There is no complete list of variables that decide what runs (PATH, LD_PRELOAD, NODE_OPTIONS …),
# so this lists some that are known not to.
VARIABLES = frozenset(
    {"CARGO_TERM_COLOR", "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "DEBUG", "FORCE_COLOR"}
    | {"GIT_TERMINAL_PROMPT", "HYPOTHESIS_PROFILE", "LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE"}
    | {"LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "LINES", "LOG_LEVEL", "NODE_ENV"}
    | {"NO_COLOR", "PIP_DISABLE_PIP_VERSION_CHECK", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"}
    | {"PYTHONIOENCODING", "PYTHONUNBUFFERED", "PYTHONUTF8", "RUST_BACKTRACE", "RUST_LOG"}
    | {"SOURCE_DATE_EPOCH", "TERM", "TZ"}
)
"""Variables that only change the amount or format of output."""

VALUE = re.compile(r"(?!.*\.\.)([\w*][\w.,:+@*=/ -]*)?", re.ASCII)
"""Values that are not a path through which a program could read another file."""

NUMBER = re.compile(r"\d{0,3}", re.ASCII)
PART = re.compile(r"(-\d+|-[nc] ?[+-]?\d+)?", re.ASCII)
COUNTS = re.compile(r"(-[lwcm]+)?")
SET_OPTION = re.compile(r"[-+][eux]+|-[eux]*o|pipefail")
WRITING = frozenset({"dd", "tee"})
BELOW = re.compile(r"(?!.*(?:^|/)\.\.(?:/|$))[^/].*", re.DOTALL)
"""Paths that lead down from any directory."""

BEYOND = re.compile(r"/|.*\.\.", re.DOTALL)  # words that may be paths outside the root


def harmless_variables(assigned: Iterable[tuple[str, str]]) -> list[str]:
    """Returns the variables that do not affect what runs, each as `name=value`."""
    return [
        f"{name}={value}"
        for name, value in assigned
        if (name in VARIABLES and VALUE.fullmatch(value))
        or (name in {"PAGER", "GIT_PAGER"} and value == "cat")
    ]


def may_hide(line: PlainLine) -> bool:
    """Returns whether texts or written files may contain commands that are not analyzed as such."""
    for at, run in enumerate(line.runs):
        paths = [opened.path or "" for opened in run.opened if opened.writes]
        if run.words[0].text in WRITING:
            paths += [word.text or "" for word in run.words[1:]]
        is_git = any(".git" in path for path in paths)
        if paths and not all(runs_nothing(later.words, is_git) for later in line.runs[at + 1 :]):
            return True
    return bool(line.texts)


def is_harmless(run: Run, is_beneath: Callable[[Run, str], bool]) -> bool:
    """Returns whether a command may run without a rule, if no rule is about it."""
    name, *rest = (word.text or "" for word in run.words)
    globs = [word.text or "" for word in run.words if word.is_glob]
    if name in {"echo", "printf"}:
        return all(map(BELOW.fullmatch, globs)) and not inner_commands(run.words)
    if globs:
        return False
    if name == "cd":
        where = "".join(rest)
        is_named = len(rest) == 1 and where[:1] not in {"", "-"}
        return is_named and (bool(BELOW.fullmatch(where)) or is_beneath(run, where))
    if name in {"test", "["}:
        return not any(map(BEYOND.match, rest)) and not inner_commands(run.words)
    return name in BUILTINS and BUILTINS[name](rest)


def _sets_options(words: Sequence[str]) -> bool:
    # `pipefail` may be only where a name is due.
    follows = [word == "pipefail" for word in (*words[1:], "")]
    asks = [word.endswith("o") for word in words]
    return bool(words) and asks == follows and all(map(SET_OPTION.fullmatch, words))


def _exports(words: Sequence[str]) -> bool:
    assigned = [(name, value) for name, _, value in (word.partition("=") for word in words)]
    return len(harmless_variables(assigned)) == len(words) > 0


BUILTINS: dict[str, Callable[[Sequence[str]], bool]] = {
    **dict.fromkeys(("true", "false", ":"), lambda _words: True),
    "cat": lambda words: set(words) <= {"-"},  # prints a here-document or its standard input
    "wait": lambda words: not words,
    **dict.fromkeys(("head", "tail"), lambda words: bool(PART.fullmatch(" ".join(words)))),
    "wc": lambda words: bool(COUNTS.fullmatch(" ".join(words))),
    "exit": lambda words: len(words) <= 1 and all(map(NUMBER.fullmatch, words)),
    "export": _exports,
    "pwd": lambda words: set(words) <= {"-L", "-P"},
    "set": _sets_options,
}
"""Returns, for each builtin, whether its arguments change nothing."""
