"""What a line may do without a rule: shell builtins that change nothing outside the shell.

There is no complete list of the variables that decide what runs (PATH, LD_PRELOAD, GIT_SSH_COMMAND,
NODE_OPTIONS …), so this lists the ones known to be safe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from tools.policy.shell.plain_line import PlainLine, Run
from tools.policy.shell.wrappers import inner_commands, runs_nothing

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

BEYOND = re.compile(r"/|.*\.\.", re.DOTALL)
"""Words that may be paths outside the root."""


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
    """Returns whether the words only set options, with `pipefail` only where a name is due."""
    follows = [word == "pipefail" for word in (*words[1:], "")]
    asks = [word.endswith("o") for word in words]
    return bool(words) and asks == follows and all(map(SET_OPTION.fullmatch, words))


def _exports(words: Sequence[str]) -> bool:
    assigned = [(name, value) for name, _, value in (word.partition("=") for word in words)]
    return len(harmless_variables(assigned)) == len(words) > 0


def _is_exit_code(words: Sequence[str]) -> bool:
    return len(words) <= 1 and all(map(NUMBER.fullmatch, words))


BUILTINS: dict[str, Callable[[Sequence[str]], bool]] = {
    **dict.fromkeys(("true", "false", ":"), lambda _words: True),
    "cat": lambda words: set(words) <= {"-"},  # prints a here-document or its standard input
    "wait": lambda words: not words,
    **dict.fromkeys(("head", "tail"), lambda words: bool(PART.fullmatch(" ".join(words)))),
    "wc": lambda words: bool(COUNTS.fullmatch(" ".join(words))),
    "exit": _is_exit_code,
    "export": _exports,
    "pwd": lambda words: set(words) <= {"-L", "-P"},
    "set": _sets_options,
}
"""Returns, for each builtin, whether its arguments change nothing."""
