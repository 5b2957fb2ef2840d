"""What git runs besides itself: subcommands and options that name a program or a script.

From git-bisect(1), git-submodule(1), git-rebase(1), git-difftool(1), git-grep(1), git-clone(1) and
git-filter-branch(1). What its settings name is kept from programs (docs/confinement.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tools.policy.shell.inner import Inner
from tools.policy.shell.words import Word

__all__ = ["inner_of_git"]

_SCRIPTS = {
    "rebase": re.compile(r"-x|--exec?"),
    "difftool": re.compile(r"-x|--extc(m(d?))?"),
}
"""Options whose value is a script, by the subcommand."""

_PROGRAMS = {
    "clone": re.compile(r"-u.*|-c.*|--conf.*|--templ.*", re.DOTALL),
    "grep": re.compile(r"-[A-Za-z]*O.*|--op.*", re.DOTALL),
    "init": re.compile(r"--templ.*", re.DOTALL),
}
"""Options that name a program, or settings that do, by the subcommand."""

_RUNNING = frozenset({"filter-branch", "hook", "mergetool", "instaweb", "send-email", "daemon"})
"""Subcommands that run others in ways that are not looked into."""


def inner_of_git(words: Sequence[Word]) -> Iterator[Inner]:
    """Yields what git runs; a word that may be the value of an option counts as a subcommand too.

    Args:
        words: The command.
    """
    for at, word in enumerate(words[1:], start=1):
        rest = words[at + 1 :]
        match word.text:
            case "run" if words[at - 1].text == "bisect" and rest:
                yield Inner(at + 1, words=tuple(rest))
            case "foreach" if any(each.text == "submodule" for each in words[1:at]):
                yield from _script(rest, at + 1)
            case text if text in _SCRIPTS:
                yield from _option_scripts(_SCRIPTS[text], rest, at + 1)
            case text if text in _PROGRAMS:
                yield from _option_programs(_PROGRAMS[text], rest, at + 1, text)
            case text if text in _RUNNING:
                yield Inner(at, unseen=f"what git {text} runs cannot be determined")


def _script(words: Sequence[Word], at: int) -> Iterator[Inner]:
    """The words behind the options, which a shell is given joined."""
    for skipped, word in enumerate(words):
        if word.text is not None and word.text.startswith("-"):
            continue
        script = " ".join(each.text or "$x" for each in words[skipped:])
        yield Inner(at + skipped, script=script)
        return


def _option_scripts(options: re.Pattern[str], words: Sequence[Word], at: int) -> Iterator[Inner]:
    for place, word in enumerate(words):
        name, _, value = (word.text or "").partition("=")
        if options.fullmatch(name):
            following = words[place + 1].text if place + 1 < len(words) else ""
            yield Inner(at + place + (not value), script=value or following or "$x")
        elif name.startswith("-x"):
            yield Inner(at + place, script=name.removeprefix("-x"))


def _option_programs(
    options: re.Pattern[str], words: Sequence[Word], at: int, subcommand: str
) -> Iterator[Inner]:
    for place, word in enumerate(words):
        if word.text is not None and options.fullmatch(word.text):
            yield Inner(at + place, unseen=f"git {subcommand} runs what {word.text!r} names")
