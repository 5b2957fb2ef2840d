"""Upkeep of memory: counts what is in its layers, moves it between them, and deletes it."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Unpack

import anyio.to_thread
from pydantic import Field

from storage.memory.promotion import UNUSED_SECONDS
from storage.models import MemoryLayer
from tools.answers.managed_memory import Action, Counts, ManagedMemory, Touched
from tools.answers.params import Layer, Numbers, SessionId, layer_of
from tools.answers.summaries import SessionBuild
from tools.core.context import IdentityArguments, RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.spec import Confirmation, Effect, ToolScope, tool

if TYPE_CHECKING:  # loaded on first use
    from storage.memory.memories import Doomed, Memories

DAY_SECONDS = 86_400.0

TAKEN: dict[Action, set[str]] = {
    "stats": set(),
    "promote": {"indices"},
    "aggregate": {"session"},
    "persist": {"indices", "ids", "older_than"},
    "forget": {"layer", "indices", "ids", "session", "older_than"},
}
"""Parameters of each action, apart from the identity and dry_run."""

Ids = Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=1000)]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The arguments of a call."""

    layer: MemoryLayer | None  # layer to delete from
    indices: tuple[int, ...]  # numbers of entries or memories
    ids: tuple[str, ...]
    session: str | None
    older_than: float | None  # minimum seconds without use

    @property
    def given_names(self) -> set[str]:
        """Names of the arguments that were given."""
        return {each.name for each in fields(self) if getattr(self, each.name) not in {None, ()}}


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    destructive=True,
    idempotent=True,
    confirmation=Confirmation.REQUIRED,
    confirm_if="action=forget, dry_run=false",
    tags=("context", "memory"),
    capabilities=(
        "count what is in memory",
        "promote, sum up and persist memories",
        "forget memories, recorded calls or a whole session",
    ),
    timeout=600,
    may_become_job=True,
)
async def manage_memory(
    context: RequestContext,
    action: Annotated[
        Action,
        Field(
            description="stats; promote: entries of l1 to l2; aggregate: ended sessions to l3;"
            " persist: l2 to l4; forget"
        ),
    ],
    layer: Annotated[Layer | None, Field(description="Of what is to be forgotten")] = None,
    indices: Annotated[
        Numbers | None,
        Field(description="Numbers that browse_memory shows: of l1 to promote, l2 to persist"),
    ] = None,
    ids: Annotated[Ids | None, Field(description="Memories to persist or forget")] = None,
    session: Annotated[
        SessionId | None, Field(description="this, or an id: to aggregate or forget")
    ] = None,
    older_than: Annotated[
        float | None,
        Field(ge=0, le=36_500, description="Days: to persist or forget what is unused for longer"),
    ] = None,
    dry_run: Annotated[
        bool, Field(description="Of forget: only show what would be deleted")
    ] = True,
    **identity: Unpack[IdentityArguments],
) -> ManagedMemory:
    """Counts what is in memory, moves it between the layers, or forgets it.

    Without indices, ids or session, promote, aggregate and persist process everything that is due,
    as also happens automatically. Call forget with dry_run first, and show the user what would go.
    """
    memories = context.shelf(**identity).memories
    asked = _Asked(
        layer=None if layer is None else layer_of(layer),
        indices=tuple(indices or ()),
        ids=tuple(ids or ()),
        session=context.session_id if session == "this" else session,
        older_than=None if older_than is None else older_than * DAY_SECONDS,
    )
    _check(action, asked)
    match action:
        case "stats":
            stats = await anyio.to_thread.run_sync(memories.stats, context.session_id)
            return ManagedMemory(action=action, counts=Counts.of(stats))
        case "promote":
            return await anyio.to_thread.run_sync(_promote, memories, asked)
        case "aggregate":
            return await _aggregate(context, memories, asked.session)
        case "persist":
            return await anyio.to_thread.run_sync(_persist, memories, asked)
        case "forget":
            return await anyio.to_thread.run_sync(
                partial(_forget, memories, asked, dry_run=dry_run)
            )


def _check(action: Action, asked: _Asked) -> None:
    """Rejects parameters that the action does not take, and an empty filter for forget."""
    if refused := sorted(asked.given_names - TAKEN[action]):
        taken = ", ".join(sorted(TAKEN[action])) or "nothing else"
        raise InvalidArgumentsError(
            f"{', '.join(refused)}: action={action} takes {taken}.",
            next_actions=("Leave out what the action does not take.",),
        )
    in_layer = bool(asked.given_names & {"indices", "older_than"})
    if action == "forget" and (not asked.given_names or in_layer != ("layer" in asked.given_names)):
        raise InvalidArgumentsError(
            "forget takes ids, a session, or a layer with indices or older_than.",
            next_actions=("Say what to forget: browse_memory lists what there is.",),
        )


async def _aggregate(
    context: RequestContext, memories: Memories, session: str | None
) -> ManagedMemory:
    build = SessionBuild(memories, context.sampler, context.report_progress)
    named = () if session is None else (session,)
    written, left = await build.run(named, context.session_id)
    notes = []
    if build.refusals:
        notes.append("The model refused or failed: extractive summaries took its place.")
    if left:
        notes.append(f"{left} more are due: call it again.")
    if session is not None and not written:
        notes.append(f"Of session {session} there is nothing new to summarize.")
    return ManagedMemory(action="aggregate", summaries=written, note=" ".join(notes))


def _promote(memories: Memories, asked: _Asked) -> ManagedMemory:
    made = memories.promote(asked.indices or None)
    found = [each.seq for each in memories.entries(asked.indices)]
    notes = [_missing("l1", asked.indices, found)]
    if len(found) > len(made):
        notes.append(
            "Failed calls, forgotten entries and what a memory already covers are not promoted."
        )
    return ManagedMemory.of(
        "promote", [Touched.of(each) for each in made], note=" ".join(filter(None, notes))
    )


def _persist(memories: Memories, asked: _Asked) -> ManagedMemory:
    numbers = None
    if asked.indices or asked.ids:
        by_id = memories.doomed(ids=asked.ids).memories
        numbers = [*asked.indices, *(each.number for each in by_id)]
    unused = UNUSED_SECONDS if asked.older_than is None else asked.older_than
    moved = memories.persist(numbers, unused)
    found = {key for each in moved for key in (each.number, each.context.id)}
    return ManagedMemory.of(
        "persist",
        [Touched.of(each.context, each.opening) for each in moved],
        note=_missing("l2", (*asked.indices, *asked.ids), found),
    )


def _missing(layer: str, named: Iterable[int | str], found: Container[int | str]) -> str:
    missing = ", ".join(str(each) for each in dict.fromkeys(named) if each not in found)
    return f"Not in {layer}: {missing}." if missing else ""


def _forget(memories: Memories, asked: _Asked, *, dry_run: bool) -> ManagedMemory:
    doomed = memories.doomed(
        layer=asked.layer,
        numbers=asked.indices,
        ids=asked.ids,
        session_id=asked.session,
        unused_since=None if asked.older_than is None else time.time() - asked.older_than,
    )
    if not dry_run:
        memories.forget(doomed)
    return ManagedMemory.of(
        "forget",
        [Touched.of(each.context, each.opening) for each in doomed.memories],
        entry_count=len(doomed.entries),
        dry_run=dry_run,
        note=_note(doomed, asked, dry_run=dry_run),
    )


def _note(doomed: Doomed, asked: _Asked, *, dry_run: bool) -> str:
    is_entries = asked.layer is MemoryLayer.RECENT
    found: set[int | str] = {each.context.id for each in doomed.memories}
    found |= {each.seq for each in doomed.entries} if is_entries else set()
    found |= set() if is_entries else {each.number for each in doomed.memories}
    where = "memory" if asked.layer is None else asked.layer.label
    notes = [_missing(where, asked.indices, found), _missing("memory", asked.ids, found)]
    if notes[1]:
        notes.append("Documents, knowledge and events are deleted by the tool forget.")
    is_nothing = not doomed.entries and not doomed.memories
    if asked.session is not None and is_nothing:
        notes.append(f"Nothing comes from session {asked.session}: query_events names sessions.")
    if dry_run and not is_nothing:
        notes.append("Nothing was deleted: call again with dry_run=false.")
    return " ".join(filter(None, notes))
