"""Globs that may become options: a file can be called `-x` or `--exec=…`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tools.policy.shell.words import Word

__all__ = ["with_unseen_options"]

_BEGINS_OPTION = re.compile(r"[*?\[-]")
_ENDING_OPTIONS = "--"
_BY_OPTIONS = frozenset(
    {"bisect", "cherry-pick", "clone", "difftool", "fetch", "grep", "init", "pull", "push"}
    | {"rebase", "revert", "submodule"}
)
"""Subcommands of git that run what some of their options name."""


def with_unseen_options(words: Sequence[Word], name: str) -> Sequence[Word]:
    """Returns the words, those unseen that the shell may replace by something that is obeyed.

    Args:
        words: The command.
        name: Its base name.
    """
    if not any(word.is_glob for word in words):
        return words
    texts = [word.text or "" for word in words]
    if name == "git" and _BY_OPTIONS.isdisjoint(texts):
        return words
    return tuple(
        Word(None) if at and word.is_glob and _is_obeyed(texts, at, name) else word
        for at, word in enumerate(words)
    )


def _is_obeyed(texts: Sequence[str], at: int, name: str) -> bool:
    if name == "printf":  # its format alone
        return at == 1 or texts[at - 1] == _ENDING_OPTIONS
    if name in {"test", "["}:
        return texts[at - 1] in {"-v", "-R"}
    if name == "tar" and at == 1:  # which needs no dash
        return True
    return _BEGINS_OPTION.match(texts[at]) is not None and _ENDING_OPTIONS not in texts[:at]
