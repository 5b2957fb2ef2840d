"""Surroundings: scores a chunk also by its neighbours, session, speaker and date.

A turn of a conversation says little on its own: the question is in the turn before, the subject is
at the beginning, and no one mentions the date. So a chunk's own score is averaged with

- that of its better neighbour, weight 0.4: for turns, whose neighbours also join the candidates;
- that of its session, weight 0.5: BM25 as if the whole session were one text, scaled from 0 and the
best to 0..1;
- its date, weight 0.4: for turns, 1 if a date in the query covers their session, else 0;
- a date that it mentions, weight 0.4, if the query has one: for turns, 1 if "yesterday" or "last
week", relative to their session, is within it, else 0;
- its speaker, weight 0.5: for turns, 1 if the query names the speaker, else 0;
- whether it mentions a time, weight 0.3, if the query asks for one: for turns, 1 or 0;
- a quote, weight 0.5: 1 if it contains the query's quote verbatim.

Only the `READ` best turns are checked for times, which saves milliseconds per query.

Turns are the chunks of a conversation, and events of one source on one day. A session is that, or
another context of several chunks. A single chunk keeps its own score.

The weights lie on a plateau that was found on five of the ten conversations of LoCoMo (Maharana et
al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", 2024) and confirmed on the
other five. On long documents neighbours made no difference, and sessions a small one.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from storage.contexts.filters import Selection
from storage.index.lexical import UserIndex
from storage.models import ContextType
from storage.retrieval.dates import Distance, NamedDate, Span, spans_named
from storage.retrieval.query_signals import Cues, named_speakers, speaker_of, squeezed, tells_time
from storage.retrieval.ranking import Around
from storage.tokenize import tokenize

NEIGHBOUR = 0.4
SESSION = 0.5
DATE = 0.4
NAMED_DATE = 0.4
SPEAKER = 0.5
TIME = 0.3
QUOTE = 0.5
READ = 25  # maximum turns that are checked for times
# Maximum chunks of events read for their sessions, however many share a source and a day.
MOST_EVENTS = 5000
_DAY = 86_400
Parts: TypeAlias = list[tuple[float, float]]  # the parts of a score: weights, and scores of 0 to 1


@dataclass(frozen=True, slots=True, eq=False)
class _Session:
    """Chunks that belong together, in order."""

    chunks: Sequence[int]  # their seqs
    moment: float  # its time, in Unix seconds
    of_turns: bool  # whether it is a conversation or a chain of events


@dataclass(frozen=True, slots=True)
class _Place:
    session: _Session
    index: int

    def beside(self) -> Iterator[tuple[int, int]]:
        """Yields the index and the seq of the previous turn and of the next one."""
        if self.session.of_turns:
            chunks = self.session.chunks
            for index in (self.index - 1, self.index + 1):
                if 0 <= index < len(chunks):
                    yield index, chunks[index]


class _Text(NamedTuple):
    heading: str
    content: str


class _Chain(NamedTuple):
    """The common fields of events in one session: owner, source, and day (UTC)."""

    device_id: str
    agent_id: str
    raw_type: str
    raw_id: str
    day: int


_CHAIN_COLUMNS = ", ".join(
    f"json_extract(value, '$[{place}]') AS {name}" for place, name in enumerate(_Chain._fields)
)


class Surroundings:
    """The surroundings of the candidates of one search; turns outside its selection do not join."""

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
        self._selection = selection
        self._places = dict(_places(connection, index.user_id, candidates))
        neighbours = {
            seq: _Place(place.session, index)
            for place in self._places.values()
            for index, seq in place.beside()
            if seq not in self._places
        }
        fresh = np.array(sorted(neighbours), dtype=np.int64)
        # The neighbouring turns that are not candidates themselves.
        self.joined: list[int] = selection.keep(fresh).tolist()
        self._places |= {seq: neighbours[seq] for seq in self.joined}

    def around(
        self, terms: Sequence[str], cues: Cues, own: Mapping[int, float]
    ) -> dict[int, Around]:
        """Returns how well their surroundings match, for candidates and joined turns that have any.

        Without terms, sessions do not count.
        """
        turns = [seq for seq, place in self._places.items() if place.session.of_turns]
        texts = _read_texts(self._connection, self._places if cues.phrases else turns)
        sessions = list({place.session: None for place in self._places.values()})
        fits = self._fits(terms, sessions)
        dates = (*cues.dates, *self._days_of(cues.distances)) if turns else ()
        dated = {
            session: float(any(date.covers(session.moment) for date in dates))
            for session in sessions
            if dates and session.of_turns
        }
        spoken = _spoken({seq: texts[seq].heading for seq in turns}, cues.text)
        quoting = _quoting(texts, cues.phrases)
        found: dict[int, Parts] = {}
        for seq, place in self._places.items():
            scores = [own.get(near, 0.0) for _, near in place.beside()]
            parts = (
                (NEIGHBOUR, max(scores, default=None)),
                (SESSION, fits.get(place.session)),
                (DATE, dated.get(place.session)),
                (SPEAKER, spoken.get(seq)),
                (QUOTE, quoting.get(seq)),
            )
            found[seq] = [(weight, score) for weight, score in parts if score is not None]
        asked = [NAMED_DATE] * bool(dates) + [TIME] * cues.asks_when
        if asked:
            best = heapq.nlargest(
                READ, turns, key=lambda seq: _mean(found[seq]).blend(own.get(seq, 0.0))
            )
            times = {
                seq: self._times(seq, texts[seq].content, dates, asks_when=cues.asks_when)
                for seq in best
            }
            for seq in turns:
                found[seq] += times.get(seq, [(weight, 0.0) for weight in asked])
        return {seq: _mean(parts) for seq, parts in found.items() if parts}

    def session(self, seq: int) -> Sequence[int]:
        """Returns the chunks of a chunk's session, including itself."""
        place = self._places.get(seq)
        return place.session.chunks if place else (seq,)

    def before(self, seqs: Iterable[int]) -> dict[int, str]:
        """Returns the previous turn of each turn with its speaker, if there is one."""
        turns = {
            seq: place.session.chunks[place.index - 1]
            for seq in seqs
            if (place := self._places.get(seq)) and place.session.of_turns and place.index
        }
        texts = _read_texts(self._connection, set(turns.values()))
        previous = {seq: texts[before] for seq, before in turns.items()}
        return {seq: f"{each.heading}: {each.content}" for seq, each in previous.items()}

    def _times(
        self, seq: int, text: str, dates: Collection[NamedDate | Span], *, asks_when: bool
    ) -> Parts:
        """Scores the times that a turn mentions, for what the query asks."""
        parts: Parts = []
        if dates:
            spans = spans_named(text, self._places[seq].session.moment)
            within = any(date.covers(span.middle) for span in spans for date in dates)
            parts.append((NAMED_DATE, float(within)))
        if asks_when:
            parts.append((TIME, float(tells_time(text))))
        return parts

    def _days_of(self, distances: Iterable[Distance]) -> Iterator[Span]:
        """Yields the days relative to events, from the date of the best passage about each."""
        for distance in distances:
            about = self._index.matches(tokenize(distance.event), self._selection, 1)
            row = self._connection.execute(
                "SELECT x.event_time, c.content FROM chunks c"
                " JOIN contexts x ON x.seq = c.context_seq WHERE c.seq = ?",
                (next(iter(about), None),),
            ).fetchone()
            if row is not None:
                own = spans_named(row["content"], row["event_time"])
                span = distance.span(own[0].middle if own else row["event_time"])
                if span is not None:
                    yield span

    def _fits(self, terms: Sequence[str], sessions: Sequence[_Session]) -> dict[_Session, float]:
        """Returns how well each session of several chunks matches, 0 to 1, on a scale over all.

        It is empty if no term appears in any.
        """
        if not terms or all(len(session.chunks) == 1 for session in sessions):
            return {}
        groups = {number: session.chunks for number, session in enumerate(sessions)}
        scores = self._index.group_scores(terms, groups)
        top = max(scores.values())
        return {
            session: scores[number] / top
            for number, session in enumerate(sessions)
            if top > 0 and len(session.chunks) > 1
        }


def _mean(parts: Parts) -> Around:
    total = sum(weight for weight, _ in parts)
    return Around(sum(weight * score for weight, score in parts) / (total or 1.0), total)


def _spoken(headings: Mapping[int, str], query: str) -> dict[int, float]:
    """Returns whether the query names the speaker of each turn; empty if it names none."""
    speakers = {heading: speaker_of(heading) for heading in set(headings.values())}
    named = named_speakers(query, set(speakers.values()))
    if not named:
        return {}
    return {seq: float(speakers[heading] in named) for seq, heading in headings.items()}


def _quoting(texts: Mapping[int, _Text], phrases: Sequence[str]) -> dict[int, float]:
    """Returns the chunks that contain a quote; the others do not lose by it."""
    if not phrases:
        return {}
    whole = {seq: squeezed(f"{text.heading}\n{text.content}") for seq, text in texts.items()}
    return {seq: 1.0 for seq, text in whole.items() if any(phrase in text for phrase in phrases)}


def _read_texts(connection: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, _Text]:
    """Reads texts of chunks; a chunk without a heading gets its context's title."""
    rows = connection.execute(
        "SELECT c.seq, iif(c.heading = '', x.title, c.heading), c.content"
        " FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value"
        " CROSS JOIN contexts x ON x.seq = c.context_seq",
        (json.dumps(list(seqs)),),
    )
    return {seq: _Text(heading, content) for seq, heading, content in rows}


def _places(
    connection: sqlite3.Connection, user_id: str, seqs: Collection[int]
) -> Iterator[tuple[int, _Place]]:
    """Yields chunks' positions: in a chain of events, or in their context with successive seqs."""
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
