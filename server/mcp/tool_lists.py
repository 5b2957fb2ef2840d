"""What tools/list answers: the same on every connection of a caller, whatever was called."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import mcp_types as types

from server.mcp.lean import lean
from server.mcp.profiles import Profile
from server.mcp.surface import EVERYDAY, REACHING, Surface
from tools.conversion.schema import outline
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec
from tools.core.toolset import UPSTREAM, ToolOffer, ToolSet

__all__ = ["ToolLists", "describe"]

CHARACTERS_PER_TOKEN = 4

ENVELOPE = len('{"tools":[]}')


class ToolLists:
    """Lists the tools of the surface; what a profile admits of them, for whom one holds.

    Each list is taken from the registry when it is first asked for, and stays: protocol 2026-07-28
    wants it untouched by calls. Only what other servers offer may change in it later.

    Args:
        registry: The tools.
        surface: Which tools are listed.
        ready: Awaited before a list is taken.
    """

    def __init__(
        self, registry: ToolRegistry, surface: Surface, ready: Callable[[], Awaitable[None]]
    ) -> None:
        self._registry = registry
        self._surface = surface
        self._ready = ready
        self._taken: dict[Profile | None, list[types.Tool]] = {}
        self._own: frozenset[str] | None = None

    async def of(self, profile: Profile | None) -> list[types.Tool]:
        """The definitions, in the order of their names.

        Args:
            profile: That of whoever asks; None where none holds.
        """
        if profile not in self._taken:
            await self._ready()
        if profile not in self._taken:  # nobody else has taken it meanwhile
            self._taken[profile] = self._take(profile)
        return self._taken[profile]

    def forget(self) -> None:
        """Has the lists taken anew, because another server offers other tools."""
        self._taken.clear()

    def _take(self, profile: Profile | None) -> list[types.Tool]:
        if profile is None:
            return [self._definition(each, None) for each in self._selected()]
        shown = self._selected(profile.tool_set, profile.pinned)
        if not profile.token_budget:
            return [self._definition(each, profile.tool_set) for each in shown]
        fitting = {each.name: each for each in self._fitting(shown, profile)}
        return [fitting[each.name] for each in shown if each.name in fitting]

    def _selected(
        self, tool_set: ToolSet | None = None, pinned: Sequence[str] = ()
    ) -> list[ToolSpec]:
        """The tools of the surface, without those that calls have created since the first list."""
        if self._own is None:
            here = (each for each in self._registry.offers() if not _is_elsewhere(each))
            self._own = frozenset(each.name for each in here)
        shown = self._surface.select(self._registry, tool_set, pinned)
        return [each for each in shown if _is_elsewhere(each) or each.name in self._own]

    def _fitting(self, shown: Sequence[ToolSpec], profile: Profile) -> Iterator[types.Tool]:
        """The pinned tools, and of the others what the budget has room for, the first ones first.

        The tools that reach all others come before those, so that what does not fit can be found.
        """
        pinned = {spec.name for spec in map(self._registry.get, profile.pinned) if spec}
        ranks = (pinned, REACHING, EVERYDAY)
        room = profile.token_budget * CHARACTERS_PER_TOKEN - ENVELOPE
        for spec in sorted(shown, key=lambda each: [each.name not in rank for rank in ranks]):
            definition = self._definition(spec, profile.tool_set)
            size = _size(definition)
            if spec.name in pinned or size <= room:
                room -= size
                yield definition

    def _definition(self, spec: ToolSpec, tool_set: ToolSet | None) -> types.Tool:
        described = replace(spec, description=self._registry.description_of(spec, tool_set))
        whole = describe(described)
        return lean(whole) if self._surface.shortens(spec) else whole


def _is_elsewhere(offer: ToolOffer) -> bool:
    """Whether a tool is another server's."""
    return offer.source.partition(":")[0] == UPSTREAM


def describe(spec: ToolSpec) -> types.Tool:
    """A tool as the list has it: its definition in MCP."""
    if isinstance(spec.listed, types.Tool):
        return spec.listed
    return types.Tool(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        input_schema=dict(spec.input_schema),
        output_schema=_listed_output(spec.output_schema),
        annotations=types.ToolAnnotations(
            read_only_hint=spec.read_only,
            destructive_hint=spec.destructive,
            idempotent_hint=spec.idempotent or spec.read_only,
            open_world_hint=spec.open_world,
        ),
    )


def _listed_output(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What a result looks like, at its top level: models pay for every character of the list.

    Nothing is required, so that a failure fits as well: clients of the TypeScript SDK check the
    structured content of failures too and would replace our message by their own
    (modelcontextprotocol/typescript-sdk issue 1943).
    """
    return None if schema is None else outline(schema)


def _size(definition: types.Tool) -> int:
    """Characters of a definition in a list, as compact JSON, with the comma after it."""
    wire = definition.model_dump(mode="json", by_alias=True, exclude_none=True)
    return len(json.dumps(wire, separators=(",", ":"), ensure_ascii=False)) + 1
