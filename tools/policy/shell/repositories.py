"""Command lines that change repositories and run nothing else, so that all writes are known.

Programs may not write a repository's settings, since these name other programs that git runs. The
exception is a line of only git and a few commands that run nothing, with literal words. Git itself
must not run anything either: not through its arguments nor, for `_LEADING_ON`, through the hooks
and settings of the repository, which the caller has to rule out.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tools.policy.shell.shell_command import ShellCommand
from tools.sandbox.processes.models import RepositoryWork
from tools.sandbox.processes.protection.repository_config import is_harmless_setting

_OPERATORS = frozenset({"&&", "||", ";"})

_INERT = frozenset({"cd", "echo", "ls", "mkdir", "pwd", "true"})
"""Commands that run nothing and change no file."""

_REMOVING = frozenset({"-r", "-R", "-f", "-rf", "-fr", "-Rf", "--recursive", "--force", "--"})

_LEADING_ON = {
    "checkout": frozenset({"-b", "-B", "-q", "--quiet", "-t", "--track", "--no-track", "--detach"}),
    "clone": frozenset({"-q", "--quiet", "-b", "--branch", "--depth", "--single-branch", "--bare"}),
    "fetch": frozenset({"-q", "--quiet", "-p", "--prune", "--all", "--tags"}),
    "push": frozenset({"-u", "--set-upstream", "-q", "--quiet", "-f", "--force", "--tags"}),
    "switch": frozenset({"-c", "-C", "-q", "--quiet", "-t", "--track", "--no-track", "--detach"}),
    "worktree": frozenset({"-b", "-B", "-q", "--quiet", "--detach", "--track", "-f", "--force"}),
}
"""Subcommands that run what hooks and settings name, with their options that run no more."""

_WRITING_FILES = frozenset({"checkout", "clone", "switch", "worktree"})
"""Subcommands that may write a repository with its own hooks and settings as ordinary files."""

_REMOVING_FILES = ("worktree", "remove")

_SWITCHING = frozenset({"checkout", "switch"})

_TRACKING = frozenset({"checkout", "switch", "worktree"})
_UPSTREAM = frozenset({"-u", "--set-upstream"})
"""Options that change settings: they make a branch track another."""

_BRANCH = frozenset(
    {"-m", "-M", "-c", "-C", "-d", "-D", "-f", "-q", "-r", "-t", "-u", "--move", "--copy"}
    | {"--delete", "--force", "--quiet", "--remotes", "--track", "--no-track"}
    | {"--set-upstream-to", "--unset-upstream"}
)
_INIT = frozenset({"-q", "--quiet", "-b", "--initial-branch", "--bare"})
_CONFIG = frozenset({"--local", "--add", "--unset", "--unset-all", "--replace-all"})
_LISTING = {
    "branch": frozenset({"-a", "--all", "-r", "-v", "-vv", "--list", "--show-current"}),
    "config": frozenset({"-l", "--list", "--local"}),
    "remote": frozenset({"-v"}),
}
"""Options with which these change nothing, without other words."""

_REMOTE = {
    "add": frozenset({"-t", "-m", "--tags", "--no-tags"}),
    "rename": frozenset[str](),
    "remove": frozenset[str](),
    "rm": frozenset[str](),
    "set-branches": frozenset({"--add"}),
    "set-url": frozenset({"--push", "--add", "--delete"}),
}


@dataclass(slots=True)
class _Line:
    """The state of the analysis of a line."""

    place: str = "."  # the working directory of the next command, if none failed before
    configures: bool = False  # whether it changes settings
    leads_on: bool = False  # whether git runs what hooks and settings name
    switches: bool = False  # whether it switches to another branch
    writes_files: bool = False  # whether it has written files that git might obey
    removes: list[str] = field(default_factory=list)  # the paths that it removes

    def take(self, words: Sequence[str]) -> bool:
        """Analyzes a command; returns whether it is known to run nothing else."""
        match words:
            case ["git", *rest]:
                return self._take_git(rest)
            case ["rm", *rest]:
                options = [word for word in rest if word.startswith("-")]
                paths = [word for word in rest if not word.startswith("-")]
                self.removes += [posixpath.join(self.place, path) for path in paths]
                return set(options) <= _REMOVING
            case ["cd", to]:
                self.place = posixpath.join(self.place, to)
                return not to.startswith("-")
            case [name, *_]:
                return name in _INERT
        return False

    def _take_git(self, words: Sequence[str]) -> bool:
        if self.writes_files:
            return False
        while words[:1] == ["-C"]:
            words = words[2:]
        match words:
            case [name, *rest] if name in _LISTING and _LISTING[name].issuperset(rest):
                return True
            case ["config", *rest]:
                is_known = _is_harmless_config(rest)
            case ["remote", kind, *rest] if kind in _REMOTE:
                is_known = _has_only(_REMOTE[kind], rest)
            case ["branch", *rest]:
                is_known = _has_only(_BRANCH, rest)
            case ["init", *rest]:
                is_known = _has_only(_INIT, rest)
            case [name, *rest] if name in _LEADING_ON:
                return self._lead_on(name, rest)
            case _:
                return False
        self.configures = True
        return is_known

    def _lead_on(self, name: str, words: Sequence[str]) -> bool:
        self.leads_on = True
        self.switches = self.switches or name in _SWITCHING
        self.writes_files = name in _WRITING_FILES and (name, *words[:1]) != _REMOVING_FILES
        is_tracking = name in _TRACKING or not _UPSTREAM.isdisjoint(words)
        self.configures = self.configures or is_tracking
        return _has_only(_LEADING_ON[name], words)


@lru_cache(maxsize=128)  # like the analysis itself
def repository_work(line: str) -> RepositoryWork | None:
    """Returns what a line does to repositories; None if it may run anything else."""
    plain = ShellCommand.parse(line).plain
    if plain is None or not plain.only_runs:
        return None
    if plain.operators is None or not _OPERATORS.issuperset(plain.operators):
        return None
    found = _Line()
    for command in plain.commands:
        words = [word.text for word in command if word.text is not None and not word.is_glob]
        if len(words) < len(command) or not found.take(words):
            return None
    if not (found.configures or found.removes):
        return None
    return RepositoryWork(
        configures=found.configures,
        leads_on=found.leads_on,
        switches=found.switches,
        removes=tuple(found.removes),
    )


def _has_only(options: frozenset[str], words: Sequence[str]) -> bool:
    """Returns whether words are only these options, and operands that name no program."""
    return all(
        word.partition("=")[0] in options if word.startswith("-") else "::" not in word
        for word in words
    )


def _is_harmless_config(words: Sequence[str]) -> bool:
    options = [word for word in words if word.startswith("-")]
    match [word for word in words if not word.startswith("-")]:
        case ["set" | "unset", key, *values] | [key, *values] if len(values) <= 1:
            return _CONFIG.issuperset(options) and is_harmless_setting(key, *values)
    return False
