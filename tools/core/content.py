"""Defines the content of results, resources and prompts other than text."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

MAGIC = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypheic", "image/heic"),
    (0, b"<svg", "image/svg+xml"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AIFF", "audio/aiff"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (4, b"ftypM4A", "audio/mp4"),
    (0, b"MThd", "audio/midi"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xf1", "audio/aac"),
    (0, b"\xff\xf9", "audio/aac"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf2", "audio/mpeg"),
)
"""Offset, bytes and type of each format's signature, as registered."""
SHORTEST = 16
"""Bytes of the smallest file of any of these formats; a signature alone is not a file."""


class Media:
    """An image or sound of a result, which the client shows or plays with the text.

    It is not a dataclass, because serializers would take it apart.

    Attributes:
        kind: "image" or "audio".
        data: The encoded file.
        mime_type: Its format, such as `image/png` or `audio/wav`.
    """

    __slots__ = ("data", "kind", "mime_type")

    def __init__(self, kind: Literal["image", "audio"], data: bytes, mime_type: str) -> None:
        """Stores the data unchanged.

        Raises:
            ValueError: If the data are empty, or the format does not match the kind.
        """
        if not data:
            raise ValueError(f"This {mime_type} is empty.")
        if not mime_type.startswith(f"{kind}/"):
            raise ValueError(f"{mime_type!r} is not the format of an {kind}, such as {kind}/….")
        self.kind = kind
        self.data = data
        self.mime_type = mime_type

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Creates an image or sound whose format is detected from its first bytes.

        Raises:
            ValueError: If the format is unknown.
        """
        mime_type = _format(data)
        if mime_type is None:
            raise ValueError(
                f"Data that begin with {data[:12]!r} are not an image or a sound in a known format;"
                " name the kind and the format: Media(kind, data, mime_type)."
            )
        return cls("image" if mime_type.startswith("image/") else "audio", data, mime_type)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """Reads an image or sound from a file.

        Raises:
            OSError: If it cannot be read.
            ValueError: If the format is unknown.
        """
        try:
            return cls.of(Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Media) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"<{self.mime_type}, {len(self.data)} bytes>"

    def _key(self) -> tuple[str, str, bytes]:
        return self.kind, self.mime_type, self.data


class EmbeddedResource:
    """A resource sent with its contents; like Media, it is not a dataclass.

    Attributes:
        uri: The address; empty for the address that is being read.
        data: The text, or the bytes.
        mime_type: Its format; by default that of plain text or of arbitrary bytes.
    """

    __match_args__ = ("uri", "data", "mime_type")
    __slots__ = ("data", "mime_type", "uri")

    def __init__(self, uri: str, data: str | bytes, mime_type: str = "") -> None:
        plain = "text/plain" if isinstance(data, str) else "application/octet-stream"
        self.uri = uri
        self.data = data
        self.mime_type = mime_type or plain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EmbeddedResource) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"<{self.uri}: {self.mime_type}, {len(self.data)} long>"

    def _key(self) -> tuple[str, str | bytes, str]:
        return self.uri, self.data, self.mime_type


@dataclass(frozen=True, slots=True)
class ResourceLink:
    """A link to a readable resource.

    Attributes:
        uri: The address.
        name: Its name.
        title: Its display name.
        description: Its contents, described for the model.
        mime_type: Its format.
        size: Its size in bytes.
    """

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


Attachment = Media | EmbeddedResource
"""Content that accompanies the text of a result."""

Block = str | Media | EmbeddedResource | ResourceLink
"""One part of a result or message, as in MCP: a text, an image or a sound, a resource."""


def encode_block(block: Block) -> dict[str, Any] | str:
    """Converts a part to plain JSON."""
    match block:
        case Media():
            data = b64encode(block.data).decode()
            return {"kind": block.kind, "data": data, "mime_type": block.mime_type}
        case EmbeddedResource(uri, bytes(data), mime_type):
            return {"uri": uri, "blob": b64encode(data).decode(), "mime_type": mime_type}
        case EmbeddedResource(uri, data, mime_type):
            return {"uri": uri, "text": data, "mime_type": mime_type}
        case ResourceLink():
            return asdict(block)
    return block


def decode_block(sent: dict[str, Any] | str) -> Block:
    """Converts the output of `encode_block` back to a part."""
    match sent:
        case str():
            return sent
        case {"kind": kind, "data": data, "mime_type": mime_type}:
            return Media(kind, b64decode(data), mime_type)
        case {"uri": uri, "blob": blob, "mime_type": mime_type}:
            return EmbeddedResource(uri, b64decode(blob), mime_type)
        case {"uri": uri, "text": text, "mime_type": mime_type}:
            return EmbeddedResource(uri, text, mime_type)
    return ResourceLink(**sent)


def _format(data: bytes) -> str | None:
    if len(data) < SHORTEST:
        return None
    text = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"<?xml") and b"<svg" in text:
        return "image/svg+xml"
    return next((mime for at, magic, mime in MAGIC if data.startswith(magic, at)), None)
