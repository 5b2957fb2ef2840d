"""Defines the result of a call: a success or a failure, with images and sounds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from tools.core.content import Attachment, Block, decode_block, encode_block
from tools.core.errors import ErrorType, ToolError, Words

NARROWING = (
    *("ranges", "top_k", "limit", "offset", "max_results", "depth", "return_chunks", "cursor"),
    "fields",
)
"""Arguments that ask for less, in the catalogue's naming."""

ENDING = 300
"""Characters that a cut keeps at a text's end, which often explains how to get the next page."""


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


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call.

    Attributes:
        structured: JSON object that validates against the output schema (on success), or a
            ToolFailure as JSON (on failure).
        media: Images, sounds and resources of the result, in order.
        blocks: The content blocks, if the tool returned such; they replace text and media.
        verbatim: Another server's result, passed on unchanged.
        added: Our own text in addition to it.
        meta: The tool's data for the client program (`_meta`).
    """

    structured: dict[str, Any]
    text: str
    is_error: bool = False
    media: tuple[Attachment, ...] = ()
    blocks: tuple[Block, ...] = ()
    verbatim: object | None = None
    added: str = ""
    meta: dict[str, Any] | None = None

    @property
    def tells_failure(self) -> bool:
        """Returns whether the call failed, or its result reports a failure of what it ran."""
        parts = self.structured, self.structured.get("result")
        return self.is_error or any(_tells_failure(each) for each in parts if type(each) is dict)

    def fitted(self, budget: int, parameters: Collection[str]) -> ToolResult:
        """Returns the result with a text of at most `budget` characters.

        Whole lines are cut from the middle of a longer text. A note in their place says how much is
        shown, which lines are missing, and how to get them. The end stays, since it may say how to
        get a next page. The text replaces the blocks; the structured result stays whole.

        The budget is at least 1,000, so that the note always fits. The note names the parameters
        that ask for less.
        """
        length = len(self.text)
        if length <= budget:
            return self
        narrowing = " or ".join(name for name in NARROWING if name in parameters)
        ask = f"ask for a part with {narrowing}" if narrowing else "ask for less"
        ending = _ending(self.text)
        lines = self.text.count("\n") + 1

        def note(shown: int, first: int) -> str:
            last = lines - ending.count("\n") - 1
            left = f", without lines {first} to {last} of {lines}" if first <= last else ""
            said = f"{shown} of {length} characters are shown{left}"
            return f"\n[Cut here: {said}. For the rest, {ask}.]\n"

        head = _cut_at_line(
            self.text, budget - len(ending) - len(note(length, 1)) - len(str(lines))
        )
        said = note(len(head) + len(ending), head.count("\n") + 2)
        return replace(self, text=head + said + ending, blocks=())

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


def encode_result(result: ToolResult) -> dict[str, Any]:
    """Converts a result to plain JSON."""
    return {
        "structured": result.structured,
        "text": result.text,
        "is_error": result.is_error,
        "media": [encode_block(each) for each in result.media],
        "blocks": [encode_block(each) for each in result.blocks],
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
    )


def _ending(text: str) -> str:
    line_end = text.find("\n", len(text) - ENDING)
    start = len(text) - ENDING if line_end < 0 else line_end + 1
    return text[start:]


def _cut_at_line(text: str, room: int) -> str:
    line_end = text.rfind("\n", 0, room + 1)
    return text[: line_end if line_end > room // 2 else room]
