"""Detects letters that look like ASCII letters (from confusables.txt of Unicode's UTS #39)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_TAKEN_FOR = (
    "a\u0430\u03b1\u0251 b\u042c\u0184 c\u0441\u03f2\u1d04 d\u0501\u056a e\u0435\u04bd "
    "f\u0493\u0192 g\u0261\u0581 h\u04bb\u0570 i\u0456\u03b9\u0131\u0269 j\u0458\u03f3\u0575 "
    "k\u043a\u03ba l\u04cf\u01c01 m\u043c n\u0578\u057c\u03b7 o\u043e\u03bf\u0585\u03c30 "
    "p\u0440\u03c1 q\u051b\u0563\u0566 r\u0433\u1d26 s\u0455 t\u0442\u03c4 "
    "u\u03c5\u057d\u1d1c v\u03bd\u0475 w\u051d\u0461\u03c9 x\u0445\u03c7 "
    "y\u0443\u03b3\u04af\u10e7 z\u1d22 A\u0410\u0391 B\u0412\u0392 C\u0421\u03f9 "
    "E\u0415\u0395 F\u03dc G\u050c H\u041d\u0397 I\u0406\u0399\u04c0 J\u0408\u037f "
    "K\u041a\u039a M\u041c\u039c N\u039d O\u041e\u039f\u0555 P\u0420\u03a1 S\u0405\u054f "
    "T\u0422\u03a4 V\u0474 W\u051c X\u0425\u03a7 Y\u0423\u03a5\u04ae Z\u0396"
)
"""Each ASCII letter with its lookalikes: Cyrillic, Greek, Armenian, Latin letters and digits."""

_SHAPES = {ord(each): word[0] for word in _TAKEN_FOR.split() for each in word[1:]}
_LETTERS = re.compile(r"[^\W\d_]+")
_ASCII = re.compile(r"[A-Za-z]")
_FOREIGN = {
    each for each in map(chr, _SHAPES) if not unicodedata.name(each).startswith(("LATIN", "DIGIT"))
}
"""The lookalikes from other alphabets."""


def skeleton(name: str) -> str:
    """Returns the visual form of a name: two names with one skeleton are easily confused."""
    shapes = unicodedata.normalize("NFKC", name).translate(_SHAPES)
    return shapes.lower().replace("rn", "m")


_LATIN = re.compile("[\u0250-\u02af\uff10-\uff5a\U0001d400-\U0001d7ff]")
"""Phonetic letters, full-width letters and mathematical letters."""

_SIGNS = re.compile("^[\u2010-\u2015\u2212\uff0d]+\\w|\\S[\u2044\u2215\uff0f]\\S")
"""Non-ASCII dashes before an option, and non-ASCII slashes within a path."""


def is_mixed(name: str) -> bool:
    """Returns whether a word of the name mixes ASCII letters with their lookalikes."""
    return not name.isascii() and any(
        _ASCII.search(word) and (not _FOREIGN.isdisjoint(word) or _LATIN.search(word))
        for word in _LETTERS.findall(name)
    )


_COMMAND = re.compile(
    r"(?:^(?:command: )?|[|;&({`])\s*"
    r"(?:(?:\w+=\S*|sudo|doas|env|exec|time|nohup|xargs|nice|command|builtin|timeout(?:\s+-\S+)*\s+\S+"
    r"|(?:ba|da|k|z)?sh)\s+(?:-\S+\s+(?:\d+\s+)?)*)*([^\s|;&(){}`]+)",
    re.MULTILINE,
)
"""Matches the words of a text that a shell would run, also behind wrappers such as sudo."""

_WORD = re.compile(r"[^\s\"'`|;&(){}<>=,]+")
_DOTS = ".\u3002\uff0e\uff61"
"""The characters that end a host label (IDNA)."""

_URL = re.compile(r".*?://(?:[^/@]*@)?([^/?#:]+)", re.DOTALL)
_HOST = re.compile(rf"(?:[^/@]*(@))?([\w-]+(?:[{_DOTS}][\w-]+)*[{_DOTS}][\w-]{{2,}})", re.DOTALL)
_MOST = 3


def lookalikes(text: str) -> str:
    """Describes words that are not what they look like, and the ASCII form of hosts; "" if none."""
    if text.isascii():
        return ""
    commands = {found[1] for found in _COMMAND.finditer(text)}
    words = dict.fromkeys(word for word in _WORD.findall(text) if not word.isascii())
    texts = (each for word in words for each in _descriptions(word, is_command=word in commands))
    found = list(dict.fromkeys(texts))
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"Look closely: {'; '.join(found[:_MOST])}{more}." if found else ""


def _descriptions(word: str, *, is_command: bool) -> Iterator[str]:
    if is_mixed(word) or _SIGNS.search(word) or (is_command and skeleton(word).isascii()):
        odd = next(each for each in word if not each.isascii())
        name = unicodedata.name(odd, "UNNAMED").lower()
        yield f"{word!r} has U+{ord(odd):04X} ({name})"
    url, name_of_host = _URL.match(word), _HOST.match(word)
    if url:
        host, is_sure = url[1], True
    elif name_of_host:
        host, is_sure = name_of_host[2], bool(name_of_host[1])
    else:
        return
    if not host.isascii() and (is_sure or skeleton(host).isascii()):  # else perhaps a file
        import idna  # slow to import, and rarely needed

        try:
            yield f"{host!r} is {idna.encode(host.lower(), uts46=True).decode()}"
        except idna.IDNAError:
            labels = host.lower().split(".")
            read = [
                each if each.isascii() else f"xn--{each.encode('punycode').decode()}"
                for each in labels
            ]
            yield f"{host!r} is not a host name, but may be read as {'.'.join(read)}"
