"""Redacts the values of secrets in answers, records and displays."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any
from urllib.parse import quote, quote_plus

from tools.core.content import EmbeddedResource
from tools.core.result import ToolResult
from tools.sandbox.secrets.disguises import LONGEST_ESCAPE, SEPARATORS, disguised

Sink = Callable[[bytes], object]

_WORD = re.compile(rb"(?:[\\=]\s+|\S)*\Z")
"""The last word of a text; an escaped line end does not end it."""

_ESCAPED = re.compile(rb"[%&\\]|=(?:[0-9A-F]|\s|\Z)")
_PERCENT = re.compile(r"%[0-9A-F]{2}")


def marker(name: str) -> str:
    """Returns the replacement for a secret; without a space, so that it fits into a URL."""
    return f"[secret:{name}]"


class Redaction:
    """Knows the values of all secrets used so far, including former values.

    Attributes:
        is_needed: Whether any secret was used; until then, nothing has to be redacted.
    """

    def __init__(self, shown: Callable[[str], str] = marker) -> None:
        self.is_needed = False
        self._shown = shown
        self._known: set[tuple[str, str]] = set()
        self._forms: tuple[tuple[bytes, bytes], ...] = ()
        self._texts: tuple[tuple[str, str], ...] = ()
        self._encoded: dict[str, str] = {}
        self._values: dict[str, str] = {}

    def learn(self, name: str, value: str) -> None:
        """Redacts a value from now on."""
        if (name, value) in self._known:
            return
        self._known.add((name, value))
        self.is_needed = True
        shown = self._shown(name)
        self._values[value] = shown
        utf8 = value.encode()
        encoded_as = (utf8.hex(), utf8.hex().upper(), *_base64(utf8))
        self._encoded |= dict.fromkeys(encoded_as, shown)
        texts = dict(self._texts) | dict.fromkeys(forms_of(value), shown)
        encoded = {text.encode(): shown.encode() for text, shown in texts.items()}
        forms = dict(self._forms) | encoded | _wide(value, shown)
        # Longer forms first, as one may be the beginning of another.
        self._texts = tuple(sorted(texts.items(), key=lambda each: -len(each[0])))
        self._forms = tuple(sorted(forms.items(), key=lambda each: -len(each[0])))

    def text(self, text: str) -> str:
        """Redacts a text."""
        for form, shown in self._texts:
            text = text.replace(form, shown)
        if self._values:
            for start, end, shown in reversed(disguised(text, self._values, self._encoded)):
                text = text[:start] + shown + text[end:]
        return text

    def data(self, data: bytes) -> bytes:
        """Redacts bytes."""
        if not self._forms:
            return data
        for form, shown in self._forms:
            data = data.replace(form, shown)
        return self.text(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def value(self, value: Any) -> Any:  # noqa: ANN401  # any JSON value
        """Redacts a JSON value, including keys."""
        if not self._texts:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        return value

    def result(self, result: ToolResult) -> ToolResult:
        """Redacts a result; if it had a value, no part is passed on unchecked."""
        if not self._texts:
            return result
        text, added = self.text(result.text), self.text(result.added)
        structured, meta = self.value(result.structured), self.value(result.meta)
        media, blocks = (tuple(map(self._block, each)) for each in (result.media, result.blocks))
        shown = replace(
            result,
            structured=structured,
            text=text,
            added=added,
            media=media,
            blocks=blocks,
            meta=meta,
        )
        if shown == result:
            return result
        is_text = result.verbatim is not None and not structured
        return replace(shown, verbatim=None, preview="text" if is_text else result.preview)

    def _block(self, block: Any) -> Any:  # noqa: ANN401  # of the same type
        """Redacts a part of a result, except for images and sounds."""
        if isinstance(block, str):
            return self.text(block)
        if isinstance(block, EmbeddedResource):
            data = block.data
            shown = self.text(data) if isinstance(data, str) else self.data(data)
            return EmbeddedResource(self.text(block.uri), shown, block.mime_type)
        return block

    def sink(self, sink: Sink) -> RedactingSink:
        """Returns a sink that redacts pieces before passing them on."""
        return RedactingSink(self, sink)

    def unfinished(self, data: bytes) -> int:
        """Returns the number of final bytes that may begin a value."""
        if not self._forms:
            return 0
        held = _partial_length(data, (form for form, _ in self._forms))
        # An encoded value may be split into lines, and each character may be an escape.
        tail = data[-LONGEST_ESCAPE * len(self._forms[0][0]) :]
        begun = _partial_length(tail.translate(None, SEPARATORS), map(str.encode, self._encoded))
        if begun:
            kept = (at for at in range(len(tail) - 1, -1, -1) if tail[at] not in SEPARATORS)
            held = max(held, len(tail) - next(islice(kept, begun - 1, None)))
        word = _WORD.search(tail)
        is_escaped = word is not None and _ESCAPED.search(word[0])
        return max(held, len(word[0])) if word and is_escaped else held


def _partial_length(data: bytes, forms: Iterable[bytes]) -> int:
    """Returns the number of final bytes that begin one of the forms."""
    held = 0
    for form in forms:
        at = data.find(form[:1], max(len(data) - len(form) + 1, 0))
        while at >= 0 and not form.startswith(data[at:]):
            at = data.find(form[:1], at + 1)
        held = max(held, len(data) - at if at >= 0 else 0)
    return held


class RedactingSink:
    """Passes bytes on without values, even if these span several pieces."""

    def __init__(self, redaction: Redaction, sink: Sink) -> None:
        self._redaction = redaction
        self._sink = sink
        self._held = b""

    def feed(self, data: bytes) -> None:
        """Processes the next bytes; holds back an end that may begin a value."""
        shown = self._redaction.data(self._held + data)
        held = self._redaction.unfinished(shown)
        self._held = shown[len(shown) - held :]
        self._sink(shown[: len(shown) - held])

    def flush(self) -> None:
        """Passes on what is held back, at the end of the data."""
        self._sink(self._held)
        self._held = b""


def forms_of(value: str) -> set[str]:
    """Returns the forms of a value: plain, and as in URLs, JSON, HTML, Markdown or Base64."""
    utf8 = value.encode()
    escaped = {
        value,
        *(json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)),
        *(html.escape(value, quote=quotes) for quotes in (True, False)),
        repr(value)[1:-1],
        value.replace("_", r"\_"),
        "".join(f"\\u{ord(character):04x}" for character in value),
    }
    percent = {
        quote(value, safe=""),
        quote(value),
        quote_plus(value),
        "".join(f"%{byte:02X}" for byte in utf8),
    }
    percent |= {_PERCENT.sub(lambda found: found[0].lower(), each) for each in percent}
    slashed = {each.replace("/", r"\/") for each in escaped}
    numbers = {utf8.hex(), utf8.hex().upper()}
    return escaped | slashed | percent | numbers | set(_base64(utf8))


def _base64(utf8: bytes) -> set[str]:
    """Returns what the Base64 of any text contains if the text contains a value, at any offset."""
    found = set()
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):
            # The characters at both ends also hold bits of adjacent bytes.
            start, end = -(-before * 8 // 6), (before + len(utf8)) * 8 // 6
            found.add(encode(bytes(before) + utf8)[start:end].decode())
    return found


def _wide(value: str, shown: str) -> dict[bytes, bytes]:
    """Returns the UTF-16 forms; for ASCII, the bytes common to both byte orders."""
    if value.isascii():
        value, shown = "\0".join(value), "\0".join(shown)
        return {value.encode(): shown.encode()}
    return {value.encode(codec): shown.encode(codec) for codec in ("utf-16-le", "utf-16-be")}
