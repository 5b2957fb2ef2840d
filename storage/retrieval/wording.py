"""What two wordings may not differ in, if they are to say the same."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["decisive"]

_DECISIVE = re.compile(
    r"\d+(?:[.,:/-]\d+)*"
    r"|\b(?:no|not|nor|none|never|neither|nothing|nobody|without|except|cannot|\w+n['\u2019]?t"
    r"|nicht|nie|niemals|kein\w{0,2}|ohne|au\u00dfer|weder|nichts|niemand)\b"
    r"|[\u4e0d\u6ca1\u6c92\u65e0\u7121\u975e\u672a\u522b\u5225\u5426\u83ab\u52ff\u9664]"
)


def decisive(text: str) -> tuple[str, ...]:
    """The numbers and negations of a text, in its order."""
    return tuple(_DECISIVE.findall(unicodedata.normalize("NFKC", text).casefold()))
