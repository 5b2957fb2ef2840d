"""Keeps all tools by name."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.core.errors import PermissionDeniedError, UnknownToolError
from tools.core.spec import ToolSpec
from tools.core.toolset import CREATED, GROUPS, DefinitionFormat, ToolOffer, ToolSet, folded_name

if TYPE_CHECKING:  # an author's own server needs none of what settings customize
    from tools.core.collections import Collections

logger = logging.getLogger("toolcrib")

SUGGESTIONS = 3
SIMILAR_ENOUGH = 60.0
"""Minimum similarity, of 100, of a suggested name."""
LONGEST_NAME = 128
"""Maximum characters of an unknown name that are compared and repeated (the protocol's limit)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredTool(ToolOffer):
    """A tool that is converted on first use."""

    convert: Callable[[], ToolSpec]  # creates its specification


class ToolRegistry:
    """All tools by name and alias.

    A tool of another server can also be found by its bare name if that is unique. One of ours can
    also be found by the name it has in other agents, in any spelling. Tools created for one user
    are only in the registry returned by `of` for that user.
    """

    def __init__(self) -> None:
        self._specs: dict[str, ToolSpec | DeferredTool] = {}
        self._owners: dict[str, ToolSpec | DeferredTool] = {}
        self._bare: defaultdict[str, set[str]] = defaultdict(set)
        self._folded: defaultdict[str, set[str]] = defaultdict(set)
        """The names of the tools by their folded names and aliases."""
        self._collections: Collections | None = None
        self._journal: list[str] = []
        self._of_users: dict[str, _OfUser] = {}

    @property
    def has_created(self) -> bool:
        """Returns whether any user has created tools."""
        return bool(self._of_users)

    def of(self, user_id: str) -> ToolRegistry:
        """Returns the registry of one user: everybody's tools, and the user's created ones."""
        return self._of_users.get(user_id, self)

    def by_id(self, tool_id: str) -> ToolSpec | None:
        """Returns the tool with that `ToolOffer.id`, whoever owns it."""
        if not tool_id.startswith(CREATED):
            return self.get(tool_id)
        name, _, user_id = tool_id.removeprefix(CREATED).partition(":")
        own = self._of_users.get(user_id)
        return None if own is None else own.created(name)

    def replace_created(self, user_id: str, specs: Sequence[ToolSpec]) -> None:
        """Replaces all tools that were created for one user."""
        own = self._of_users.setdefault(user_id, _OfUser(self))
        self._journal += [f"{CREATED}{name}:{user_id}" for name in own.replace(specs)]

    @property
    def changes(self) -> int:
        """The number of additions, removals and changes so far, for cache invalidation."""
        return len(self._journal)

    def changed_since(self, changes: int) -> list[str]:
        """Returns the ids of the tools that changed since that number of changes."""
        return list(dict.fromkeys(self._journal[changes:]))

    def add(self, spec: ToolSpec | DeferredTool) -> None:
        """Adds a tool under its name and all its aliases, or not at all.

        Raises:
            ValueError: If a name is taken; the message names both owners.
        """
        names = (spec.name, *spec.aliases)
        for position, name in enumerate(names):
            owner = spec if name in names[:position] else self._owners.get(name)
            if owner is not None:
                raise ValueError(
                    f"The tool name {name!r} is claimed by {_describe(spec)}, but it belongs to "
                    f"{_describe(owner)} already. Rename one of them or drop the alias."
                )
        self._put(spec)
        self._journal.append(spec.name)

    def remove(self, name: str) -> None:
        """Removes the tool of exactly that name, if any."""
        spec = self._specs.pop(name, None)
        if spec is None:
            return
        for each in (spec.name, *spec.aliases):
            del self._owners[each]
        for each in _names(spec):
            self._folded[folded_name(each)].discard(name)
        if isinstance(spec, ToolSpec) and spec.bare:
            self._bare[spec.bare].discard(name)
        self._journal.append(name)

    def remove_source(self, source: str) -> None:
        """Removes every tool from one source."""
        for name in [name for name, spec in self._specs.items() if spec.source == source]:
            self.remove(name)

    def replace_source(self, source: str, specs: Sequence[ToolSpec]) -> None:
        """Replaces all tools from one source; unchanged tools stay in place.

        A tool whose name belongs to another source is skipped and logged.
        """
        wanted = {spec.name: spec for spec in specs}
        for name in [name for name, spec in self._specs.items() if spec.source == source]:
            if wanted.get(name) is not self._specs[name]:
                self.remove(name)
        for name, spec in wanted.items():
            if name in self._specs and self._specs[name] is spec:
                continue
            try:
                self.add(spec)
            except ValueError as error:
                logger.warning("%s", error)

    def customize(self, collections: Collections) -> None:
        """Adapts each tool that asks for it to the settings; call it once, before any listing."""
        self._collections = collections
        for spec in self._specs.copy().values():
            if isinstance(spec, ToolSpec):
                self._put(self._fitted(spec))
                self._journal.append(spec.name)

    def get(self, name: str) -> ToolSpec | None:
        """Returns the tool with that name, alias, unique bare name or foreign name, or None."""
        owner = self._owners.get(name)
        if owner is None and (namesakes := self._bare.get(name)):
            owner = self._only(namesakes)
        elif owner is None:
            meant = self._only(self._folded.get(folded_name(name), ()))
            owner = meant if meant is not None and meant.goes_by(name) else None
        return None if owner is None else self._converted(owner)

    def find(self, name: str, tool_set: ToolSet | None = None) -> ToolSpec:
        """Returns the tool of that name, alias or unique bare name.

        Raises:
            UnknownToolError: If there is none; it suggests up to three similar names of the set.
        """
        spec = self.get(name)
        if spec is None and (namesakes := self._namesakes(name, tool_set)):
            raise UnknownToolError(
                f"Several servers have a tool {name!r}.",
                suggestions=namesakes[:SUGGESTIONS],
                next_actions=["Call the one that you mean by its whole name."],
            )
        if spec is None:
            lists = "tools/list or search_tools" if self.get("search_tools") else "tools/list"
            raise UnknownToolError(
                f"No tool is called {name[:LONGEST_NAME]!r}.",
                suggestions=self._similar(name[:LONGEST_NAME], tool_set),
                next_actions=[f"Call a tool by its name as {lists} gives it."],
            )
        return spec

    def specs(self) -> tuple[ToolSpec, ...]:
        """Returns all tools, ordered by name."""
        return tuple(self._converted(each) for each in self._in_order())

    def definitions(
        self,
        format: DefinitionFormat = "function-calling",  # noqa: A002  # the common name in model APIs' libraries
    ) -> dict[str, list[dict[str, Any]]]:
        """Returns the tool definitions of each group, in the form that model APIs take.

        Args:
            format: "function-calling": `{"type": "function", "function": {name, description,
                parameters}}`.

        Raises:
            ValueError: If the format is unknown.
        """
        if format != "function-calling":
            raise ValueError(f"format is {format!r}; use 'function-calling'")
        return {
            group: [spec.function_calling() for name in names if (spec := self.get(name))]
            for group, names in GROUPS.items()
        }

    def offers(self, tool_set: ToolSet | None = None) -> tuple[ToolOffer, ...]:
        """Returns the offers of a set's tools, or of all tools for None."""
        return tuple(each for each in self._in_order() if tool_set is None or tool_set.admits(each))

    def description_of(self, spec: ToolSpec, tool_set: ToolSet | None = None) -> str:
        """Returns a tool's description, which may depend on the reader's other tools."""
        return spec.description if spec.describe is None else spec.describe(self.offers(tool_set))

    def _in_order(self) -> list[ToolSpec | DeferredTool]:
        return sorted(self._specs.values(), key=lambda each: each.name)

    def _converted(self, found: ToolSpec | DeferredTool) -> ToolSpec:
        if isinstance(found, ToolSpec):
            return found
        spec = self._fitted(found.convert())
        self._put(spec)
        return spec

    def _fitted(self, spec: ToolSpec) -> ToolSpec:
        if spec.customize is None or self._collections is None:
            return spec
        return spec.customize(spec, self._collections)

    def _put(self, spec: ToolSpec | DeferredTool) -> None:
        self._specs[spec.name] = spec
        self._owners.update(dict.fromkeys((spec.name, *spec.aliases), spec))
        for each in _names(spec):
            self._folded[folded_name(each)].add(spec.name)
        if isinstance(spec, ToolSpec) and spec.bare:
            self._bare[spec.bare].add(spec.name)

    def _only(self, names: Collection[str]) -> ToolSpec | DeferredTool | None:
        return self._owners[next(iter(names))] if len(names) == 1 else None

    def _namesakes(self, bare: str, tool_set: ToolSet | None) -> list[str]:
        """Returns the tools of other servers with that bare name."""
        names = sorted(self._bare.get(bare, ()))
        return [name for name in names if tool_set is None or tool_set.admits(self._specs[name])]

    def _similar(self, name: str, tool_set: ToolSet | None) -> list[str]:
        from rapidfuzz import process, utils

        known = self._all_names()
        ranked = process.extract(
            name,
            sorted(each for each, owner in known if tool_set is None or tool_set.admits(owner)),
            processor=utils.default_process,
            limit=SUGGESTIONS,
            score_cutoff=SIMILAR_ENOUGH,
        )
        return [candidate for candidate, _score, _position in ranked]

    def _all_names(self) -> list[tuple[str, ToolSpec | DeferredTool]]:
        return list(self._owners.items())  # a copy, since tools come and go meanwhile


class _OfUser(ToolRegistry):
    """Everybody's tools and one user's own; everybody's win where names collide."""

    def __init__(self, everybodys: ToolRegistry) -> None:
        super().__init__()
        self._everybodys = everybodys

    def created(self, name: str) -> ToolSpec | None:
        """Returns the user's own tool of exactly that name, unless everybody's hides it."""
        return super().get(name) if self._everybodys.get(name) is None else None

    def replace(self, specs: Sequence[ToolSpec]) -> list[str]:
        """Replaces the user's own tools; returns the names that changed."""
        before = len(self._journal)
        self.replace_source("created", specs)
        return self._journal[before:]

    def get(self, name: str) -> ToolSpec | None:
        found = self._everybodys.get(name)
        return super().get(name) if found is None else found

    def _in_order(self) -> list[ToolSpec | DeferredTool]:
        own = (each for each in self._specs.values() if self.created(each.name) is not None)
        return sorted([*self._everybodys._in_order(), *own], key=lambda each: each.name)  # noqa: SLF001  # it is a registry too

    def _converted(self, found: ToolSpec | DeferredTool) -> ToolSpec:
        return self._everybodys._converted(found)  # noqa: SLF001  # it is a registry too

    def _namesakes(self, bare: str, tool_set: ToolSet | None) -> list[str]:
        return self._everybodys._namesakes(bare, tool_set)  # noqa: SLF001  # it is a registry too

    def _all_names(self) -> list[tuple[str, ToolSpec | DeferredTool]]:
        return [*self._everybodys._all_names(), *super()._all_names()]  # noqa: SLF001  # it is a registry too


def check_admitted(spec: ToolSpec, tool_set: ToolSet | None) -> None:
    """Rejects a tool that the caller's profile excludes, or that the user must review first."""
    if tool_set is not None and not tool_set.admits(spec):
        raise PermissionDeniedError(
            f"{spec.name} is not among the tools of the profile {tool_set.name!r}.",
            next_actions=["Use another tool, or ask the user to change that profile."],
        )
    if spec.quarantine_reason:
        raise PermissionDeniedError(
            f"{spec.name} is in quarantine: {spec.quarantine_reason}", next_actions=[_review(spec)]
        )


def _review(spec: ToolSpec) -> str:
    if spec.server:
        return f"Ask the user to run `toolcrib servers review {spec.server}`."
    table = spec.source.replace(":", ".")
    return (
        f"Ask the user to look at the description in [{table}] of the settings, and to set"
        " `trusted = true` there if it is as it should be."
    )


def _names(spec: ToolOffer) -> tuple[str, ...]:
    return tuple(filter(None, (spec.name, *spec.aliases, *spec.aliases_elsewhere, spec.bare)))


def _describe(spec: ToolOffer) -> str:
    return f"{spec.name} ({spec.source})"
