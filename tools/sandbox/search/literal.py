"""The texts without which a pattern cannot fit: a file that lacks them need not be taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _parser  # type: ignore[attr-defined]  # typeshed lacks it; the parser of `re` itself
from typing import Any

from tools.sandbox.search.narrowing import CASED, LAST_ASCII

__all__ = ["Literals"]

_MOST_GROUPS = 3
"""Groups that are looked for, those of the longest texts: each costs a look through a file."""

Node = tuple[Any, Any]
Group = tuple[str, ...]


class Literals:
    """Texts of ASCII, in groups: of each group, one is in every line in which a pattern fits.

    Args:
        pattern: A valid one of Python's `re`.
        ignore_case: Whether case is ignored.

    Attributes:
        groups: The texts; in lower case where the pattern ignores case.
    """

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        tree = _parser.parse(pattern, re.IGNORECASE if ignore_case else 0)
        self._folds = bool(tree.state.flags & re.IGNORECASE)
        found = sorted(_groups(tree, folds=self._folds), key=_least, reverse=True)[:_MOST_GROUPS]
        self.groups = [tuple(map(str.lower, group)) if self._folds else group for group in found]
        self._encoded = [[text.encode() for text in group] for group in self.groups]

    def may_be_in(self, data: bytes) -> bool:
        """Whether the pattern can fit in a file of these bytes, in UTF-8 or Latin-1."""
        if self._folds and self._encoded:
            data = data.lower()
        for group in self._encoded:
            for text in group:
                if text in data:
                    break
            else:
                return False
        return True


def _groups(nodes: Iterable[Node], *, folds: bool) -> Iterator[Group]:
    """What has to be there of nodes that follow each other.

    Args:
        nodes: What the parser made.
        folds: Whether case is ignored; letters that stand for others beyond ASCII are left out.
    """
    run = ""
    for kind, value in _flat(nodes):
        if kind == "LITERAL" and value <= LAST_ASCII and not (folds and chr(value) in CASED):
            run += chr(value)
        elif kind != "AT":
            yield from _lines(run)
            run = ""
            if kind == "BRANCH":
                yield from _either(value[1], folds=folds)
    yield from _lines(run)


def _flat(nodes: Iterable[Node]) -> Iterator[tuple[str, Any]]:
    """The nodes, with what is in groups that change no flags in their place."""
    for kind, value in nodes:
        if str(kind) == "SUBPATTERN" and not value[1] and not value[2]:
            yield from _flat(value[3])
        else:
            yield str(kind), value


def _lines(run: str) -> Iterator[Group]:
    """A run as it can be in single lines."""
    longest = max(run.split("\n"), key=len)
    if longest:
        yield (longest,)


def _either(branches: Iterable[Iterable[Node]], *, folds: bool) -> Iterator[Group]:
    """One group of the texts of all branches, where each has some."""
    texts: list[str] = []
    for branch in branches:
        best = max(_groups(branch, folds=folds), key=_least, default=())
        if not best:
            return
        texts += best
    yield tuple(texts)


def _least(group: Group) -> int:
    return min(map(len, group), default=0)
