"""Finds values in a text that spells them with escapes, or cuts their encoding into lines."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

LONGEST_ESCAPE = 12
"""Characters that a usual escape of one byte takes at most."""

SEPARATORS = b" \t\r\n\v\f:,\"'\\"
"""What separates lines of Base64, also as literals of a program, and hexadecimal digits."""

_SEPARATOR = re.compile(f"[{re.escape(SEPARATORS.decode())}]+")
_NESTED = 3
"""Layers of escapes that are read: JSON in HTML in a URL."""

_ESCAPE = re.compile(
    r"(?P<utf8>(?:%[0-9A-Fa-f]{2})+|(?:\\+x[0-9A-Fa-f]{2})+)"
    r"|(?P<utf16>(?:\\+u[0-9A-Fa-f]{4})+)"
    r"|(?P<html>&(?:#0*[0-9]{1,7}|#[xX]0*[0-9A-Fa-f]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});?)"
    r"|\\+(?:u\{0*(?P<braced>[0-9A-Fa-f]{1,6})\}|U00(?P<long>[0-9A-Fa-f]{6}))"
    r"|\\+0?(?P<octal>[0-3][0-7]{2})"
    r"|\\+(?P<one>.)",
    re.DOTALL,
)
"""How URLs, JSON, programs, shells, HTML and Markdown write characters."""

_UNIT = re.compile(r"%..|\\+x..|\\+u....")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "\n": ""}

Span = tuple[int, int, str]
"""Where a value begins and ends, and what to show instead."""


class _View:
    """A text in which matches are decoded, and where each of its characters came from.

    Args:
        text: The text.
        pattern: Finds what is decoded.
        decode: Returns the characters of a match, each with its length in the text.
    """

    def __init__(
        self,
        text: str,
        pattern: re.Pattern[str],
        decode: Callable[[re.Match[str]], Iterable[tuple[str, int]]],
    ) -> None:
        parts: list[str] = []
        self._starts = [0]
        self._origins = [(0, 1)]
        end = length = 0
        for match in pattern.finditer(text):
            parts.append(text[end : match.start()])
            length += match.start() - end
            origin = match.start()
            for character, width in decode(match):
                self._add(length, origin, width)
                parts.append(character)
                length += len(character)
                origin += width
            end = match.end()
            self._add(length, end, 1)
        self.text = "".join((*parts, text[end:]))

    def _add(self, start: int, origin: int, width: int) -> None:
        self._starts.append(start)
        self._origins.append((origin, width))

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Returns where a part of the view came from."""
        return self._origin(start)[0], sum(self._origin(end - 1))

    def _origin(self, at: int) -> tuple[int, int]:
        place = bisect_right(self._starts, at) - 1
        origin, width = self._origins[place]
        return origin + at - self._starts[place], width


def disguised(text: str, values: Mapping[str, str], encoded: Mapping[str, str]) -> list[Span]:
    """Returns where a text has values in any mixture of escapes, or encoded with separators.

    Args:
        text: The text.
        values: What to show instead of each value.
        encoded: The same for the values in Base64 and hexadecimal digits.

    Returns:
        Spans in order, which do not overlap.
    """
    found: list[Span] = []
    views: list[_View] = []
    _find_encoded(text, encoded, views, found)
    while len(views) < _NESTED and re.search(r"[%&\\]", text):
        views.append(_View(text, _ESCAPE, _decoded))
        if views[-1].text == text:
            break
        text = views[-1].text
        found += (_located(each, views) for each in _places(text, values))
        _find_encoded(text, encoded, views, found)
    return _merged(found)


def _find_encoded(
    text: str, encoded: Mapping[str, str], views: Sequence[_View], found: list[Span]
) -> None:
    squeezed = text.encode(errors="surrogatepass").translate(None, SEPARATORS)
    present = {form: shown for form, shown in encoded.items() if form.encode() in squeezed}
    if present:
        view = _View(text, _SEPARATOR, lambda _: ())
        found += (_located(each, (*views, view)) for each in _places(view.text, present))


def _places(text: str, forms: Mapping[str, str]) -> Iterator[Span]:
    for form, shown in forms.items():
        at = text.find(form)
        while at >= 0:
            yield at, at + len(form), shown
            at = text.find(form, at + len(form))


def _located(span: Span, views: Sequence[_View]) -> Span:
    start, end, shown = span
    for view in reversed(views):
        start, end = view.origin(start, end)
    return start, end, shown


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end, shown in sorted(spans):
        if merged and start < merged[-1][1]:
            first, before, kept = merged.pop()
            merged.append((first, max(before, end), kept))
        else:
            merged.append((start, end, shown))
    return merged


def _decoded(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    kind, escape = match.lastgroup or "", match[0]
    if kind in {"utf8", "utf16"}:
        yield from _units(escape, *(_UTF8 if kind == "utf8" else _UTF16))
    elif kind == "octal":
        yield chr(int(match[kind], 8)), len(escape)
    elif kind == "one":
        yield _CONTROLS.get(match[kind], match[kind]), len(escape)
    else:
        yield html.unescape(escape if kind == "html" else f"&#x{match[kind]};"), len(escape)


_UTF8 = "utf-8", "surrogateescape", 1
_UTF16 = "utf-16-be", "surrogatepass", 2


def _units(run: str, codec: str, errors: str, size: int) -> Iterator[tuple[str, int]]:
    """Yields the characters of escapes that stand for bytes or for halves of characters."""
    units = _UNIT.findall(run)
    at = 0
    for character in bytes.fromhex("".join(each[-2 * size :] for each in units)).decode(
        codec, errors
    ):
        end = at + len(character.encode(codec, errors)) // size
        yield character, sum(map(len, units[at:end]))
        at = end
