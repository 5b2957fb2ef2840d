"""What a line may do without a rule: commands of the shell itself that change nothing outside it.

Variables that say what is run (PATH, LD_PRELOAD, GIT_SSH_COMMAND, NODE_OPTIONS …) have no complete
list, so that those are listed of which it is known that they do not.
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
"""Variables by which programs say more or less, or say it otherwise, and run nothing else."""

VALUE = re.compile(r"(?!.*\.\.)([\w*][\w.,:+@*=/ -]*)?", re.ASCII)
"""No path by which a program would read another file."""

NUMBER = re.compile(r"\d{0,3}", re.ASCII)
PART = re.compile(r"(-\d+|-[nc] ?[+-]?\d+)?", re.ASCII)
COUNTS = re.compile(r"(-[lwcm]+)?")
SET_OPTION = re.compile(r"[-+][eux]+|-[eux]*o|pipefail")
WRITING = frozenset({"dd", "tee"})
BELOW = re.compile(r"(?!.*(?:^|/)\.\.(?:/|$))[^/].*", re.DOTALL)
"""Paths that lead down, wherever they begin."""

BEYOND = re.compile(r"/|.*\.\.", re.DOTALL)
"""Words that may be paths of something else than what is beneath the root."""


def harmless_variables(assigned: Iterable[tuple[str, str]]) -> list[str]:
    """Those that change nothing of what is run, each as name and value.

    Args:
        assigned: Variables, each as name and value.
    """
    return [
        f"{name}={value}"
        for name, value in assigned
        if (name in VARIABLES and VALUE.fullmatch(value))
        or (name in {"PAGER", "GIT_PAGER"} and value == "cat")
    ]


def may_hide(line: PlainLine) -> bool:
    """Whether commands may stand in what is not looked at as one: in texts, and files it writes."""
    for at, run in enumerate(line.runs):
        paths = [opened.path or "" for opened in run.opened if opened.writes]
        if run.words[0].text in WRITING:
            paths += [word.text or "" for word in run.words[1:]]
        is_git = any(".git" in path for path in paths)
        if paths and not all(runs_nothing(later.words, is_git) for later in line.runs[at + 1 :]):
            return True
    return bool(line.texts)


def is_harmless(run: Run, is_beneath: Callable[[Run, str], bool]) -> bool:
    """Whether a command may run without a rule, where no rule is about it.

    Args:
        run: The command.
        is_beneath: Whether a path is beneath the root, from wherever the command may run.
    """
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
    """Whether only options are set, and `pipefail` stands exactly where a name is asked for."""
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
    "cat": lambda words: set(words) <= {"-"},  # a here-document, or what a pipe gives it
    "wait": lambda words: not words,
    **dict.fromkeys(("head", "tail"), lambda words: bool(PART.fullmatch(" ".join(words)))),
    "wc": lambda words: bool(COUNTS.fullmatch(" ".join(words))),
    "exit": _is_exit_code,
    "export": _exports,
    "pwd": lambda words: set(words) <= {"-L", "-P"},
    "set": _sets_options,
}
"""Whether the words behind the name of each change nothing."""
