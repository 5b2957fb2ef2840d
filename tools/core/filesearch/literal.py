"""The text without which a pattern cannot fit: a file that lacks it need not be taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _parser  # type: ignore[attr-defined]  # typeshed lacks it; the parser of `re` itself
from typing import Any

from tools.core.filesearch.narrowing import CASED, LAST_ASCII

__all__ = ["literal_of"]


def literal_of(pattern: str, *, ignore_case: bool) -> str:
    """The longest text of ASCII that is in every line in which a pattern fits; empty if none.

    Args:
        pattern: A valid one of Python's `re`.
        ignore_case: Whether case is ignored; the text is in lower case then.
    """
    tree = _parser.parse(pattern, re.IGNORECASE if ignore_case else 0)
    folds = bool(tree.state.flags & re.IGNORECASE)
    runs = "".join(_runs(tree, folds=folds)).split("\n")
    found = max(runs, key=len)
    return found.lower() if folds else found


def _runs(nodes: Iterable[tuple[Any, Any]], *, folds: bool) -> Iterator[str]:
    """The characters that have to follow each other, and a line feed where others may be between.

    Args:
        nodes: What the parser made.
        folds: Whether case is ignored; letters that stand for others beyond ASCII are left out.
    """
    for kind, value in nodes:
        if str(kind) == "LITERAL" and value <= LAST_ASCII and not (folds and chr(value) in CASED):
            yield chr(value)
        elif str(kind) == "SUBPATTERN" and not value[1] and not value[2]:
            yield from _runs(value[3], folds=folds)
        elif str(kind) != "AT":
            yield "\n"
