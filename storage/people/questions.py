"""Finds the name in a question, such as "who is …", in several languages."""

from __future__ import annotations

import re

from storage.tokenize import STOP_WORDS

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
    return " ".join(word for word in words if word and _bare(word) not in _ASKING)


def _bare(word: str) -> str:
    return word.casefold().replace("'", "").replace("\u2019", "")
