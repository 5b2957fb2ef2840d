"""Finds command patterns that allow more than they seem to, through programs that run others.

`find`, `sed`, `env` and the like name what they run in their words, which needs its own rule. For
the programs here no list of such words can be complete: git aliases, hooks, makefiles and code
files decide what runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tools.policy.shell.interpreters import CODE, INTERPRETERS, SHELLS
from tools.policy.shell.operands import RUNNING_WORDS
from tools.policy.shell.words import CommandPattern, LinePattern
from tools.policy.shell.wrapper_options import RUNNERS
from tools.policy.shell.wrappers import INVISIBLE

_BUILDS = frozenset({"make", "gmake", "ninja", "just", "rake", "gradle", "mvn", "ant", "bazel"})
_SUBCOMMANDS = frozenset({"git", "hg", "svn", "cargo", "dotnet", *RUNNING_WORDS, *RUNNERS})
_EXAMPLES = {"git": "git status *", "make": "make test", "npm": "npm test *", "uv": "uv sync *"}


def open_ended(line: LinePattern) -> Iterator[str]:
    """Yields the name of each unrestricted program, and what a rule should name."""
    for command in line.commands:
        name = command.name
        if name and _is_open(command, name) and (advice := _advice(name)):
            yield f"{name} can be made to run: {advice}"


def _is_open(command: CommandPattern, name: str) -> bool:
    """Returns whether a pattern names only a program, or lets it run its arguments."""
    if len(command.words) == 1:
        return False
    first, *others = command.words[1:]
    if first is None or not _runs_code(name):
        return first is None
    return CODE.fullmatch(first.text) is not None and None in others


def _runs_code(name: str) -> bool:
    return name in SHELLS or INTERPRETERS.fullmatch(name) is not None


def _advice(name: str) -> str:
    example = f", as in bash({_EXAMPLES[name]})" if name in _EXAMPLES else ""
    if name in _BUILDS:
        return f"name the targets{example}"
    if name in _SUBCOMMANDS:
        return f"name the subcommands{example}"
    if _runs_code(name):
        return f"name the files, as in bash({name} scripts/check *)"
    return f"name what it runs, as in bash({name} NAME *)" if name in INVISIBLE else ""
