"""Searches a directory and groups the hits of the search engine by record."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from storage.directory.models import (
    Directory,
    Entry,
    Found,
    FoundItem,
    FoundItems,
    FoundRecord,
    Kind,
    Listed,
    Snippet,
)
from storage.directory.record_documents import OWNER, TITLE, YEAR, values_of
from storage.directory.roster import Roster
from storage.models import (
    Chunk,
    Context,
    Identity,
    SearchFilter,
    SearchHit,
    SearchResult,
    whole_text,
)
from storage.people.models import How
from storage.people.nameindex import IndexedName
from storage.stores import Stores
from storage.tokenize import is_spaceless, tokenize

NAME_ALPHA = 0.3  # weight of the semantic score in a search for a name
TOPIC_ALPHA = 0.7  # weight of the semantic score in a search for a topic
CHUNKS = 100  # chunks to group by record
SNIPPETS = 3  # maximum snippets of a record
IS_SAID_BY = 10  # chunks to check for all words of a query

AGAIN = 0.3
"""The factor for each further chunk of a record; records that mention a topic often rank first."""

EARLIEST, LATEST = 1000, 2200  # the bounds used for a year range with an open end


@dataclass(frozen=True, slots=True)
class Searches:
    """One identity's searches in one directory."""

    identity: Identity
    library: Stores
    directory: Directory
    roster: Roster

    def by_name(self, matches: Sequence[IndexedName], reason: str) -> Found:
        """Returns the records of matched names."""
        field = self.directory.name_field
        records = self._records(
            (
                match.owner,
                match.score,
                match.how,
                (Snippet(field=field, text=match.spelling, score=match.score),),
            )
            for match in matches
        )
        status = self.library.models.status(self.identity.user_id, self.library.indexer.problem)
        return Found(kind="name", reason=reason, records=records, status=status)

    def by_text(self, query: str, top_k: int, kind: Kind, reason: str) -> Found:
        """Returns the records whose texts match, best first; for a name also by keyword."""
        alpha = NAME_ALPHA if kind == "name" else TOPIC_ALPHA
        found = self._search(query, self.directory.raw_types, CHUNKS, alpha)
        hits: dict[int, list[SearchHit]] = defaultdict(list)
        for hit in (each for each in found.hits if kind == "topic" or each.matched_terms):
            for place in self._places(hit):
                hits[place].append(hit)
        scores = {place: _total(several) for place, several in hits.items()}
        best = sorted(scores, key=lambda place: (-scores[place], place))[:top_k]
        records = self._records(
            (place, scores[place], None, tuple(map(self._snippet, hits[place][:SNIPPETS])))
            for place in best
        )
        nearest = () if kind == "topic" else self.roster.nearest(query)
        return Found(
            kind=kind, reason=reason, records=records, status=found.status, nearest=tuple(nearest)
        )

    def _records(
        self, found: Iterable[tuple[int, float, How | None, tuple[Snippet, ...]]]
    ) -> tuple[FoundRecord, ...]:
        """Loads the records at some places of the roster; deleted ones are left out."""
        several = list(found)
        seqs = [self.roster.listed[place].seq for place, *_ in several]
        with self.library.database.read() as connection:
            entries = load_entries(connection, self.directory, seqs)
        return tuple(
            FoundRecord(entry=entries[seq], score=score, how=how, snippets=snippets)
            for seq, (_, score, how, snippets) in zip(seqs, several, strict=True)
            if seq in entries
        )

    def items(
        self, field: str, topic: str, top_k: int, since: int | None, until: int | None
    ) -> FoundItems:
        """Returns the items of a list that match a topic, best first; the newest if it is empty."""
        years: tuple[str, ...] = ()
        if since is not None or until is not None:
            first = EARLIEST if since is None else max(since, EARLIEST)
            last = LATEST if until is None else min(until, LATEST)
            years = tuple(map(str, range(first, last + 1))) or ("none",)
        found = self._search(
            topic, (self.directory.items_type(field),), 2 * top_k, TOPIC_ALPHA, years
        )
        best = {hit.context.id: hit for hit in reversed(found.hits)}  # each by its best chunk
        hits = [hit for hit in found.hits if best[hit.context.id] is hit][:top_k]
        with self.library.database.read() as connection:
            texts = load_citations(connection, [hit.context.id for hit in hits])
        items = tuple(
            item_of_hit(
                hit,
                texts.get(hit.context.id, hit.chunk.content),
                [self.roster.listed[place] for place in sorted(self._places(hit))],
            )
            for hit in hits
        )
        return FoundItems(items=items, status=found.status)

    def is_said(self, query: str) -> bool:
        """Returns whether one running text or item contains all words of a query."""
        raw_types = self.directory.raw_types
        found = self._search(query, raw_types, IS_SAID_BY, 0.0)
        terms = set(tokenize(query))
        return any(
            terms <= set(tokenize(hit.chunk.content))
            for hit in found.hits
            if hit.chunk.heading or hit.context.raw_type != self.directory.name
        )

    def _search(
        self,
        query: str,
        raw_types: tuple[str, ...],
        top_k: int,
        alpha: float,
        years: tuple[str, ...] = (),
    ) -> SearchResult:
        criteria = SearchFilter(raw_types=raw_types, labels=((YEAR, years),) if years else ())
        if not query:
            return self.library.engine.newest(self.identity, criteria, top_k)
        return self.library.engine.search(
            self.identity,
            query,
            criteria,
            top_k,
            alpha=None if alpha and is_spaceless(query) else alpha,  # the engine knows its script
            surroundings=False,
        )

    def _places(self, hit: SearchHit) -> list[int]:
        """Returns the positions of a hit's record, or of an item's owners."""
        is_record = hit.context.raw_type == self.directory.name
        keys: Iterable[str] = (
            (hit.context.raw_id,) if is_record else values_of(hit.context.metadata, OWNER)
        )
        places = self.roster.places
        return [places[key] for key in keys if key in places]

    def _snippet(self, hit: SearchHit) -> Snippet:
        raw_type = hit.context.raw_type
        is_record = raw_type == self.directory.name
        return Snippet(
            field=hit.chunk.heading if is_record else raw_type.partition(".")[2],
            text=hit.chunk.content,
            score=hit.score,
            title="" if is_record else str(hit.context.metadata.get(TITLE, "")),
            year=None if is_record else year_of(hit.context),
        )


def _total(hits: Sequence[SearchHit]) -> float:
    """Combines the scores of a record's chunks, best first; approaches 1 for many chunks with 1."""
    return (1 - AGAIN) * sum(hit.score * AGAIN**rank for rank, hit in enumerate(hits))


def load_entries(
    connection: sqlite3.Connection, directory: Directory, seqs: Sequence[int]
) -> dict[int, Entry]:
    """Loads records by the seqs of their contexts; deleted ones are left out."""
    wanted = json.dumps(list(seqs))
    rows = connection.execute(
        "SELECT seq, id, raw_id, title, metadata FROM contexts"
        " WHERE seq IN (SELECT value FROM json_each(?))",
        (wanted,),
    ).fetchall()
    chunks: dict[int, dict[str, list[Chunk]]] = defaultdict(lambda: defaultdict(list))
    for row in connection.execute(
        "SELECT context_seq, position, start, heading, content FROM chunks"
        " WHERE context_seq IN (SELECT value FROM json_each(?)) ORDER BY context_seq, position",
        (wanted,),
    ):
        chunks[row[0]][row["heading"]].append(Chunk(*row[1:]))
    return {row["seq"]: _entry(row, directory, chunks[row["seq"]]) for row in rows}


def item_of_hit(hit: SearchHit, text: str, owners: Iterable[Listed]) -> FoundItem:
    """Builds the result for a found item."""
    metadata = hit.context.metadata
    known = {OWNER, TITLE, YEAR}
    return FoundItem(
        id=hit.context.id,
        text=text,
        title=str(metadata.get(TITLE, "")),
        year=year_of(hit.context),
        details={name: str(value) for name, value in metadata.items() if name not in known},
        owners=tuple(owners),
        score=hit.score,
    )


def load_citations(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, str]:
    """Loads the citations of items, by the ids of their contexts."""
    chunks: dict[str, list[Chunk]] = defaultdict(list)
    for row in connection.execute(
        "SELECT x.id, c.position, c.start, c.heading, c.content"
        " FROM contexts x JOIN chunks c ON c.context_seq = x.seq"
        " WHERE x.id IN (SELECT value FROM json_each(?)) AND c.heading = ''"
        " ORDER BY x.seq, c.position",
        (json.dumps(list(ids)),),
    ):
        chunks[row[0]].append(Chunk(*row[1:]))
    return {id_: whole_text(several) for id_, several in chunks.items()}


def year_of(context: Context) -> int | None:
    """Returns the year of an item; None if unknown."""
    year = context.metadata.get(YEAR)
    return year if isinstance(year, int) else None


def _entry(row: sqlite3.Row, directory: Directory, chunks: Mapping[str, Sequence[Chunk]]) -> Entry:
    known = json.loads(row["metadata"])
    groups = {field: values_of(known, field) for field in directory.group_fields}
    apart = {directory.link, directory.aliases, *directory.group_fields}
    return Entry(
        id=row["id"],
        key=row["raw_id"],
        name=row["title"],
        aliases=values_of(known, directory.aliases),
        groups={field: values for field, values in groups.items() if values},
        texts={field: whole_text(chunks[field]) for field in directory.texts if field in chunks},
        facts={name: str(value) for name, value in known.items() if name not in apart},
        link=str(known.get(directory.link, "")),
    )
