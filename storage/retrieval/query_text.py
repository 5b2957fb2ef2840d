"""Properties of a query's text: its numbers and negations, and its wording."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable

# The patterns are strings, which `re` compiles and caches on first use, so that startup stays fast.

_DECISIVE = (
    r"\d+(?:[.,:/-]\d+)*"
    r"|\b(?:no|not|nor|none|never|neither|nothing|nobody|without|except|cannot|\w+n['\u2019]t"
    r"|(?:ai|are|ca|could|did|do|does|had|has|have|is|must|should|was|were|wo|would)nt"
    r"|nicht|nie|niemals|kein\w{0,2}|ohne|au\u00dfer|weder|nichts|niemand)\b"
    r"|[\u4e0d\u6ca1\u6c92\u65e0\u7121\u975e\u672a\u522b\u5225\u5426\u83ab\u52ff\u9664]"
)
_EMPTY_WORDS = frozenset(["a", "an", "the", "is", "are", "am", "do", "does", "of", "there"])
_SILENT = r"[\s.,;:!?()\"\u3001\u3002]+"


def numbers_and_negations(text: str) -> tuple[str, ...]:
    """Returns a text's numbers and negations, in order; differing ones mean another statement."""
    return tuple(re.findall(_DECISIVE, unicodedata.normalize("NFKC", text).casefold()))


def wording(query: str) -> Hashable:
    """Returns a key that is equal for two wordings of the same question.

    It ignores case, spaces, punctuation and stop words.
    """
    text = unicodedata.normalize("NFKC", query).casefold()
    words = (word for word in re.split(_SILENT, text) if word and word not in _EMPTY_WORDS)
    return tuple(words), numbers_and_negations(query)
