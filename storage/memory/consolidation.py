"""Consolidation: moves entries and memories between layers in the background.

Important entries become memories. Sessions that ended are summarized by their most central
sentences. Memories that are used often, or not for long, move to layer 4. No original is ever
deleted.
"""

from __future__ import annotations

import time
from itertools import groupby
from typing import TYPE_CHECKING

from storage.database import Database, Where
from storage.index.embedders.base import Embedder
from storage.locks import made_once
from storage.memory.entries import Entries
from storage.models import Identity

if TYPE_CHECKING:  # loaded on first use
    from storage.memory.summaries import SessionSummaries

PROMOTED_AT_ONCE = 20

FIRST_SECONDS = 5.0  # seconds to wait after the server starts
REST_SECONDS = 60.0  # seconds to wait after there was nothing to do

_EVERYBODY = Where("1", ())


class Consolidation:
    """Consolidates the memory of all users; the caller ensures that only one process does."""

    def __init__(self, database: Database, entries: Entries, embedder: Embedder) -> None:
        self._database = database
        self._entries = entries
        self._embedder = embedder
        self._due = time.monotonic() + FIRST_SECONDS

    @made_once
    def _summaries(self) -> SessionSummaries:
        from storage.memory.summaries import SessionSummaries

        return SessionSummaries(self._database, self._entries, self._embedder)

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since its start, or since there was nothing to do."""
        return time.monotonic() >= self._due

    def step(self) -> bool:
        """Does one piece of work, up to two seconds; returns False if there is none."""
        if self._promote() or self._sum_up() or self._persist():
            return True
        self._summaries.settle(_EVERYBODY)
        self._due = time.monotonic() + REST_SECONDS
        return False

    def _promote(self) -> bool:
        from storage.memory.promotion import promotable, promote

        with self._database.read() as connection:
            found = promotable(connection, _EVERYBODY, PROMOTED_AT_ONCE)
        made = 0
        for user_id, of_user in groupby(sorted(found), key=lambda each: each[0]):
            entries = self._entries.get(Identity(user_id), [seq for _, seq in of_user])
            made += len(promote(self._database, user_id, entries, named=False))
        return made > 0

    def _sum_up(self) -> bool:
        from storage.events.extractive import EXTRACT_CHARACTERS, EXTRACTIVE

        due = self._summaries.first_due(_EVERYBODY)
        if due is None:
            return False
        text = self._summaries.extract(due, EXTRACT_CHARACTERS)
        return self._summaries.keep(due, text, EXTRACTIVE) is not None

    def _persist(self) -> bool:
        from storage.memory.promotion import persist, persistable

        with self._database.read() as connection:
            if not persistable(connection, _EVERYBODY):
                return False
        with self._database.write() as connection:
            return bool(persist(connection, persistable(connection, _EVERYBODY)))
