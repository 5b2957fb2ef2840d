"""Follow-ups: a query that leans on the one before it is asked together with that.

"And its limits?" finds nothing alone. Whatever can stand alone is left as it was asked: words of an
earlier question would only lead away from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from storage.tokenize import is_spaceless, tokenize

__all__ = ["leans", "rewrite"]

FEW_TERMS = 2
"""A query with more terms says what it is about, whatever it begins with."""

FEW_CHARACTERS = 8
"""The same for scripts without spaces, in characters beside those that lean."""

LONGEST = 300
"""Characters of the earlier query that are taken over."""

_OPENING = re.compile(
    r"\W*(?:and|but|or|also|then|what about|how about|what else|anything else|und|aber|oder|auch"
    r"|was ist mit|wie ist es mit|was noch)\b",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:it|its|they|them|their|theirs|this|these|that|those|he|him|his|she|her|hers|one|ones"
    r"|es|er|sie|ihn|ihm|ihr|ihre|ihrem|ihren|ihrer|sein|seine|seinem|seinen|seiner|dessen|deren"
    r"|davon|dazu|dafür|damit|darin|daran)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(r"\b(?:he|him|his|she|her|hers)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[\w,] )[A-ZÄÖÜ]\w*[a-z]\w*")
_ACRONYM = re.compile(r"\b[A-Z]{2,}\b")
_SAYING = re.compile(r"\d|\b(?:who (?:am i|are you)|wer (?:bin ich|bist du))\b", re.IGNORECASE)
"""What says something though it is no term."""

_SPACELESS_LEANING = re.compile(
    r"^(?:那么?|还有|以及|而且|另外|可是|但是?|或者)|(?:[它她]|(?<!其)他)们?的?|其(?![他它实中次])"
    r"|[这那][个些]?|呢\W*$"
)
_FUNCTION_WORDS = frozenset(
    # Beside the English stop words, which are no terms.
    """
    aber als am an auch auf aus bei das dass dem den der des die doch du ein eine einem einen einer
    er es für hat ich ihr im in ist kann man mit nach noch nun oder sie sind so über um und uns vom
    von vor wann war warum was welche welchem welchen welcher welches wenn wer werden wie wieso wir
    wird wo zu zum zur else many much anything
    """.split()  # noqa: SIM905  # words read best as text
)
_WORD = re.compile(r"[^\W\d_]+")


def rewrite(query: str, earlier: Sequence[str]) -> str:
    """The query as it is to be asked.

    Args:
        query: What was asked.
        earlier: What was asked before it in the same conversation, the latest last.

    Returns:
        The query itself where it stands alone, or nothing before it does; else the latest earlier
        query that stands alone, and the query. Where the query speaks of a person, only the names
        are taken, also of the follow-ups since: what else was asked was measured to lead away.
    """
    if not leans(query):
        return query
    first = next((at for at in reversed(range(len(earlier))) if _stands(earlier[at])), None)
    if first is None:
        return query
    subject = earlier[first]
    if _PERSON.search(query):
        named = (name for before in earlier[first:] for name in _NAME.findall(before))
        subject = " ".join(dict.fromkeys(named)) or subject
    return f"{_shortened(subject)} {query.strip()}"


def leans(query: str) -> bool:
    """Whether a query cannot stand alone: it hardly says anything, and points to what was said."""
    if is_spaceless(query):
        rest = re.sub(r"\W", "", _SPACELESS_LEANING.sub("", query))
        return len(rest) <= FEW_CHARACTERS and bool(_SPACELESS_LEANING.search(query))
    words = _WORD.findall(query)
    terms = tokenize(" ".join(word for word in words if word.casefold() not in _FUNCTION_WORDS))
    plain = query if query.isupper() else _ACRONYM.sub("", query)  # "IT" is no "it"
    points = _OPENING.match(query) or (_PRONOUN.search(plain) and not _NAME.search(query))
    if points:
        return len(terms) <= FEW_TERMS
    says = terms or plain != query or _NAME.search(query) or _SAYING.search(query)
    return bool(words) and not says


def _stands(query: str) -> bool:
    """Whether another query can lean on this one: it says something, and leans on none."""
    return bool(tokenize(query)) and not leans(query)


def _shortened(text: str) -> str:
    text = " ".join(text.split()).rstrip("?.! \uff1f\u3002\uff01")
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0]
