"""Validates the messages of a cell, which runs an agent's code and may send anything."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from tools.core.errors import ErrorType
from tools.functions.workers.messages import LONGEST_TOLD, Message

_EXACTLY = with_config(ConfigDict(strict=True, extra="forbid"))

Told = Annotated[str, Field(max_length=LONGEST_TOLD)]
Number = Annotated[int, Field(ge=0, lt=2**53)]


@_EXACTLY
class _Problem(TypedDict):
    text: str
    line: int | None
    column: int | None


@_EXACTLY
class _LoadedFunctions(TypedDict):
    offers: list[dict[str, Any]] | None
    problems: list[_Problem]
    files: list[str]


@_EXACTLY
class _Loaded(TypedDict):
    loaded: _LoadedFunctions


@_EXACTLY
class _Progress(TypedDict):
    progress: Number
    done: Annotated[float, Field(allow_inf_nan=False)]
    total: Annotated[float, Field(allow_inf_nan=False)] | None
    message: Told | None


@_EXACTLY
class _Tell(TypedDict):
    tell: Number
    level: Annotated[str, Field(max_length=20)]
    text: Told


@_EXACTLY
class _Ask(TypedDict):
    ask: Number
    id: Number
    tool: Annotated[str, Field(max_length=200)]
    arguments: dict[str, Any]


@_EXACTLY
class _Withdraw(TypedDict):
    withdraw: Number
    id: Number


@_EXACTLY
class _Media(TypedDict):
    kind: Literal["image", "audio"]
    data: str
    mime_type: str


@_EXACTLY
class _Failure(TypedDict):
    error_type: ErrorType
    message: str
    suggestions: list[str]
    next_actions: list[str]


@_EXACTLY
class _Success(TypedDict):
    result: Number
    structured: dict[str, Any]
    text: str
    is_error: Literal[False]
    media: list[_Media]
    blocks: list[str | _Media]


@_EXACTLY
class _Failed(TypedDict):
    result: Number
    structured: _Failure
    text: str
    is_error: Literal[True]
    media: Annotated[list[Any], Field(max_length=0)]
    blocks: Annotated[list[Any], Field(max_length=0)]


_SHAPES: dict[str, Any] = {
    "loaded": _Loaded,
    "progress": _Progress,
    "tell": _Tell,
    "ask": _Ask,
    "withdraw": _Withdraw,
    "result": _Success | _Failed,
}
"""The form of each message, by its first key."""


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_SHAPES[kind])


def checked(message: Message) -> Message:
    """Returns the message if a cell may send it.

    Raises:
        ValueError: If its form is invalid.
    """
    kind = next(iter(message), "")
    if kind not in _SHAPES:
        raise ValueError(f"It sent {kind[:40]!r}, which is not a valid message.")
    taken: Message = _adapter(kind).validate_python(message)
    return taken
