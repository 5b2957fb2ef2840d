"""What sed runs besides itself: nothing, if its script is of a form that is known to run nothing.

`e` and the flag `e` of `s` run a shell's line (sed(1), "Commands specific to GNU sed").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tools.policy.shell.inner import Inner
from tools.policy.shell.words import Word

_REGEX = r"/(?:\\.|[^/\\\n])*/[IM]*"
_LINE = rf"(?:\d+(?:~\d+)?|\$|{_REGEX})"
_ADDRESS = rf"(?:{_LINE}(?:\s*,\s*(?:{_LINE}|[+~]\d+))?\s*!?\s*)?"
_SUBSTITUTION = "s(?P<s>[^\\\\\n;\\s])" + (r"(?:\\.|(?!(?P=s))[^\\])*(?P=s)" * 2) + r"[gpIiMm\d]*"
_TRANSLITERATION = "y(?P<y>[^\\\\\n;\\s])" + (r"(?:\\.|(?!(?P=y))[^\\])*(?P=y)" * 2)
_COMMAND = re.compile(
    rf"[\s;{{}}]*{_ADDRESS}(?:\{{|(?:{_SUBSTITUTION}|{_TRANSLITERATION}|[=dDgGhHnNpPxz]|[qQ]\d*|l\d*"
    r"|[:bt]\s*\w*|[aic](?:\\\n|\s*)[^\\\n]*(?=\n|$))?\s*(?=[;}\n]|$))",
    re.DOTALL,
)
"""One command that runs nothing, and reads and writes no other file."""

_FLAGS = re.compile(
    r"-[nErsuz]+|-i.*|--(quiet|silent|regexp-extended|separate|unbuffered|null-data|in-place.*"
    r"|posix|debug|sandbox|line-length=\d+|help|version)"
)
_SCRIPT = re.compile(r"-[nErsuz]*e|--expression")


def inner_of_sed(words: Sequence[Word]) -> Iterator[Inner]:
    """Yields where sed may run something.

    Args:
        words: The command.
    """
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
    at = 0
    while at < len(script):
        found = _COMMAND.match(script, at)
        if found is None or (found.end() == at and script[at] not in ";}\n"):
            return False
        at = max(found.end(), at + 1)
    return True
