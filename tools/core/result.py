"""Defines the result of a call: a success or a failure, with images and sounds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from tools.core.content import (
    Attachment,
    Block,
    EmbeddedResource,
    Media,
    decode_block,
    encode_block,
)
from tools.core.errors import ErrorType, ToolError, Words

ValueT = TypeVar("ValueT")
OmitNone = Annotated[ValueT | None, Field(exclude_if=lambda value: value is None)]
"""The type of a result field that is omitted if it is None."""


AnyJson = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": kind}
                for kind in ("string", "number", "boolean", "object", "array", "null")
            ]
        }
    ),
]
"""Any JSON value, with explicit types for clients that require them."""


class ToolModel(BaseModel):
    """A model whose validator is built on first use, to speed up the start."""

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def from_attributes(cls, source: object, **given: object) -> Self:
        """Creates a model from the attributes of an object with the fields' names.

        `given` are fields that it lacks, or that override its own.
        """
        taken = {name: getattr(source, name) for name in cls.model_fields if name not in given}
        return cls(**taken, **given)


class ToolFailure(ToolModel):
    """The result of a failed call."""

    error_type: ErrorType  # one of the closed list
    message: str
    suggestions: list[str] = Field(default_factory=list)
    next_actions: list[str] = Field(default_factory=list)

    @classmethod
    def of(cls, error: ToolError, words: Words | None = None) -> ToolFailure:
        """Returns the failure for an exception, in its reader's words."""
        return cls(
            error_type=error.error_type,
            message=error.message,
            suggestions=list(error.suggestions),
            next_actions=(words or Words()).actions(error.next_actions),
        )

    def to_text(self) -> str:
        """Formats the failure as lines for the model."""
        lines = [f"{self.error_type}: {self.message}"]
        if self.suggestions:
            lines.append("Did you mean: " + ", ".join(self.suggestions))
        lines.extend(f"Next: {action}" for action in self.next_actions)
        return "\n".join(lines)


_EXIT_CODES = "exit_code", "exitCode", "returncode", "exit_status"
_SUCCESSES = "ok", "success", "succeeded"
_FAILED_STATES = frozenset({"failed", "error", "timed_out", "cancelled", "lost"})


Preview = Literal["", "text", "valid", "unfit"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call.

    Attributes:
        structured: JSON object that validates against the output schema (on success), or a
            ToolFailure as JSON (on failure).
        media: Images, sounds and resources of the result, in order.
        blocks: The content blocks, if the tool returned such; they replace text and media.
        verbatim: Another server's result, passed on unchanged.
        replaced: The images of it that were scaled; None instead of those that are left out.
        added: Our own text in addition to it.
        meta: The tool's data for the client program (`_meta`).
        preview: What a preview of a large result has as structured content: nothing (`text`), a
            short form that fits the schema, or nothing although a schema is declared (`unfit`).
    """

    structured: dict[str, Any]
    text: str
    is_error: bool = False
    media: tuple[Attachment, ...] = ()
    blocks: tuple[Block, ...] = ()
    verbatim: object | None = None
    replaced: Mapping[Media, Media | None] = field(default_factory=dict)
    added: str = ""
    meta: dict[str, Any] | None = None
    preview: Preview = ""

    @property
    def tells_failure(self) -> bool:
        """Returns whether the call failed, or its result reports a failure of what it ran."""
        parts = self.structured, self.structured.get("result")
        return self.is_error or any(_tells_failure(each) for each in parts if type(each) is dict)

    @property
    def whole_text(self) -> str:
        """The text with those of embedded resources."""
        resources = (each for each in self.media if isinstance(each, EmbeddedResource))
        return "\n".join([self.text, *(each.data for each in resources if type(each.data) is str)])

    def size(self, *, both: bool) -> int:
        """Returns the characters that a model may read, in the text or, if `both`, in the JSON."""
        size = len(self.whole_text) + len(self.added)
        if self.is_error or not both or not self.structured:
            return size
        return max(size, len(compact(self.structured)))

    @classmethod
    def failure(cls, error: ToolError, words: Words | None = None) -> ToolResult:
        """Returns the result for an exception; takes the arguments of ToolFailure.of."""
        failure = ToolFailure.of(error, words)
        return cls(failure.model_dump(mode="json"), failure.to_text(), is_error=True)


def _tells_failure(said: Mapping[str, Any]) -> bool:
    codes, states = (map(said.get, names) for names in (_EXIT_CODES, ("state", "status")))
    return (
        any(isinstance(code, int) and code != 0 for code in codes)
        or any(isinstance(state, str) and state in _FAILED_STATES for state in states)
        or any(said.get(name) is False for name in _SUCCESSES)
        or said.get("timed_out") is True
    )


def compact(value: Any) -> str:  # noqa: ANN401  # any JSON value
    """Formats JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encode_result(result: ToolResult) -> dict[str, Any]:
    """Converts a result to plain JSON."""
    return {
        "structured": result.structured,
        "text": result.text,
        "is_error": result.is_error,
        "media": [encode_block(each) for each in result.media],
        "blocks": [encode_block(each) for each in result.blocks],
        **({"preview": result.preview} if result.preview else {}),
        **({"meta": result.meta} if result.meta else {}),  # code workers must not send any
    }


def decode_result(sent: dict[str, Any]) -> ToolResult:
    """Converts the output of `encode_result` back to a result."""
    media, blocks = (tuple(map(decode_block, sent[name])) for name in ("media", "blocks"))
    return ToolResult(
        sent["structured"],
        sent["text"],
        sent["is_error"],
        tuple(each for each in media if isinstance(each, Attachment)),
        blocks,
        meta=sent.get("meta"),
        preview=sent.get("preview", ""),
    )
