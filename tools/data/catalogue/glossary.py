"""The words that a release has for what people say, in English or Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


def translated(intent: str) -> str:
    """An intent with the release's words for each of its phrases, the longest of them first."""
    phrases, pattern = _glossary()
    found = (phrases[_plain(each[0])] for each in pattern.finditer(intent))
    return " ".join((intent, *found))


@cache
def _glossary() -> tuple[Mapping[str, str], re.Pattern[str]]:
    """The words by phrase, and what finds a phrase."""
    phrases = {}
    for line in (
        files(__package__).joinpath("glossary.txt").read_text(encoding="utf-8").splitlines()
    ):
        said, separator, words = line.partition("=")
        if separator and not line.startswith("#"):
            for phrase in said.split("|"):
                phrases[_plain(phrase)] = words.strip()
    longest = sorted(phrases, key=len, reverse=True)
    return phrases, re.compile("|".join(map(_searched, longest)), re.IGNORECASE)


def _plain(phrase: str) -> str:
    """A phrase without what tells apart how it is written."""
    plain = " ".join(phrase.lower().split())
    return plain.removesuffix("s") if plain.isascii() else plain


def _searched(phrase: str) -> str:
    if not phrase.isascii():
        return re.escape(phrase)
    words = r"\s+".join(map(re.escape, phrase.split()))
    return rf"\b{words}s?\b"
