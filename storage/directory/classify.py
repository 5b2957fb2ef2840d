"""Classifies a query as a name or a topic.

Known names decide first: a query that is one, or some words of one, is a name. Then the wording
decides: "who is …" and "papers by …" precede a name, "who studies …" and "papers on …" a topic. A
query that only resembles a name is a topic if its words appear in the texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from storage.directory.models import Kind
from storage.people.nameindex import NameIndex
from storage.tokenize import STOP_WORDS, fold

_ASKING = STOP_WORDS | frozenset(
    """
    anybody anyone bio called contact department details doctor does dr email find get give got
    group hello help hey hi info information know lab laboratory list look looking me mr mrs ms
    named need number office page person phone please pls prof professor profile program search
    see show somebody someone tell us want whats whos work working works
    """.split()  # noqa: SIM905  # words read best as text
)
"""Words of questions about a person, next to the name; without apostrophes."""

_BEFORE = re.compile(
    r"""^\W*(?:please|pls|hi|hey|hello|can\ you|could\ you|do\ you\ know|i\ need|i'm\ looking\ for
    |who['\u2019]?s|who\ (?:is|was|are)|whos|where\ is|what\ (?:is|about)|how\ about
    |tell\ me(?:\ (?:more|something))?\ about|what\ do\ you\ know\ (?:about|of)
    |what\ does|give\ me|show(?:\ me)?|find(?:\ me)?|look(?:ing)?\ (?:up|for)|search(?:\ for)?
    |get(?:\ me)?|any(?:thing|one)?\ (?:about|on|named|called)|someone\ (?:named|called)
    |(?:the\ )?(?:profile|page|bio|biography|cv|contact|contacts|e-?mail|details?|info|information
        |publications|papers|work|research|record)(?:\ (?:details|info|information))?
        \ (?:of|for|on|about|by)
    |(?:a|the)\ (?:person|researcher|professor|scientist)\ (?:named|called)|named|called|about|by
    |wer\ ist|qui\ est|qui[e\u00e9]n\ es|chi\ \u00e8|quem\ \u00e9
    |\u8c01\u662f|\u8bf7\u95ee|\u4ecb\u7ecd\u4e00\u4e0b|\u67e5\u627e|\u627e\u4e00\u4e0b)(?:\b|(?<=[\u4e00-\u9fff]))\W*""",
    re.IGNORECASE | re.VERBOSE,
)
_AFTER = re.compile(
    r"""(?:['\u2019]s?\ (?:profile|page|bio|cv|contact|e-?mail|details?|publications|papers|work
        |research|lab|group|department)
    |\ (?:work\ on|works\ on|do|please|profile|bio|contact|e-?mail|publications|papers)
    |(?:\u662f\u8c01|\u662f\u4ec0\u4e48\u4eba|\u7684(?:\u8bba\u6587|\u8d44\u6599|\u7814\u7a76)))?[\s?!.\uff1f\uff01\u3002"'\u201d]*$""",
    re.IGNORECASE | re.VERBOSE,
)


def name_in(question: str) -> str:
    """Strips the words around a name from a question; a plain name stays as it is."""
    asked = question.strip()
    while True:
        bare = _BEFORE.sub("", asked, count=1)
        if bare == asked or not bare.strip():
            break
        asked = bare
    bare = _AFTER.sub("", asked, count=1).strip()
    return bare or asked


def kernel_of(question: str) -> str:
    """Returns the words of a question without question words, in order."""
    words = (
        word.strip("?!.,;:\"'()\u201c\u201d\u2019\uff1f\uff01\u3002") for word in question.split()
    )
    return " ".join(
        word for word in words if word and re.sub("['\u2019]", "", word.casefold()) not in _ASKING
    )


_SURE = ("exact", "alias", "folded")
_LONGEST_NAME = 6  # maximum words of a name, without the words around it

_TOPIC = re.compile(
    r"""\b(?:stud(?:y|ies|ying)|work(?:s|ing)?\ (?:on|in|with)|research(?:es|ing)
        |speciali[sz](?:e[sd]?|ing)|focus(?:es|ed|ing)?\ on|interested\ in|investigat(?:es|ing)
        |publish(?:es|ed)|expert(?:s|ise)?|specialists?|knows?\ about|develop(?:s|ing)
        |has\ experience|leads?|runs?|treats?)\b
    |\b(?:papers?|publications?|articles?|stud(?:y|ies)|grants?|work|research
        |projects?|labs?|people|someone|anyone|researchers?|scientists?|professors?|investigators?|faculty|groups?)
        \ (?:on|about|in|into|doing|using|for|with|who|that)\b
    |\b(?:related\ to|the\ role\ of|effects?\ of|treatment\ of|mechanisms?\ of)\b
    |\u8c01(?:\u5728|\u662f)?(?:\u7814\u7a76|\u505a)  # who does research on
    |\u7814\u7a76.{1,20}(?:\u7684\u4eba|\u8005|\u4e13\u5bb6|\u5b66\u8005|\u6559\u6388)
    |\u65b9\u5411|\u76f8\u5173|\u9886\u57df|\u8bba\u6587$""",  # field, related, papers
    re.IGNORECASE | re.VERBOSE,
)
_OF_A_NAME = re.compile(
    r"""^\W*what\ (?:does|do|did|has|is)\s+(?P<name>.+?)\s+
        (?:work(?:ing)?(?:\ on)?|stud(?:y|ying|ied)|research(?:ing|ed)?|do(?:ing)?|publish(?:ed)?
        |written)\W*$
    |^\W*(?:papers?|publications?|articles?|works?|research|grants?|books?)\ (?:by|of|from)\s+
        (?P<author>.+?)\W*$""",
    re.IGNORECASE | re.VERBOSE,
)
_TITLED = re.compile(
    r"^\W*(?:dr|prof|professor|doctor|mr|mrs|ms|miss|mx|sir|dame)\b\.?\s+\w|"
    r"(?:\u6559\u6388|\u535a\u58eb|\u8001\u5e08|\u5148\u751f|\u5973\u58eb)\W*$|,\s*(?:ph\.?d|m\.?d)\b",
    re.IGNORECASE,
)
_WHO_IS = re.compile(
    r"^\W*(?:who(?:['\u2019]?s| is| was)|whos|wer ist|qui est|\u8c01\u662f)"
    r"(?!\s+(?:an?|the|in|on|at)\b)|\u662f\u8c01",
    re.IGNORECASE,
)
_INITIALED = re.compile(  # "T. Boyle", but not "E. coli"
    r"^\W*(?:[^\W\d_]\.\s*){1,3}(?![a-z])[^\W\d_]{2,}\W*$"
    r"|^\W*[^\W\d_]{2,},?\s+(?:[^\W\d_]\.\s?){1,3}$"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The classification of a query."""

    kind: Kind
    reason: str
    asked: str  # the query without the words around a name


def classify(query: str, names: NameIndex, is_said: Callable[[str], bool]) -> Verdict:
    """Classifies a query; `is_said` tells whether one text contains all words of a query."""
    framed = _OF_A_NAME.match(query)
    asked = name_in((framed["name"] or framed["author"]) if framed else query)
    subject = None if framed else _TOPIC.search(query)
    known = _known_name(asked, names, may_be_part=subject is None)
    if known is None:
        known = _known_name(kernel_of(query[: subject.start()] if subject else asked), names)
    if known is not None:
        return known
    if subject is None:
        unknown = _likely_name(query, asked, names, is_said)
        if unknown is not None:
            return unknown
        return Verdict("topic", "it resembles no known name", query)
    return Verdict("topic", "it asks who works on something", query)


def _known_name(asked: str, names: NameIndex, *, may_be_part: bool = True) -> Verdict | None:
    best = next(iter(names.find(asked, 1)), None)
    if best is not None and best.how in _SURE:
        return Verdict("name", "it is a known name", asked)
    if best is not None and best.how == "partial" and may_be_part:
        return Verdict("name", "its words are those of a known name", asked)
    return None


def _likely_name(
    query: str, asked: str, names: NameIndex, is_said: Callable[[str], bool]
) -> Verdict | None:
    if _TITLED.search(asked):
        return Verdict("name", "it has a person's title", asked)
    if len(fold(asked).split()) > _LONGEST_NAME:
        return None
    if _INITIALED.match(query):
        return Verdict("name", "it has initials, as names do", asked)
    if _WHO_IS.search(query) and not is_said(asked):
        return Verdict("name", "it asks who a person is", asked)
    if names.find(asked, 1) and not is_said(asked):
        return Verdict("name", "it resembles a known name", asked)
    return None
