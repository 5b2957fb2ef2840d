"""What a shape is: a function as somebody might write it, and what its tool must do."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

Function = Callable[..., Any]
Served = Server[Any] | MCPServer
FunctionT = TypeVar("FunctionT", bound=Function)
MakeT = TypeVar("MakeT", bound="Callable[[Kit], Function | Served]")


class Miss(Exception):  # noqa: N818  # an expectation that was missed, not an error of this program
    """What a tool did not do as it should; the text says what it did instead."""


class Kit(Protocol):
    """What a system hands to the authors of functions."""

    context: Any

    def image(self, data: bytes) -> object:
        """A PNG file as a function returns it."""

    def audio(self, data: bytes) -> object:
        """A WAV file as a function returns it."""

    def depends(self, function: Function) -> Any:  # noqa: ANN401  # a default of any type
        """What says that the value of a parameter is made by a function."""

    def serve(self, function: Function, options: Options) -> Served:
        """A server whose one tool is made of the function."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call answered, as it went over the wire."""

    is_error: bool
    text: str
    structured: dict[str, Any] | None
    content: list[dict[str, Any]]
    progress: list[str]

    @property
    def value(self) -> Any:  # noqa: ANN401  # any JSON value
        """The result, out of its wrapper if it has one, and from the texts if it is in no other."""
        if self.structured is not None:
            wrapped = set(self.structured) == {"result"}
            return self.structured["result"] if wrapped else self.structured
        texts = [_decoded(part["text"]) for part in self.content if part["type"] == "text"]
        return texts[0] if len(texts) == 1 else texts


@dataclass(frozen=True, slots=True)
class Tool:
    """One listed tool, and how to call it."""

    definition: dict[str, Any]
    answer: Callable[[Mapping[str, Any]], Awaitable[Answer]]

    @property
    def description(self) -> str:
        """The text for the model."""
        return str(self.definition.get("description") or "")

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        schema: dict[str, Any] = self.definition["inputSchema"]
        return schema

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured result, if one is listed."""
        return self.definition.get("outputSchema")


Check = Callable[[Tool], Awaitable[None]]
"""Raises Miss if the tool does not do what it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the author says beside the function."""

    name: str | None = None
    description: str | None = None
    hidden: AbstractSet[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A function as somebody might write it, and what its tool must do."""

    title: str
    theme: str
    make: Callable[[Kit], Function | Served]
    checks: tuple[Check, ...]
    options: Options
    refused: str | None


@dataclass(slots=True)
class Theme:
    """A group of shapes; its decorators declare them."""

    name: str
    shapes: list[Shape] = field(default_factory=list)

    def shape(
        self, title: str, *checks: Check, options: Options | None = None, refused: str | None = None
    ) -> Callable[[FunctionT], FunctionT]:
        """Declares a function as a shape."""

        def declare(function: FunctionT) -> FunctionT:
            declare_for = self.shape_for(title, *checks, options=options, refused=refused)
            declare_for(lambda _kit: function)
            return function

        return declare

    def shape_made(
        self, title: str, *checks: Check, options: Options | None = None, refused: str | None = None
    ) -> Callable[[Callable[[], Function]], Callable[[], Function]]:
        """The same for a function that a factory makes, with what is local to it."""

        def declare(make: Callable[[], Function]) -> Callable[[], Function]:
            declare_for = self.shape_for(title, *checks, options=options, refused=refused)
            declare_for(lambda _kit: make())
            return make

        return declare

    def shape_for(
        self, title: str, *checks: Check, options: Options | None = None, refused: str | None = None
    ) -> Callable[[MakeT], MakeT]:
        """The same for a function that uses what the system hands to its authors."""

        def declare(make: MakeT) -> MakeT:
            declared = Shape(
                title=title,
                theme=self.name,
                make=make,
                checks=checks,
                options=options or Options(),
                refused=refused,
            )
            self.shapes.append(declared)
            return make

        return declare


def show(value: object) -> str:
    """The type and the value, as a function got them."""
    return f"{type(value).__name__} {value}"


def _decoded(text: str) -> Any:  # noqa: ANN401  # any JSON value
    try:
        return json.loads(text)
    except ValueError:
        return text
