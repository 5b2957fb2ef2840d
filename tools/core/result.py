"""What a call answers: a result or a failure, with images and sounds beside the text."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from tools.core.errors import ErrorType, ToolError, as_typed

__all__ = ["Media", "ToolFailure", "ToolModel", "ToolResult"]

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
"""Where in a file which bytes tell its format, as the registrations of the formats have them."""
SHORTEST = 16
"""Bytes that the smallest file of any of these formats has; its first bytes alone are no file."""


NARROWING = (
    *("ranges", "top_k", "limit", "max_results", "depth", "return_chunks", "cursor"),
    "fields",
)
"""Arguments that ask for less, as the catalogue names them."""


class ToolModel(BaseModel):
    """A model whose validator is built when it is first used: a start needs few of them."""

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def from_attributes(cls, source: object, **given: object) -> Self:
        """Makes a model of the attributes of an object that are named as its fields.

        Args:
            source: The object, such as a value of storage.
            given: The fields that it lacks, or that are to be different.
        """
        taken = {name: getattr(source, name) for name in cls.model_fields if name not in given}
        return cls(**taken, **given)


class Media:
    """One image or sound of a result; the client shows or plays it beside the text.

    It is no dataclass, because a serializer would take one apart.

    Attributes:
        kind: Which of the two.
        data: The encoded file, as it would stand on a disk.
        mime_type: Its format, such as `image/png` or `audio/wav`.
    """

    __slots__ = ("data", "kind", "mime_type")

    def __init__(self, kind: Literal["image", "audio"], data: bytes, mime_type: str) -> None:
        """Takes the data as they are.

        Raises:
            ValueError: If there are none, or if the format is not one of that kind.
        """
        if not data:
            raise ValueError(f"There are no data in this {mime_type}.")
        if not mime_type.startswith(f"{kind}/"):
            raise ValueError(f"{mime_type!r} is not the format of an {kind}, such as {kind}/….")
        self.kind = kind
        self.data = data
        self.mime_type = mime_type

    @classmethod
    def of(cls, data: bytes) -> Self:
        """An image or sound whose format its first bytes tell.

        Raises:
            ValueError: If they tell none.
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
        """The image or sound in a file.

        Raises:
            OSError: If it cannot be read.
            ValueError: If its first bytes tell no known format.
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


class ToolFailure(ToolModel):
    """What a failed call answers.

    Attributes:
        error_type: One of the closed list.
        message: What was wrong, with which value.
        suggestions: Values or names that would have worked.
        next_actions: What to do now.
    """

    error_type: ErrorType
    message: str
    suggestions: list[str] = Field(default_factory=list)
    next_actions: list[str] = Field(default_factory=list)

    @classmethod
    def of(cls, error: ToolError, *, command: str = "toolcrib") -> ToolFailure:
        """Returns the failure that an exception is, with commands as the user types them."""
        return cls(
            error_type=error.error_type,
            message=error.message,
            suggestions=list(error.suggestions),
            next_actions=[as_typed(action, command) for action in error.next_actions],
        )

    def to_text(self) -> str:
        """The failure as lines for the model."""
        lines = [f"{self.error_type}: {self.message}"]
        if self.suggestions:
            lines.append("Did you mean: " + ", ".join(self.suggestions))
        lines.extend(f"Next: {action}" for action in self.next_actions)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call answers.

    Attributes:
        structured: JSON object that validates against the output schema (on success), or a
            ToolFailure as JSON (on failure).
        text: The same for the model, compact.
        is_error: Whether the call failed.
        media: Images and sounds beside the text, in the order in which the result has them.
        verbatim: What another server answered, to be handed on as it is.
        added: What we say beside it.
    """

    structured: dict[str, Any]
    text: str
    is_error: bool = False
    media: tuple[Media, ...] = ()
    verbatim: object | None = None
    added: str = ""

    def fitted(self, budget: int, parameters: Collection[str]) -> ToolResult:
        """Returns the result with a text of at most `budget` characters.

        A longer text is cut at its last line end that fits and closed by a note that says how much
        is shown and how to get the rest. The structured result stays whole.

        Args:
            budget: Characters, at least 1,000, so that the note always fits.
            parameters: Those of the tool, of which the note names the ones that ask for less.
        """
        length = len(self.text)
        if length <= budget:
            return self
        narrowing = " or ".join(name for name in NARROWING if name in parameters)
        ask = f"ask for a part with {narrowing}" if narrowing else "ask for less"
        note = f"\n[Cut here: {{shown}} of {length} characters are shown. For the rest, {ask}.]"
        shown = _cut_at_line(self.text, budget - len(note.format(shown=length)))
        return replace(self, text=shown + note.format(shown=len(shown)))

    @classmethod
    def failure(cls, error: ToolError, *, command: str = "toolcrib") -> ToolResult:
        """Returns the result that an exception stands for; the arguments of ToolFailure.of."""
        failure = ToolFailure.of(error, command=command)
        return cls(failure.model_dump(mode="json"), failure.to_text(), is_error=True)


def _format(data: bytes) -> str | None:
    if len(data) < SHORTEST:
        return None
    text = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"<?xml") and b"<svg" in text:
        return "image/svg+xml"
    return next((mime for at, magic, mime in MAGIC if data.startswith(magic, at)), None)


def _cut_at_line(text: str, room: int) -> str:
    """The first `room` characters, without a last line that would be cut in its middle."""
    line_end = text.rfind("\n", 0, room + 1)
    return text[: line_end if line_end > room // 2 else room]
