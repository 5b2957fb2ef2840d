"""Common parts of text file tools: parameters, displayed names and encodings."""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import Field

from storage.errors import UnreadableDocumentError
from storage.reading.decode import Decoded, byte_order_mark, decode
from tools.core.errors import InvalidArgumentsError, NotFoundError
from tools.core.spec import Alias
from tools.sandbox.files.sandbox import FileContent, Sandbox

FilePath = Annotated[str, Field(description="Relative to the root, or absolute within it")]
FILE_NAMES = Alias("path", "filename", "absolute_path", "filePath")
"""Names of the path parameter in other tools."""

Encoding = Annotated[str, Field(max_length=64, description="Such as cp1252; default: detected")]
Digest = Annotated[
    str, Field(pattern="^[0-9a-fA-F]{12,64}$", description="Refuse if the file has another digest")
]

_MARK_BYTES = 4


def unicode_name(name: str) -> str:
    """Decodes a file's name to valid Unicode, escaping invalid bytes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def short_digest(sha256: str) -> str:
    """Shortens a digest to a prefix that suffices to expect it."""
    return sha256[:12]


def visible(name: str) -> str:
    """Escapes control characters, so that a name cannot span lines or drive a terminal."""
    return name if name.isprintable() else name.encode("unicode_escape").decode("ascii")


def read_text(path: str, found: FileContent, encoding: str | None) -> Decoded:
    """Decodes the text of a file."""
    if encoding is None and found.data.isascii() and b"\0" not in found.data:
        return Decoded(found.data.decode("ascii"), "utf-8", b"", certain=True)
    try:
        return decode(found.data, encoding, partial=found.truncated)
    except LookupError:
        raise _no_such_encoding(encoding) from None
    except UnreadableDocumentError as error:
        raise InvalidArgumentsError(
            f"The file {path!r} ({found.size} bytes) cannot be read as text. {error.message}",
            next_actions=error.suggestions,
        ) from error


def editable_text(path: str, data: bytes, encoding: str | None) -> Decoded:
    """Decodes a whole file if it can be written back unchanged."""
    decoded = read_text(path, FileContent(data, len(data), 0.0, truncated=False), encoding)
    if not decoded.certain or decoded.encode(decoded.text) != data:
        raise InvalidArgumentsError(
            f"The file {path!r} is not written back under an encoding that is only a guess or does "
            f"not keep every byte ({decoded.encoding!r}).",
            next_actions=["Give the file's encoding in `encoding`."],
        )
    return decoded


def present_encoding(sandbox: Sandbox, path: str) -> tuple[bytes, str]:
    """Returns the byte order mark and codec that overwriting a file keeps; else plain UTF-8."""
    try:
        start = sandbox.read(path, max_bytes=_MARK_BYTES).data
    except NotFoundError:
        start = b""
    bom, name = byte_order_mark(start)
    return bom, name or "utf-8"


def encode_text(text: str, encoding: str) -> bytes:
    """Encodes a text."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise InvalidArgumentsError(
            f"The content has {text[error.start]!r}, which {encoding!r} cannot represent.",
            next_actions=["Leave the character out, or write the whole file in 'utf-8'."],
        ) from None
    except (LookupError, ValueError):
        raise _no_such_encoding(encoding) from None


def _no_such_encoding(encoding: str | None) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"There is no text encoding named {encoding!r}.",
        suggestions=["utf-8", "utf-16", "cp1252", "gb18030", "cp932"],
    )
