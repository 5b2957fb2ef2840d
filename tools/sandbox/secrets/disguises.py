"""Finds values that a text spells with escapes, or encodes over several lines."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

LONGEST_ESCAPE = 12  # limit on the characters of a usual escape of one byte
SEPARATORS = re.sub(rb"[\w+/-]", b"", bytes(range(256)))
"""Separators between lines of Base64, also as program literals, and between hexadecimal digits."""

_SEPARATOR = re.compile(r"[^0-9A-Za-z+/_-]+")
_DECORATIONS = (
    re.compile(  # numbers, quotation marks, comments and diff marks before a line
        r"\n(?=[ \t\d>|#*;%/+-])[ \t]*"
        r"(?:\d{1,7}(?:[ \t]*[:|.)]|[ \t])[ \t]*|[>|#*;%+-]+[ \t]*|//+[ \t]*){1,4}+"
        r"(?=[\"'b]{0,2}[\w+/-]++[^\w\n]*+(?:\n|\Z))"
    ),
    re.compile(r"</?[A-Za-z][^<>]{0,80}>"),
    re.compile(r"\+(?<=[\"'`\s]\+)(?=[\s\\]*[A-Za-z]?[\"'`])"),  # joins literals
    re.compile(r"b(?<![\w+/]b)(?=[\"'])"),  # begins a literal of bytes
)
"""Each is searched separately, as patterns that begin with one character are fast."""

_DECORATED = re.compile("|".join((*(each.pattern for each in _DECORATIONS), _SEPARATOR.pattern)))
_NO_DIGITS = re.sub(rb"[0-9A-Fa-f]", b"", bytes(range(256)))
_LOWER = bytes(range(256)).lower()
_NOT_HEX = re.compile(r"0[xX]|[^0-9A-Fa-f]+")
_DUMP = re.compile(
    r"\n[ \t]*[0-9A-Fa-f]{4,16}"
    r"(?::(?P<xxd>(?: (?:[0-9A-Fa-f]{2}){1,8})+)|(?P<od>(?:[ \t]{1,2}[0-9A-Fa-f]{2})+))"
    r"(?:[ \t].*)?(?=\n|\Z)"
)
"""A line of xxd, hexdump or od: an address, bytes, and optionally the characters."""

_NUMBERS = 16  # bytes of a value after which a list of decimal numbers counts as that value
_NESTED = 3  # limit on nested escapes: JSON in HTML in a URL
_ESCAPE = re.compile(
    r"(?P<utf8>(?:%[0-9A-Fa-f]{2})+|(?:\\+x[0-9A-Fa-f]{2})+|(?:=[0-9A-F]{2})+)"
    r"|(?P<utf16>(?:(?:\\+|%)u[0-9A-Fa-f]{4})+)"
    r"|(?P<soft>(?:=|\\+)\r?\n)"
    r"|(?P<html>&(?:#0*[0-9]{1,7}|#[xX]0*[0-9A-Fa-f]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});?)"
    r"|\\+(?:[ux]\{0*(?P<braced>[0-9A-Fa-f]{1,6})\}|U00(?P<long>[0-9A-Fa-f]{6}))"
    r"|\\+0?(?P<octal>[0-3][0-7]{2})"
    r"|\\+(?P<one>.)",
    re.DOTALL,
)
"""Escapes of URLs, JSON, programming languages, shells, HTML and Markdown."""

_PRINTABLE = re.compile(r"=(?:[0-9A-F]{2}|\r?\n)")  # an escape of quoted-printable encoding
_ESCAPES = re.compile(rf"[%&\\]|{_PRINTABLE.pattern}")
_UNIT = re.compile(r"%u....|[%=]..|\\+x..|\\+u....")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "\n": ""}
Span = tuple[int, int, str]  # start and end of a value, with its replacement


class _View:
    """A text with decoded matches, and the origin of each of its characters.

    `decode` yields the characters of a match, each with its length in the text.
    """

    def __init__(
        self,
        text: str,
        matches: Iterable[re.Match[str]],
        decode: Callable[[re.Match[str]], Iterable[tuple[str, int]]],
    ) -> None:
        parts: list[str] = []
        self._starts = [0]
        self._origins = [(0, 1)]
        end = length = 0
        for match in matches:
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
        """Returns the origin of a part of the view."""
        return self._origin(start)[0], sum(self._origin(end - 1))

    def _origin(self, at: int) -> tuple[int, int]:
        place = bisect_right(self._starts, at) - 1
        origin, width = self._origins[place]
        return origin + at - self._starts[place], width


def disguised(text: str, values: Mapping[str, str], encoded: Mapping[str, str]) -> list[Span]:
    """Finds values in any mixture of escapes, or encoded with separators.

    `encoded` has the values in Base64 and hexadecimal digits. The spans are in order, without
    overlaps.
    """
    found: list[Span] = []
    views: list[_View] = []
    _find_encoded(text, encoded, views, found)
    _find_numbers(text, values, views, found)
    while len(views) < _NESTED and _is_escaped(text):
        views.append(_View(text, _escapes(text), _decode))
        if views[-1].text == text:
            break
        text = views[-1].text
        found += (_locate(each, views) for each in _places(text, values))
        _find_encoded(text, encoded, views, found)
        _find_numbers(text, values, views, found)
    return _merge(found)


def _find_encoded(
    text: str, encoded: Mapping[str, str], views: Sequence[_View], found: list[Span]
) -> None:
    """Adds the encoded values in a text, whatever separators and decorations it has."""
    whole = f"\n{text}"  # so that each line follows a line end
    for squeezed, pattern in _readings(whole):
        present = {form: shown for form, shown in encoded.items() if form.encode() in squeezed}
        if not present:
            continue
        view = _View(
            whole, pattern.finditer(whole), _dump_digits if pattern is _DUMP else lambda _: ()
        )
        is_hex = pattern in {_NOT_HEX, _DUMP}
        for span in _places(view.text.lower() if is_hex else view.text, present):
            start, end, shown = _locate(span, (view,))
            if pattern is _DUMP:  # the last line repeats its bytes as characters
                end += len(whole[end:].partition("\n")[0])
            found.append(_locate((start - 1, end - 1, shown), views))


def _readings(whole: str) -> Iterator[tuple[bytes, re.Pattern[str]]]:
    """Yields a text without its separators, with the pattern that removes them."""
    plain = whole.encode(errors="replace")
    yield plain.translate(None, SEPARATORS), _SEPARATOR
    bare = whole
    for decoration in _DECORATIONS:
        bare = decoration.sub("", bare)
    if len(bare) < len(whole):
        yield bare.encode(errors="replace").translate(None, SEPARATORS), _DECORATED
    yield plain.replace(b"0x", b"").translate(_LOWER, _NO_DIGITS), _NOT_HEX
    if lines := _DUMP.findall(whole):
        yield "".join(chain.from_iterable(lines)).encode().translate(_LOWER, b" \t"), _DUMP


def _is_escaped(text: str) -> bool:
    return any(each in text for each in "%&\\") or _PRINTABLE.search(text) is not None


def _escapes(text: str) -> Iterator[re.Match[str]]:
    """Yields the matches of _ESCAPE, starting only where one can begin, as it is slow."""
    begun = _ESCAPES.search(text)
    while begun:
        found = _ESCAPE.match(text, begun.start())
        if found:
            yield found
        begun = _ESCAPES.search(text, (found or begun).end())


def _dump_digits(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    start, end = match.span("xxd" if match["xxd"] else "od")
    yield "", start - match.start()
    for character in match.string[start:end]:
        yield character.strip(), 1


def _find_numbers(
    text: str, values: Mapping[str, str], views: Sequence[_View], found: list[Span]
) -> None:
    """Adds the values in a text written as lists of decimal bytes."""
    for value, shown in values.items():
        data = value.encode()
        rest = r"(?:\W{1,40}\d{1,3})*" if len(data) > _NUMBERS else ""
        listed = r"\W{1,40}".join(map(str, data[:_NUMBERS]))
        found += (
            _locate((*match.span(), shown), views)
            for match in re.finditer(rf"{listed}(?!\d){rest}", text)
        )


def _places(text: str, forms: Mapping[str, str]) -> Iterator[Span]:
    for form, shown in forms.items():
        at = text.find(form)
        while at >= 0:
            yield at, at + len(form), shown
            at = text.find(form, at + len(form))


def _locate(span: Span, views: Sequence[_View]) -> Span:
    start, end, shown = span
    for view in reversed(views):
        start, end = view.origin(start, end)
    return start, end, shown


def _merge(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end, shown in sorted(spans):
        if merged and start < merged[-1][1]:
            first, before, kept = merged.pop()
            merged.append((first, max(before, end), kept))
        else:
            merged.append((start, end, shown))
    return merged


def _decode(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    kind, escape = match.lastgroup or "", match[0]
    if kind in {"utf8", "utf16"}:
        yield from _units(escape, *(_UTF8 if kind == "utf8" else _UTF16))
    elif kind == "soft":
        yield "", len(escape)
    elif kind == "octal":
        yield chr(int(match[kind], 8)), len(escape)
    elif kind == "one":
        yield _CONTROLS.get(match[kind], match[kind]), len(escape)
    else:
        yield html.unescape(escape if kind == "html" else f"&#x{match[kind]};"), len(escape)


_UTF8 = "utf-8", "surrogateescape", 1
_UTF16 = "utf-16-be", "surrogatepass", 2


def _units(run: str, codec: str, errors: str, size: int) -> Iterator[tuple[str, int]]:
    """Yields the characters of escapes for bytes or UTF-16 code units."""
    units = _UNIT.findall(run)
    at = 0
    for character in bytes.fromhex("".join(each[-2 * size :] for each in units)).decode(
        codec, errors
    ):
        end = at + len(character.encode(codec, errors)) // size
        yield character, sum(map(len, units[at:end]))
        at = end
