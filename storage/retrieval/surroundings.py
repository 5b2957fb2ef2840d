"""What stands around a chunk counts in its score: the turns beside it, its session, its date.

A turn of a conversation says little alone: the question stands in the turn before, the subject at
the start, and nobody says what day it is. So a chunk's own score is averaged with

- that of its better neighbour, weight 0.4: of turns, which also join the candidates, being found by
  what stands beside them;
- that of its session, weight 0.5: BM25 as if the whole session were one text, scaled from 0 and the
  best to 0..1;
- its date, weight 0.4: of turns, 1 if a date that the query names covers their session, else 0.

Turns are the chunks of a conversation, and events of one source on one day. A session is that, or
another context of several chunks. What stands alone keeps its own score.

The weights lie on a plateau that was found on five of the ten conversations of LoCoMo (Maharana et
al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", 2024) and confirmed on the
other five. On long documents a neighbour made no difference and the session a small one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from storage.contexts.filters import Selection
from storage.index.lexical import UserIndex
from storage.models import ContextType
from storage.retrieval.query_text import NamedDate
from storage.retrieval.ranking import Around

__all__ = ["Surroundings"]

NEIGHBOUR = 0.4
SESSION = 0.5
DATE = 0.4

MOST_EVENTS = 5000
"""Chunks of events that are read for their sessions, however many share a source and a day."""

_DAY = 86_400


@dataclass(frozen=True, slots=True, eq=False)
class _Session:
    """Chunks that belong together, in order.

    Attributes:
        chunks: Their seqs.
        moment: When it was, in Unix seconds.
        of_turns: Whether it is a conversation or a chain of events.
    """

    chunks: Sequence[int]
    moment: float
    of_turns: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a chunk stands."""

    session: _Session
    index: int

    def beside(self) -> Iterator[tuple[int, int]]:
        """The index and the seq of the turn before and of the one after."""
        if self.session.of_turns:
            chunks = self.session.chunks
            for index in (self.index - 1, self.index + 1):
                if 0 <= index < len(chunks):
                    yield index, chunks[index]


class _Chain(NamedTuple):
    """What events of one session share: whose they are, where they come from, the day (UTC)."""

    device_id: str
    agent_id: str
    raw_type: str
    raw_id: str
    day: int


_CHAIN_COLUMNS = ", ".join(
    f"json_extract(value, '$[{place}]') AS {name}" for place, name in enumerate(_Chain._fields)
)


class Surroundings:
    """What stands around the candidates of one search.

    Args:
        connection: The record, in the search's transaction.
        index: The lexical index of the user whose chunks they are.
        selection: What the search lets through; a turn that does not fit does not join.
        candidates: Seqs of chunks.

    Attributes:
        joined: The turns beside candidates that are no candidates themselves.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        index: UserIndex,
        selection: Selection,
        candidates: Collection[int],
    ) -> None:
        import numpy as np

        self._connection = connection
        self._index = index
        self._places = dict(_places(connection, index.user_id, candidates))
        beside = {
            seq: _Place(place.session, index)
            for place in self._places.values()
            for index, seq in place.beside()
            if seq not in self._places
        }
        fresh = np.array(sorted(beside), dtype=np.int64)
        self.joined: list[int] = selection.keep(fresh).tolist()
        self._places |= {seq: beside[seq] for seq in self.joined}

    def around(
        self, terms: Sequence[str], dates: Collection[NamedDate], own: Mapping[int, float]
    ) -> dict[int, Around]:
        """How well their surroundings fit the query, of the candidates and joined that have any.

        Args:
            terms: The query's terms, for the sessions; none where words are not to count.
            dates: The dates that the query names.
            own: Each chunk's own score, 0 to 1; 0 for one that is not given.
        """
        sessions = list({place.session: None for place in self._places.values()})
        if all(len(session.chunks) == 1 and not session.of_turns for session in sessions):
            return {}
        fits = self._fits(terms, sessions)
        dated = {
            session: float(any(date.covers(session.moment) for date in dates))
            for session in sessions
            if dates and session.of_turns
        }
        found = {}
        for seq, place in self._places.items():
            beside = [own.get(near, 0.0) for _, near in place.beside()]
            parts = (
                (NEIGHBOUR, max(beside, default=None)),
                (SESSION, fits.get(place.session)),
                (DATE, dated.get(place.session)),
            )
            known = [(weight, score) for weight, score in parts if score is not None]
            if known:
                total = sum(weight for weight, _ in known)
                found[seq] = Around(sum(weight * score for weight, score in known) / total, total)
        return found

    def _fits(self, terms: Sequence[str], sessions: Sequence[_Session]) -> dict[_Session, float]:
        """How well each session of several chunks fits, 0 to 1; those of one chunk set the scale.

        None does where no term stands in any.
        """
        if not terms or all(len(session.chunks) == 1 for session in sessions):
            return {}
        groups = {number: session.chunks for number, session in enumerate(sessions)}
        index = self._index
        scores = index.group_scores(terms, groups)
        top = max(scores.values())
        if top <= 0:
            return {}
        return {
            session: scores[number] / top
            for number, session in enumerate(sessions)
            if len(session.chunks) > 1
        }


def _places(
    connection: sqlite3.Connection, user_id: str, seqs: Collection[int]
) -> Iterator[tuple[int, _Place]]:
    """Where chunks stand: in a chain of events, or in their context, whose seqs are successive."""
    rows = connection.execute(
        "SELECT c.seq, c.context_seq, c.position, x.event_time, x.of_turns, x.device_id,"
        " x.agent_id, x.raw_type, x.raw_id,"
        f" x.context_type = '{ContextType.EVENT}' AND x.hierarchy_level = 0 AND x.raw_id <> ''"
        " AS chained, (SELECT max(position) FROM chunks WHERE context_seq = x.seq) AS last"
        " FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value"
        " CROSS JOIN contexts x ON x.seq = c.context_seq",
        (json.dumps(list(seqs)),),
    )
    sessions: dict[int, _Session] = {}
    chained: dict[int, _Chain] = {}
    for row in rows:
        if row["chained"]:
            day = int(row["event_time"] // _DAY)
            chained[row["seq"]] = _Chain(
                row["device_id"], row["agent_id"], row["raw_type"], row["raw_id"], day
            )
            continue
        first = row["seq"] - row["position"]
        chunks = range(first, first + row["last"] + 1)
        session = _Session(chunks, row["event_time"], bool(row["of_turns"]))
        yield row["seq"], _Place(sessions.setdefault(row["context_seq"], session), row["position"])
    for session in _read_chains(connection, user_id, set(chained.values())):
        for index, seq in enumerate(session.chunks):
            if seq in chained:
                yield seq, _Place(session, index)


def _read_chains(
    connection: sqlite3.Connection, user_id: str, chains: Iterable[_Chain]
) -> list[_Session]:
    """The sessions of chains of events."""
    listed = list(chains)
    if not listed:
        return []
    rows = connection.execute(
        f"WITH chain AS (SELECT key, {_CHAIN_COLUMNS} FROM json_each(?))"
        " SELECT j.key, c.seq"
        " FROM chain j CROSS JOIN contexts x INDEXED BY contexts_by_source"
        " ON x.user_id = ? AND x.raw_type = j.raw_type AND x.raw_id = j.raw_id"
        " AND x.event_time >= j.day * ? AND x.event_time < j.day * ? + ?"
        " AND x.device_id = j.device_id AND x.agent_id = j.agent_id"
        f" AND x.context_type = '{ContextType.EVENT}' AND x.hierarchy_level = 0"
        " CROSS JOIN chunks c ON c.context_seq = x.seq"
        " ORDER BY j.key, x.event_time, x.seq, c.position LIMIT ?",
        (json.dumps(listed), user_id, _DAY, _DAY, _DAY, MOST_EVENTS),
    )
    members: dict[int, list[int]] = {}
    for number, seq in rows:
        members.setdefault(number, []).append(seq)
    return [
        _Session(chunks, listed[number].day * _DAY, of_turns=True)
        for number, chunks in members.items()
    ]
