"""Finds what sed runs: nothing, if its script has a form known to run nothing.

`e` and the flag `e` of `s` run a shell command (sed(1), "Commands specific to GNU sed").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tools.policy.shell.inner import Inner
from tools.policy.shell.words import Word


def _command(inside: str) -> re.Pattern[str]:
    """Builds the pattern of a command that runs nothing and uses no other file."""
    # `inside` matches what brackets may hold; DELIMITER stands for the end of the regex.
    items = rf"(?:\[:[a-z]+:\]|\[(?![:.=])|\\[^\]\n]|{inside})*"
    regex = rf"(?:\\[^c]|\[\^?+\]?+{items}\]|(?!DELIMITER)[^\[\\\n])*DELIMITER"
    line = rf"(?:\d+(?:~\d+)?|\$|/{regex.replace('DELIMITER', '/')}[IM]*)"
    address = rf"(?:{line}(?:\s*,\s*(?:{line}|[+~]\d+))?\s*!?\s*)?"
    s_regex = regex.replace("DELIMITER", "(?P=s)")
    s = rf"s(?P<s>[^][\\\n;\s]){s_regex}(?:\\.|(?!(?P=s))[^\\\n])*(?P=s)[gpIiMm\d]*"
    y = r"y(?P<y>[^][\\\n;\s])" + (r"(?:\\.|(?!(?P=y))[^\[\\\n])*(?P=y)" * 2)
    return re.compile(
        rf"[\s;{{}}]*{address}(?:\{{|(?:{s}|{y}|[=dDgGhHnNpPxz]|[qQ]\d*|l\d*"
        r"|[:bt]\s*\w*|[aic](?:\\\n|[^\S\n]*)[^\\\n]*(?=\n|$))?\s*(?=[;}\n]|$))",
        re.DOTALL,
    )


# Implementations may disagree on whether a delimiter in brackets ends the regex. If there is
# one, the script must not contain letters that run a command or access a file.
_CERTAIN = _command(r"(?!DELIMITER)[^\]\[\\\n]")
_EITHER = _command(r"[^\]\[\\\n]")
_ACTS = re.compile(r"[eErRwW]")

_FLAGS = re.compile(
    r"-[nErsuz]+|-i.*|--(quiet|silent|regexp-extended|separate|unbuffered|null-data|in-place.*"
    r"|posix|debug|sandbox|line-length=\d+|help|version)"
)
_SCRIPT = re.compile(r"-[nErsuz]*e|--expression")


def inner_of_sed(words: Sequence[Word]) -> Iterator[Inner]:
    """Yields the positions where sed may run something."""
    scripts: list[int] = []
    operands: list[int] = []
    for at, word in enumerate(words[1:], start=1):
        before = words[at - 1].text or ""
        if word.text is None:
            yield Inner(at, unseen="the words of sed cannot be determined")
        elif at > 1 and _SCRIPT.fullmatch(before):
            scripts.append(at)
        elif not word.text.startswith("-") or word.text == "-":
            operands.append(at)
        elif word.text.startswith("--expression="):
            scripts.append(at)
        elif not (_FLAGS.fullmatch(word.text) or _SCRIPT.fullmatch(word.text)):
            yield Inner(at, unseen=f"what sed {word.text} runs cannot be determined")
    for at in scripts or operands[:1]:
        script = words[at].text
        if script is None or not _runs_nothing(script.removeprefix("--expression=")):
            yield Inner(at, unseen="sed may run what its script names")


def _runs_nothing(script: str) -> bool:
    return _consists_of(_CERTAIN, script) or (
        _ACTS.search(script) is None and _consists_of(_EITHER, script)
    )


def _consists_of(command: re.Pattern[str], script: str) -> bool:
    at = 0
    while at < len(script):
        found = command.match(script, at)
        if found is None or (found.end() == at and script[at] not in ";}\n"):
            return False
        at = max(found.end(), at + 1)
    return True
