"""Every tool through three: find one, see how it is called, call it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, FiniteFloat

from tools.core.cards import groups, parameters, signature, summary
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.params import TopK
from tools.core.spec import (
    Effect,
    ToolFailure,
    ToolOffer,
    ToolResult,
    ToolScope,
    ToolSpec,
    tool,
)

__all__ = ["call_tool", "describe_tool", "search_tools"]

ToolName = Annotated[str, Field(min_length=1, max_length=128, description="Its name or an alias")]


class ToolCard(BaseModel):
    """A tool in one line.

    Attributes:
        name: What it is called by.
        signature: Its parameters; "?" follows what may be left out.
        summary: What it does.
        score: How well it fits, 0 and up.
    """

    name: str
    signature: str
    summary: str
    score: FiniteFloat


class FoundTools(BaseModel):
    """The tools that fit, best first.

    Attributes:
        tools: One card a tool.
        groups: How many tools there are of each group.
    """

    tools: list[ToolCard]
    groups: str

    def to_text(self) -> str:
        """One line a tool."""
        if not self.tools:
            return f"No tool fits. Try other words; there are: {self.groups}."
        return "\n".join(f"{card.signature}: {card.summary}" for card in self.tools)


class ToolDescription(BaseModel):
    """All that is known of a tool.

    Attributes:
        name: What it is called by.
        aliases: Other names that reach it.
        description: What it does.
        scope: What it is given: files, stored context, neither.
        effects: What a call does: read, write, execute, external.
        destructive: Whether a call may remove or overwrite what exists.
        idempotent: Whether repeating a call changes nothing more.
        confirmation: Whether a person should agree first.
        tags: Groups it belongs to.
        source: Where it comes from.
        input_schema: JSON Schema of its arguments.
        output_schema: JSON Schema of its structured result, where it says one.
    """

    name: str
    aliases: list[str]
    description: str
    scope: str
    effects: list[str]
    destructive: bool
    idempotent: bool
    confirmation: str
    tags: list[str]
    source: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None

    @classmethod
    def of(cls, spec: ToolSpec, description: str) -> ToolDescription:
        """What the specification says, with the description as it is now."""
        return cls(
            name=spec.name,
            aliases=list(spec.aliases),
            description=description,
            scope=spec.scope,
            effects=sorted(spec.effects),
            destructive=spec.destructive,
            idempotent=spec.idempotent or spec.read_only,
            confirmation=spec.confirmation,
            tags=list(spec.tags),
            source=spec.source,
            input_schema=dict(spec.input_schema),
            output_schema=None if spec.output_schema is None else dict(spec.output_schema),
        )

    def to_text(self) -> str:
        """What it does, then both schemas as JSON."""
        traits = [*self.effects, *["destructive"] * self.destructive]
        also = f" (also {', '.join(self.aliases)})" if self.aliases else ""
        lines = [f"{self.name}{also}: {self.description}", f"Effects: {', '.join(traits)}"]
        lines.append(f"Arguments: {_compact(self.input_schema)}")
        if self.output_schema is not None:
            lines.append(f"Result: {_compact(self.output_schema)}")
        return "\n".join(lines)


def _tell_of_all(specs: Sequence[ToolOffer]) -> str:
    return (
        f"Finds tools by what they do, among all {len(specs)}: {groups(specs)}. Most are not in "
        "your list: search before you say that something cannot be done, then call_tool."
    )


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("toolsearch",),
    capabilities=("find a tool for a task", "list what can be done"),
    describe=_tell_of_all,
)
def search_tools(
    context: RequestContext,
    query: Annotated[str, Field(min_length=1, max_length=1_000, description="What you want to do")],
    top_k: TopK = 5,
) -> FoundTools:
    """Finds tools by what they do, among all there are."""
    catalogue = context.catalogue
    registry = catalogue.registry
    cards = [
        ToolCard(
            name=match.spec.name,
            signature=signature(match.spec),
            summary=summary(registry.description_of(match.spec)),
            score=round(match.score, 4),
        )
        for match in catalogue.search(query, top_k)
    ]
    return FoundTools(tools=cards, groups=groups(registry.offers()))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("toolsearch",),
    capabilities=("show the parameters and the result of a tool",),
)
def describe_tool(context: RequestContext, name: ToolName) -> ToolDescription:
    """Shows all parameters of a tool, those too that the list leaves out, and its result."""
    registry = context.catalogue.registry
    spec = registry.find(name)
    return ToolDescription.of(spec, spec.details or registry.description_of(spec))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.EXECUTE, Effect.EXTERNAL},  # whatever the called tool does
    destructive=True,
    tags=("toolsearch",),
    capabilities=("call a tool that is not listed",),
    timeout=math.inf,  # the called tool has its own
    passes_on=True,
)
async def call_tool(
    context: RequestContext,
    name: ToolName,
    arguments: Annotated[dict[str, Any] | None, Field(description="As its schema says")] = None,
) -> ToolResult:
    """Calls any tool, listed or not, and answers what it answers."""
    spec = context.catalogue.registry.get(name)
    if spec is not None and spec.name == call_tool.__name__:
        raise InvalidArgumentsError(
            "name: call_tool cannot call itself.",
            next_actions=["Name the tool that you want called, with its arguments."],
        )
    result = await context.call(name, arguments or {})
    called = context.catalogue.registry.get(name)
    return result if called is None else _advised(result, called)


def _advised(result: ToolResult, spec: ToolSpec) -> ToolResult:
    """The result as it is; a complaint about arguments also says what they should be."""
    if not result.is_error or result.structured["error_type"] != "invalid_arguments":
        return result
    failure = ToolFailure.model_validate(result.structured)
    failure.next_actions.append(f"Its parameters are {parameters(spec)}.")
    return replace(result, structured=failure.model_dump(mode="json"), text=failure.to_text())


def _compact(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
