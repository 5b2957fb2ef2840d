"""The words of a query, as the lines of files are searched for them."""

from __future__ import annotations

from itertools import takewhile

from storage.tokenize import terms_of

__all__ = ["MAX_WORDS", "words_of"]

MAX_WORDS = 16
"""Words that a query is searched for at most."""


def words_of(query: str) -> dict[str, str]:
    """How each word of a query begins in any of its forms, with the word as it was written.

    The words are those of `storage.tokenize`: without stop words where there are others, and with
    the parts of identifiers. A word stands for all that begin as it and its stem do: `policies`
    for `policy` too.
    """
    found: dict[str, str] = {}
    for term, written in terms_of(query).items():
        found.setdefault(_beginning(written.lower(), term), written)
    if not found:
        found = {word.lower(): word for word in query.split() if any(map(str.isalnum, word))}
    return dict(list(found.items())[:MAX_WORDS])


def _beginning(word: str, term: str) -> str:
    """What a word and its stem have in common; the word itself where it holds signs or accents."""
    if not (word.isascii() and word.isalnum()):
        return word
    pairs = zip(word, term.removesuffix("i"), strict=False)
    return word[: sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))] or word
