"""Of findings that say the same, only the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.retrieval.inquiry import Finding
from storage.retrieval.wording import decisive

__all__ = ["distinct"]

ALIKE = 0.9
"""Share of all their words that two texts have in common if they say the same."""

LONG_WORD = 15
"""Characters of a word on average, from which a text is taken to have no spaces."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What other findings are compared by."""

    origin: str
    text: str
    words: frozenset[str]


def distinct(
    findings: Sequence[Finding], limit: int, told: Sequence[frozenset[str]] = ()
) -> list[Finding]:
    """The best findings without those that say what a better one says.

    That is the same text wherever it comes from, or nearly the same words in another origin; of one
    origin, what differs a little is another version. Numbers and negations have to be the same. An
    entry goes where all that it tells of was found.

    Args:
        findings: Best first.
        limit: How many are wanted.
        told: For each, the ids of the contexts that it tells of; none where it is a passage.
    """
    found = {each.hit.context.id for each in findings if each.hit is not None}
    chosen: list[Finding] = []
    kept: list[_Kept] = []
    for number, finding in enumerate(findings):
        if len(chosen) == limit:
            break
        if told and told[number] and told[number] <= found:
            continue
        fresh = _Kept(finding.origin, *_normalized(finding))
        if not any(_say_the_same(each, fresh) for each in kept):
            chosen.append(finding)
            kept.append(fresh)
    return chosen


def _normalized(finding: Finding) -> tuple[str, frozenset[str]]:
    text = ""
    if finding.hit is not None:
        text = finding.hit.chunk.content
    elif finding.entry is not None:
        text = finding.entry.text
    words = text.casefold().split()
    text = " ".join(words)
    if len(text) > LONG_WORD * len(words):
        return text, frozenset(text[at : at + 2] for at in range(len(text) - 1))
    return text, frozenset(words)


def _say_the_same(one: _Kept, other: _Kept) -> bool:
    if one.text == other.text:
        return True
    fewer, more = sorted((len(one.words), len(other.words)))
    if one.origin == other.origin or fewer < ALIKE * more:
        return False
    common = len(one.words & other.words)
    alike = common >= ALIKE * (fewer + more - common)
    return alike and decisive(one.text) == decisive(other.text)
