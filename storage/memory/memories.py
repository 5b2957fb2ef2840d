"""The memories of one identity, layers 2 to 4, and the moves between layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.contexts.ingestion import normalized, prepare
from storage.database import Where, identity_clause
from storage.memory import browsing
from storage.memory.browsing import Memory, MemoryStats, statistics
from storage.memory.promotion import UNUSED_SECONDS, persist, persistable, promotable, promote
from storage.memory.summaries import DueSession, SessionSummaries
from storage.models import (
    IMPORTANT,
    Context,
    ContextType,
    Entry,
    Identity,
    MemoryLayer,
    NewContext,
    Stored,
)
from storage.stores import Stores

MOST_PROMOTED = 200  # maximum entries promoted in one call


@dataclass(frozen=True, slots=True)
class Doomed:
    """The entries and memories that a deletion would remove."""

    entries: tuple[Entry, ...]
    memories: tuple[Memory, ...]


class Memories:
    """The memories of one identity; its methods block, so call them in a worker thread."""

    def __init__(self, identity: Identity, library: Stores) -> None:
        self._identity = identity
        self._library = library
        self._database = library.database
        self._entries = library.entries
        self._summaries = SessionSummaries(library.database, library.entries, library.embedder)

    def remember(  # noqa: PLR0913  # the fields of a memory
        self,
        content: str,
        *,
        title: str = "",
        importance: float = IMPORTANT,
        entities: Sequence[str] = (),
        keywords: Sequence[str] = (),
        session_id: str = "",
        metadata: Mapping[str, Any] | None = None,
        replaces: str = "",
    ) -> Stored:
        """Stores a memory: in layer 2 if it is important, otherwise in layer 4.

        A near-duplicate of a memory in either layer is merged into it. The merged memory has the
        higher importance of both, and is in layer 2 if the new one is important. `replaces` is
        the id or the text of a memory that no longer holds.
        """
        is_important = importance >= IMPORTANT
        new = normalized(
            NewContext(
                context_type=ContextType.KNOWLEDGE,
                title=title,
                text=content,
                keywords=tuple(keywords),
                entities=tuple(entities),
                importance=importance,
                metadata=metadata or {},
                memory_layer=MemoryLayer.IMPORTANT if is_important else MemoryLayer.SEMANTIC,
                session_id=session_id,
            )
        )
        stored = self._library.knowledge.add(self._identity, new, prepare(new), replaces)
        self._library.indexer.notify()
        return stored

    def listed(
        self, layer: MemoryLayer, limit: int, offset: int = 0, session_id: str | None = None
    ) -> list[Memory]:
        """Returns the memories of a layer from 2 to 4; see `storage.memory.browsing.of_layer`."""
        with self._database.read() as connection:
            return browsing.of_layer(
                connection,
                self._whose("x"),
                layer,
                limit=limit,
                offset=offset,
                session_id=session_id,
            )

    def select(self, numbers: Sequence[int], layer: MemoryLayer) -> list[tuple[Memory, str]]:
        """Returns the memories of a layer with these numbers, each with its whole text."""
        wanted = browsing.by_numbers(numbers, layer)
        with self._database.read() as connection:
            found = browsing.find(connection, self._whose("x"), wanted)
            known = {each.number: (each, browsing.text_of(connection, each)) for each in found}
        return [known[number] for number in dict.fromkeys(numbers) if number in known]

    def recent(self, session_id: str | None, limit: int) -> list[Entry]:
        """Returns the last entries of layer 1, newest first; session_id None means all sessions."""
        return self._entries.recent(self._identity, session_id, limit)

    def entries(self, numbers: Sequence[int]) -> list[Entry]:
        """Returns the entries of layer 1 with these numbers; missing ones are left out."""
        found = {each.seq: each for each in self._entries.get(self._identity, numbers)}
        return [found[number] for number in dict.fromkeys(numbers) if number in found]

    def stats(self, session_id: str = "") -> MemoryStats:
        """Counts each layer, and what a consolidation would do."""
        with self._database.read() as connection:
            return statistics(connection, self._identity, session_id)

    def promote(self, numbers: Sequence[int] | None = None) -> list[Context]:
        """Promotes important or named entries to layer 2; returns the new and changed memories."""
        if numbers is None:
            with self._database.read() as connection:
                seqs = [seq for _, seq in promotable(connection, self._whose("e"), MOST_PROMOTED)]
        else:
            seqs = list(numbers)
        entries = self._entries.get(self._identity, seqs)
        made = promote(self._database, self._identity.user_id, entries, named=numbers is not None)
        self._library.indexer.notify()
        return made

    def due_sessions(
        self, limit: int, *, named: Sequence[str] = (), but: str = ""
    ) -> tuple[list[DueSession], int]:
        """Returns sessions to summarize; see `storage.memory.summaries.SessionSummaries.due`."""
        return self._summaries.due(self._whose("s"), limit, named=named, but=but)

    def extract(self, due: DueSession, max_characters: int) -> str:
        """Extracts the most central sentences of a session; see `SessionSummaries.extract`."""
        return self._summaries.extract(due, max_characters)

    def keep(self, due: DueSession, text: str, summarizer: str) -> Context | None:
        """Stores the summary of a session; see `SessionSummaries.keep`."""
        kept = self._summaries.keep(due, text, summarizer)
        self._library.indexer.notify()
        return kept

    def persist(
        self, numbers: Sequence[int] | None = None, unused_seconds: float = UNUSED_SECONDS
    ) -> list[Memory]:
        """Moves named memories of layer 2, or the due ones, to layer 4, and returns them."""
        with self._database.write() as connection:
            owner = self._whose("x")
            if numbers is None:
                seqs = persistable(connection, owner, unused_seconds)
            else:
                named = browsing.find(connection, owner, browsing.by_numbers(numbers))
                seqs = [each.number for each in named]
            moved = persist(connection, seqs)
            return browsing.find(connection, owner, browsing.by_numbers(moved))

    def doomed(
        self,
        *,
        layer: MemoryLayer | None = None,
        numbers: Sequence[int] = (),
        ids: Sequence[str] = (),
        session_id: str | None = None,
        unused_since: float | None = None,
    ) -> Doomed:
        """Finds what a deletion would remove of what the identity sees, with derived memories.

        `layer` is that of the numbers and of unused items; without it, numbers mean any layer but
        1. `unused_since` selects items of the layer neither changed nor used since.
        """
        self._library.store_waiting()
        found: dict[int, Entry] = {}
        conditions = [browsing.by_ids(ids)]
        if layer is MemoryLayer.RECENT:
            found |= _by_seq(self._entries.get(self._identity, numbers))
            if unused_since is not None:
                found |= _by_seq(self._all_entries(until=unused_since))
        else:
            conditions.append(browsing.by_numbers(numbers, layer))
            if layer is not None and unused_since is not None:
                conditions.append(browsing.unused(layer, unused_since))
        if session_id is not None:
            found |= _by_seq(self._all_entries(session_id=session_id))
            conditions.append(browsing.of_session(session_id))
        conditions.append(browsing.made_from(list(found)))
        going: dict[int, Memory] = {}
        with self._database.read() as connection:
            for condition in conditions:
                for each in browsing.find(connection, self._whose("x"), condition):
                    going[each.number] = each
        return Doomed(tuple(found[seq] for seq in sorted(found)), tuple(going.values()))

    def forget(self, doomed: Doomed) -> tuple[int, int]:
        """Deletes entries and memories permanently, and returns how many of each."""
        ids = [each.context.id for each in doomed.memories]
        memories = self._library.contexts.delete(self._identity, ids)
        entries = self._entries.forget(self._identity, [each.seq for each in doomed.entries])
        self._library.indexer.notify()
        return entries, memories

    def _whose(self, alias: str) -> Where:
        return identity_clause(self._identity, alias)

    def _all_entries(
        self, *, session_id: str | None = None, until: float | None = None
    ) -> list[Entry]:
        count = self._entries.count(self._identity)
        return self._entries.find(self._identity, session_id=session_id, until=until, limit=count)


def _by_seq(entries: Sequence[Entry]) -> dict[int, Entry]:
    return {each.seq: each for each in entries}
