"""What the text of a query says: its numbers and negations, and what it leans on.

"And its limits?" finds nothing alone, so it is asked together with the query before it. Whatever
can stand alone is left as it was asked: words of an earlier question would only lead away from it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from storage.index.lexical import MAX_QUERY_TERMS
from storage.retrieval.cues import dates_of
from storage.tokenize import STOP_WORDS, is_spaceless, terms_of, tokenize

__all__ = [
    "QueryText",
    "is_follow_up",
    "numbers_and_negations",
    "rewrite",
]

# The patterns are strings, which `re` compiles and keeps on first use: a start needs none of them.

SIMILAR = 0.6
"""Share of all their terms that two queries have in common at least (Jaccard)."""

FEW_TERMS = 2
"""A query with more terms says what it is about, whatever it begins with."""

FEW_CHARACTERS = 8
"""The same for scripts without spaces, in characters beside those that lean."""

LONGEST = 300
"""Characters of the earlier query that are taken over."""

_OPENING = r"(?i)\W*(?:and|but|or|what about|how about|und|aber|oder|was ist mit|wie ist es mit)\b"
_TURN = r"(?i)\W*(?:also|then|auch|dann)\b"
"""What begins a request as well as a follow-up: "also the blue one", "then list the invoices"."""

_PRONOUN = (
    r"(?i)\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|ones"
    r"|er|ihn|ihm|ihrem|ihren|ihrer|sein|seine|seinem|seinen|seiner|dessen|deren"
    r"|davon|dazu|dafür|damit|darin|daran)\b"
)
_POLITE = r"\b(?:es|sie|ihr|ihre)\b|^\W*(?:Es|Sie|Ihr|Ihre)\b"
"""German pronouns, which written with a capital within a sentence address the one who is asked."""

_EXPLETIVE = r"(?i)\b(?:(?:gibt|gab|gäbe) es|es (?:gibt|gab|gäbe))\b"
_POINTING = (
    # "this" alone points to what was said, "this week" does not.
    r"(?i)\b(?:this|that|these|those|one)(?=\W*$|[,.;:?!]"
    r"|\W+(?:is|isn|was|wasn|are|aren|were|has|have|had|do|does|doesn|did|didn|can|could|will|won"
    r"|would|should|may|might|must|be|mean|means|cost|costs|work|works|worked|take|takes|need|needs"
    r"|help|helps|apply|applies|happen|happens|happened|come|comes|go|goes|look|looks|say|says|too"
    r"|so|not|again|really|still|already|better|much|true|right|ok|okay|on|in|at|for|from|of|to"
    r"|with|by|about|than|as|and|or|if|when|also|only|either|instead|now|then)\b)"
)
_ELLIPSIS = r"(?i)\b(?:the \w+|which|another|each) ones?\b"
_GERMAN_ELLIPSIS = (
    r"\b(?:der|die|das|den|dem) (?:nächst|letzt|vorig|erst|zweit|dritt|ander|neu|alt|best)\w+"
    r"(?=\W*$|\W+[a-zäöü])"
)
_GERMAN_POINTING = (
    # German writes nouns with a capital: where one follows, "das" belongs to it.
    r"\b(?:[Dd]as|[Dd]ies|[Dd]ieses|[Dd]iese|[Dd]ieser)\b"
    r"(?!(?:\W+\w+){0,2}?\W+[A-ZÄÖÜ])"
    r"|\b[Dd](?:as|ies)(?=\W+(?:auch|für|noch|nicht|zu|so|immer|wirklich|mit|bei|in|im|an|am|auf"
    r"|von|vom|zum|zur|schon|jetzt|ich|du|er|sie|wir|man|ein|eine|einen|der|die|den)\b)"
)
_GERMAN_WORDS = frozenset(
    """
    aber als am auch auf bei das dass dem den der des die du ein eine einen er es für gibt habe
    haben hast hat ich ihn ihr im ist kann man mit nach nicht noch nun oder sein seine sie sind und
    uns von vom war warum was wem wen wer werden wessen wie wir wird wo wann zu zum zur welche
    welcher welches
    """.split()  # noqa: SIM905  # words read best as text
)
_PERSON = r"(?i)\b(?:he|him|his|she|her|hers)\b"
_NAME = (
    r"(?<=[\w,] )(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|(?:Janu|Febru)ary\b|March\b"
    r"|April\b|May\b|June\b|July\b|August\b|(?:Septem|Octo|Novem|Decem)ber\b)"
    r"[A-ZÄÖÜ]\w*[a-z]\w*"
)
_ACRONYM = r"\b[A-Z]{2,}\b"
_SAYING = r"(?i)\d|\b(?:who (?:am i|are you)|wer (?:bin ich|bist du))\b"
"""What says something though it is no term."""

_SPACELESS_LEANING = (
    r"^哪[个些一](?=[更最比])|^(?:那么|还有|以及|而且|另外|可是|但是?|或者)|(?:[它她]|(?<!其)他)们?的?|其(?![他它实中次])"
    r"|[这那](?:个|些)?(?=[是要会能可有怎多什吗呢样里边儿为也就算对行不还么贵]|\W*$)"
    r"|^那(?!个|些|[天周月年日次份台条张本件批篇种位名家座首部期届段款项套封时])(?=.{1,6}\W*$)|呢\W*$"
)
_SPACELESS_EMPTY = (
    r"为什么|什么时候|什么|怎么|怎样|如何|多少|多久|多大|多长|多远|几点|哪里|哪儿|哪个|一共|总共|可以"
    r"|需要|然后|开始|[从到]|下一|上一|[谁哪几钱有是在的了吗呢会要能办次个只条人又再还都也就一样\W]"
)
"""What a question may consist of that says nothing of its own."""

_FUNCTION_WORDS = frozenset(
    # Beside the English stop words, which are no terms.
    """
    aber als am an auch auf aus bei das dass dem den der des die doch du ein eine einem einen einer
    er es für hat ich ihr im in ist kann man mit nach noch nun oder sie sind so über um und uns vom
    von vor wann war warum was welche welchem welchen welcher welches wenn wer werden wie wieso wir
    wird wo zu zum zur else many much anything often long exactly again more instead oft lange seit
    since one ones next wem wen
    sein seine seinem seinen seiner ihre ihrem ihren ihrer
    sonst genau eigentlich denn mal bitte mehr viel viele
    """.split()  # noqa: SIM905  # words read best as text
)
_LETTERS = r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?"
_DECISIVE = (
    r"\d+(?:[.,:/-]\d+)*"
    r"|\b(?:no|not|nor|none|never|neither|nothing|nobody|without|except|cannot|\w+n['\u2019]?t"
    r"|nicht|nie|niemals|kein\w{0,2}|ohne|au\u00dfer|weder|nichts|niemand)\b"
    r"|[\u4e0d\u6ca1\u6c92\u65e0\u7121\u975e\u672a\u522b\u5225\u5426\u83ab\u52ff\u9664]"
)
_EMPTY_WORDS = frozenset(["a", "an", "the", "is", "are", "am", "do", "does", "of", "there"])
_SILENT = r"[\s.,;:!?()\"\u3001\u3002]+"
_WORD = r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?"


def numbers_and_negations(text: str) -> tuple[str, ...]:
    """The numbers and negations of a text, in its order: who differs in them says another thing."""
    return tuple(re.findall(_DECISIVE, unicodedata.normalize("NFKC", text).casefold()))


class QueryText:
    """A query as it is compared with others.

    Args:
        query: As it is put to the index.
    """

    def __init__(self, query: str) -> None:
        self.query = query

    @cached_property
    def terms(self) -> list[str]:
        """Its terms, in its order."""
        return tokenize(self.query)

    @cached_property
    def different(self) -> frozenset[str]:
        """Its terms, each once."""
        return frozenset(self.terms)

    @cached_property
    def said(self) -> list[str]:
        """All that it says, in its order: everything but case, spaces, punctuation, empty words."""
        text = unicodedata.normalize("NFKC", self.query).casefold()
        return [word for word in re.split(_SILENT, text) if word and word not in _EMPTY_WORDS]

    @cached_property
    def form(self) -> tuple[Hashable, ...]:
        """What has to be the same in two wordings of one question."""
        words = (word.casefold().replace("\u2019", "'") for word in re.findall(_WORD, self.query))
        small = tuple(
            word
            for word in words
            if word.replace("'", "") in STOP_WORDS and word not in _EMPTY_WORDS
        )
        return (
            small,
            numbers_and_negations(self.query),
            dates_of(self.query, 0.0),
            is_spaceless(self.query),
        )

    def difference(self, other: QueryText) -> dict[str, str] | None:
        """The terms that stand in one of two wordings of one question, each with its word.

        None if they are of two questions.
        """
        mine, theirs = self.different, other.different
        common = mine & theirs
        if len(common) < SIMILAR * len(mine | theirs) or not common or self.form != other.form:
            return None
        if max(len(self.terms), len(other.terms)) > MAX_QUERY_TERMS:
            return None
        if _only(self.terms, common) != _only(other.terms, common):
            return None
        written = terms_of(self.query) | terms_of(other.query)
        return {term: written[term] for term in mine ^ theirs}


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
    if not is_follow_up(query):
        return query
    first = next((at for at in reversed(range(len(earlier))) if _stands(earlier[at])), None)
    if first is None:
        return query
    subject = earlier[first]
    if re.search(_PERSON, query):
        named = (name for before in earlier[first:] for name in re.findall(_NAME, before))
        subject = " ".join(dict.fromkeys(named)) or subject
    return f"{_shortened(subject)} {query.strip()}"


def is_follow_up(query: str) -> bool:
    """Whether a query cannot stand alone: it hardly says anything, and points to what was said."""
    if is_spaceless(query):
        return _leans_spaceless(query)
    words = re.findall(_LETTERS, query)
    terms = tokenize(" ".join(word for word in words if word.casefold() not in _FUNCTION_WORDS))
    plain = query if query.isupper() else re.sub(_ACRONYM, "", query)  # "IT" is no "it"
    if re.match(_TURN, query):
        return len(terms) < FEW_TERMS
    if re.match(_OPENING, query) or _points(plain):
        return len(terms) <= FEW_TERMS
    says = terms or plain != query or re.search(_NAME, query) or re.search(_SAYING, query)
    return bool(words) and not says


def _points(query: str) -> bool:
    """Whether a query has a pronoun, and no name that this may stand for."""
    if _is_german(query):  # its nouns look like names
        plain = re.sub(_EXPLETIVE, "", query)
        ways = (_PRONOUN, _POLITE, _GERMAN_POINTING, _GERMAN_ELLIPSIS)
        return any(re.search(each, plain) for each in ways)
    named = re.search(_NAME, query)
    return not named and any(re.search(each, query) for each in (_PRONOUN, _POINTING, _ELLIPSIS))


def _is_german(query: str) -> bool:
    words = [word.casefold() for word in re.findall(_LETTERS, query)]
    german = sum(word in _GERMAN_WORDS for word in words)
    return german > sum(word in STOP_WORDS and word not in _GERMAN_WORDS for word in words)


def _leans_spaceless(query: str) -> bool:
    rest = re.sub(r"\W", "", re.sub(_SPACELESS_LEANING, "", query))
    if re.search(_SPACELESS_LEANING, query):
        return len(rest) <= FEW_CHARACTERS
    return bool(rest) and not re.sub(_SPACELESS_EMPTY, "", query)


def _stands(query: str) -> bool:
    """Whether another query can lean on this one: it says something, and leans on none."""
    return bool(tokenize(query)) and not is_follow_up(query)


def _shortened(text: str) -> str:
    text = " ".join(text.split()).rstrip("?.! \uff1f\u3002\uff01")
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0]


def _only(terms: Sequence[str], some: AbstractSet[str]) -> list[str]:
    return [term for term in terms if term in some]
