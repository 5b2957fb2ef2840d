"""Finds what git runs: subcommands and options that name a program or a script.

From git-bisect(1), git-submodule(1), git-rebase(1), git-difftool(1), git-grep(1), git-clone(1) and
git-filter-branch(1). Programs cannot write the settings of git (docs/confinement.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tools.policy.shell.words import Inner, Word

_SCRIPTS = {
    "rebase": re.compile(r"-[A-Za-z]*x|--exe?c?"),
    "difftool": re.compile(r"-[A-Za-z]*x|--extc(m(d?))?"),
}
"""Options whose value is a script, by subcommand."""

_JOINED_SCRIPT = re.compile(r"-[A-Za-z]*?x(.+)", re.DOTALL)

_PROGRAMS = {
    "clone": re.compile(r"-\w*[cu].*|--c.*|--te.*", re.DOTALL),
    "grep": re.compile(r"-[A-Za-z]*O.*|--op.*", re.DOTALL),
    "init": re.compile(r"--t.*", re.DOTALL),
    **dict.fromkeys(("archive", "fetch-pack", "push", "send-pack"), re.compile(r"--(exe|rec).*")),
}
"""Options that name a program, or settings that do, by subcommand."""

_STRATEGIES = {
    **dict.fromkeys(
        ("pull", "rebase"), re.compile(r"(?:-[^-CSXxs]*s|--str[a-z]*(?:=|$))(.*)", re.DOTALL)
    ),
    **dict.fromkeys(("cherry-pick", "revert"), re.compile(r"--str[a-z]*(?:=|$)(.*)", re.DOTALL)),
}
"""Options that take a merge strategy: git runs an unknown one as a program."""

_KNOWN_STRATEGIES = frozenset({"octopus", "ort", "ours", "recursive", "resolve", "subtree"})

_RUNNING = frozenset({"filter-branch", "hook", "mergetool", "instaweb", "send-email", "daemon"})
"""Subcommands that run others in ways this module does not analyze."""

_NAMES = """
    add am apply archive bisect blame branch bundle cat-file check-ignore checkout cherry
    cherry-pick clean clone commit describe diff difftool fetch for-each-ref format-patch fsck gc
    grep help init log ls-files ls-remote ls-tree merge merge-base mv name-rev notes pull push
    range-diff rebase reflog remote reset restore rev-list rev-parse revert rm shortlog show
    show-ref stage stash status submodule switch tag update-index version worktree
"""
_DATA = frozenset(_NAMES.split())
"""Subcommands whose arguments are data, except for the options above."""

_VALUED = frozenset({"-C", "-c", "--git-dir", "--namespace", "--super-prefix", "--work-tree"})
_PLUMBING = {"http-push": "push", "send-pack": "push", "fetch-pack": "fetch"}
"""Subcommands that do the same as another."""


def takes_data(words: Sequence[Word]) -> bool:
    """Returns whether the arguments of git's subcommand are known to be data."""
    return _subcommand(words).text in _DATA


def _subcommand(words: Sequence[Word]) -> Word:
    texts = [word.text or "" for word in words]
    for at, text in enumerate(texts[1:], start=1):
        if not text.startswith("-") and texts[at - 1] not in _VALUED:
            return words[at]
    return Word("help")  # git alone


def inner_of_git(words: Sequence[Word]) -> Iterator[Inner]:
    """Yields what git runs; possible option values count as subcommands too."""
    yield from _other_names(words)
    for at, word in enumerate(words[1:], start=1):
        rest = words[at + 1 :]
        if strategy := _STRATEGIES.get(word.text or ""):
            yield from _strategies(strategy, rest, at + 1)
        match word.text:
            case "run" if words[at - 1].text == "bisect" and rest:
                yield Inner(at + 1, words=tuple(rest))
            case "view" | "visualize" if words[at - 1].text == "bisect" and rest:
                yield Inner(at + 1, unseen="git bisect runs what it shows with")
            case "foreach" if any(each.text == "submodule" for each in words[1:at]):
                yield from _script(rest, at + 1)
            case text if text in _SCRIPTS:
                yield from _option_scripts(_SCRIPTS[text], rest, at + 1)
            case text if text in _PROGRAMS:
                yield from _option_programs(_PROGRAMS[text], rest, at + 1, text)
            case text if text in _RUNNING:
                yield Inner(at, unseen=f"what git {text} runs cannot be determined")


def _other_names(words: Sequence[Word]) -> Iterator[Inner]:
    """Yields the subcommand under another name, and addresses that name a program."""
    command = _subcommand(words)
    if name := _PLUMBING.get(command.text or ""):
        same = (Word(name) if word is command else word for word in words)
        yield Inner(0, words=tuple(same), is_certain=False)
    for at, word in enumerate(words):
        if (word.text or "").startswith(("ext::", "fd::")):
            yield Inner(at, unseen=f"git runs what {word.text!r} names")


def _script(words: Sequence[Word], at: int) -> Iterator[Inner]:
    """Yields the words after the options, joined into a script for a shell."""
    for skipped, word in enumerate(words):
        if word.text is not None and word.text.startswith("-"):
            continue
        script = " ".join(each.text or "$x" for each in words[skipped:])
        yield Inner(at + skipped, script=script)
        return


def _option_scripts(options: re.Pattern[str], words: Sequence[Word], at: int) -> Iterator[Inner]:
    for place, word in enumerate(words):
        text = word.text or ""
        name, _, value = text.partition("=") if text.startswith("--") else (text, "", "")
        if options.fullmatch(name):
            following = words[place + 1].text if place + 1 < len(words) else ""
            yield Inner(at + place + (not value), script=value or following or "$x")
        elif joined := _JOINED_SCRIPT.fullmatch(text):
            yield Inner(at + place, script=joined[1])


def _strategies(options: re.Pattern[str], words: Sequence[Word], at: int) -> Iterator[Inner]:
    for place, (word, following) in enumerate(pairwise([*words, Word("")])):
        found = options.fullmatch(word.text or "")
        if found and (found[1] or following.text) not in _KNOWN_STRATEGIES:
            yield Inner(at + place, unseen=f"git runs what {word.text!r} names")


def _option_programs(
    options: re.Pattern[str], words: Sequence[Word], at: int, subcommand: str
) -> Iterator[Inner]:
    for place, word in enumerate(words):
        if word.text is not None and options.fullmatch(word.text):
            yield Inner(at + place, unseen=f"git {subcommand} runs what {word.text!r} names")
