"""Keeps created tools, which agents have written, in the registry as recorded."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from storage.errors import StorageError
from storage.locks import made_once
from tools.core.errors import ConflictError, UnknownToolError
from tools.core.machine import Machine
from tools.core.registry import ToolRegistry
from tools.core.spec import Effect, ToolScope, ToolSpec
from tools.core.toolset import folded_name

if TYPE_CHECKING:  # loaded where a tool was created
    from storage.catalog.created_tools import CreatedTool, CreatedToolStore
    from storage.models import Identity
    from tools.core.context import RequestContext
    from tools.core.result import ToolResult
    from tools.functions.programs.source_analysis import Draft
    from tools.functions.programs.worker_pool import WarmTools

MOST_CLIENT = 60  # maximum characters of a client's own name that are kept
WATCH_SECONDS = 0.5  # interval between checks of the record, which other servers may change

_logger = logging.getLogger("toolcrib")

Invoke = Callable[[dict[str, Any], Any], Awaitable["ToolResult"]]


class CreatedTools:
    """Keeps each user's created tools in that user's registry, and runs them."""

    def __init__(
        self,
        store: Callable[[], CreatedToolStore],
        registry: ToolRegistry,
        make_warm: Callable[[], WarmTools],
    ) -> None:
        self._store = store
        self._registry = registry
        self._make_warm = make_warm
        self._changes = 0
        self._current: dict[tuple[str, str], tuple[CreatedTool, ToolSpec]] = {}
        self._hidden: set[str] = set()
        self._listeners: list[Callable[[], None]] = []

    @made_once
    def _warm(self) -> WarmTools:
        return self._make_warm()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Registers a listener for changes of the tools."""
        self._listeners.append(listener)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Loads the tools, and follows what other servers create and remove."""
        await self._follow()
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            yield
            group.cancel_scope.cancel()

    def load(self) -> None:
        """Applies changes of the record; blocks."""
        self._take(self._read())

    async def refresh(self) -> None:
        """Applies changes of the record."""
        self._take(await anyio.to_thread.run_sync(self._read))

    async def create(
        self,
        name: str,
        draft: Draft,
        context: RequestContext,
        *,
        told: str = "",
        parameters: Mapping[str, Any] | None = None,
    ) -> tuple[CreatedTool, ToolSpec]:
        """Converts a draft in a separate process, and stores the resulting tool.

        `told`: the given description; empty for the docstring's.
        """
        from tools.functions.programs.definitions import definition_of

        async with self._warm.converted(name, draft) as (warm, sent):
            definition = definition_of(draft, sent, told, parameters)
            add = partial(
                self._store().add,
                context.identity,
                name,
                draft.source,
                definition,
                session_id=context.session_id,
                client=context.client,
            )
            tool = await anyio.to_thread.run_sync(add)
            await self._warm.keep_for(warm, tool, context)
        await self.refresh()
        return tool, self._specified(tool)

    def check_name(self, name: str) -> None:
        """Rejects a name that equals, or looks like, the name of a tool that was not created."""
        from tools.conversion.confusables import skeleton

        looks = skeleton(folded_name(name))
        for offer in self._registry.offers():
            for other in (offer.name, offer.bare, *offer.aliases, *offer.aliases_elsewhere):
                if other and skeleton(folded_name(other)) == looks:
                    raise ConflictError(
                        f"tool_name: {name!r} is, or looks like, the name of {offer.name}"
                        f" ({offer.source.partition(':')[0]}).",
                        next_actions=["Choose a name that cannot be taken for another tool's."],
                    )

    async def current(self, identity: Identity, name: str) -> CreatedTool | None:
        """Returns a user's current tool, or None."""
        await self.refresh()
        found = self._current.get((identity.user_id, name))
        return None if found is None else found[0]

    async def remove(self, identity: Identity, name: str) -> CreatedTool | None:
        """Removes a user's tool and returns its last version, or None."""
        removed = await anyio.to_thread.run_sync(self._store().remove, identity.user_id, name)
        await self.refresh()
        return removed

    async def _follow(self) -> None:
        """Applies changes of the record if it can be read, and logs a warning otherwise."""
        try:
            await self.refresh()
        except StorageError as error:
            _logger.warning("Created tools cannot be read: %s", error)

    async def _watch(self) -> None:
        while True:
            await self._follow()
            taken = {name for _, name in self._current if self._registry.get(name) is not None}
            for name in taken - self._hidden:
                _logger.warning("The created tool %s is hidden by another tool of that name", name)
            self._hidden = taken
            if "_warm" in vars(self):
                await self._warm.sweep()
            await anyio.sleep(WATCH_SECONDS)

    def _read(self) -> tuple[int, list[CreatedTool]] | None:
        """Returns the record's change count and contents, or None if nothing changed."""
        store = self._store()
        changes = store.changes()
        return None if changes == self._changes else (changes, store.everybodys())

    def _take(self, found: tuple[int, list[CreatedTool]] | None) -> None:
        if found is None or found[0] <= self._changes:
            return
        self._changes, tools = found
        before, self._current = self._current, {}
        by_user: defaultdict[str, list[ToolSpec]] = defaultdict(list)
        for user_id, _ in before:
            by_user[user_id] = []
        for tool in tools:
            if not tool.is_whole:
                _logger.error(
                    "The created tool %s differs from the approved version and is skipped",
                    tool.name,
                )
                continue
            key = tool.owner, tool.name
            known, spec = before.get(key, (None, None))
            if spec is None or known != tool:
                spec = self._specified(tool)
            self._current[key] = tool, spec
            by_user[tool.owner].append(spec)
        for user_id, specs in by_user.items():
            self._registry.replace_created(user_id, specs)
        for listener in self._listeners:
            listener()

    def _specified(self, tool: CreatedTool) -> ToolSpec:
        return _spec_of(tool, partial(self._run, tool))

    async def _run(
        self, tool: CreatedTool, arguments: dict[str, Any], context: RequestContext
    ) -> ToolResult:
        await self.refresh()  # another server may have removed it just now
        now, _ = self._current.get((tool.owner, tool.name), (None, None))
        if now is None:
            raise UnknownToolError(f"{tool.name} was removed.")
        if now != tool:
            raise ConflictError(
                f"{tool.name} was changed: its version is now {now.version}.",
                next_actions=["See describe_tool for what it takes now, and call it again."],
            )
        return await self._warm.call(tool, arguments, context)


def created_of(machine: Machine) -> CreatedTools:
    """Returns the tools that agents wrote."""
    return cast("CreatedTools", machine.created)


def _spec_of(tool: CreatedTool, invoke: Invoke) -> ToolSpec:
    from tools.conversion.callables.callables import title_of

    said = tool.definition
    client = " ".join(tool.client.split())[:MOST_CLIENT] or "an agent"
    return ToolSpec(
        name=tool.name,
        title=title_of(tool.name),
        description=f"[created by {client}] {said['description']}",
        input_schema=said["input_schema"],
        output_schema=said["output_schema"],
        code=f"# version {tool.version}\n{tool.source}",
        scope=ToolScope.SANDBOXED,
        effects=frozenset({Effect.EXECUTE}),
        destructive=True,  # tools it calls may be
        tags=("created",),
        source="created",
        owner=tool.owner,
        resumable=True,
        in_cell=True,
        validate=dict,  # its process validates
        invoke=invoke,
    )
