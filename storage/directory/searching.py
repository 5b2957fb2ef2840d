"""Searches a directory and groups the hits of the search engine by record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from storage.database import Database
from storage.directory.loading import item_of_hit, load_citations, load_entries, year_of
from storage.directory.models import Directory
from storage.directory.results import Found, FoundItems, FoundRecord, Kind, Owner, Snippet
from storage.directory.roster import Roster
from storage.directory.shelving import OWNER, TITLE, YEAR, values_of
from storage.index.indexer import Indexer
from storage.models import Identity, SearchFilter, SearchHit, SearchResult
from storage.people.nameindex import IndexedName
from storage.retrieval.search import SearchEngine
from storage.tokenize import is_spaceless, tokenize

NAME_ALPHA = 0.3
"""Weight of the semantic score in a search for a name."""

TOPIC_ALPHA = 0.7
"""Weight of the semantic score in a search for a topic."""

CHUNKS = 100
"""Chunks to group by record."""

SNIPPETS = 3
"""Maximum snippets of a record."""

IS_SAID_BY = 10
"""Chunks to check for all words of a query."""

AGAIN = 0.3
"""The factor for each further chunk of a record; records that mention a topic often rank first."""

EARLIEST, LATEST = 1000, 2200
"""The bounds used for a year range with an open end."""


class Searches:
    """One identity's searches in one directory."""

    def __init__(  # noqa: PLR0913  # the dependencies of a search
        self,
        identity: Identity,
        *,
        directory: Directory,
        roster: Roster,
        database: Database,
        engine: SearchEngine,
        indexer: Indexer,
    ) -> None:
        self._identity = identity
        self._directory = directory
        self._roster = roster
        self._database = database
        self._engine = engine
        self._indexer = indexer

    def by_name(self, matches: Sequence[IndexedName], reason: str) -> Found:
        """Returns the records of matched names."""
        listed = self._roster.listed
        seqs = [listed[match.owner].seq for match in matches]
        with self._database.read() as connection:
            entries = load_entries(connection, self._directory, seqs)
        field = self._directory.name_field
        records = [
            FoundRecord(
                entry=entries[seq],
                score=match.score,
                how=match.how,
                snippets=(Snippet(field=field, text=match.spelling, score=match.score),),
            )
            for seq, match in zip(seqs, matches, strict=True)
            if seq in entries
        ]
        status = self._indexer.status(self._identity)
        return Found(kind="name", reason=reason, records=tuple(records), status=status)

    def by_text(self, query: str, top_k: int, kind: Kind, reason: str) -> Found:
        """Returns the records whose texts or items match, best first.

        A name needs a keyword match: a text that is only semantically near a name is not the
        person.
        """
        alpha = NAME_ALPHA if kind == "name" else TOPIC_ALPHA
        found = self._search(query, self._directory.raw_types, CHUNKS, alpha)
        hits: dict[int, list[SearchHit]] = defaultdict(list)
        for hit in (each for each in found.hits if kind == "topic" or each.matched_terms):
            for place in self._places(hit):
                hits[place].append(hit)
        scores = {place: _total(several) for place, several in hits.items()}
        best = sorted(scores, key=lambda place: (-scores[place], place))[:top_k]
        seqs = [self._roster.listed[place].seq for place in best]
        with self._database.read() as connection:
            entries = load_entries(connection, self._directory, seqs)
        records = [
            FoundRecord(
                entry=entries[seq],
                score=scores[place],
                how=None,
                snippets=tuple(self._snippet(hit) for hit in hits[place][:SNIPPETS]),
            )
            for place, seq in zip(best, seqs, strict=True)
            if seq in entries
        ]
        nearest = () if kind == "topic" else self._roster.nearest(query)
        return Found(
            kind=kind,
            reason=reason,
            records=tuple(records),
            status=found.status,
            nearest=tuple(nearest),
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
            topic, (self._directory.items_type(field),), 2 * top_k, TOPIC_ALPHA, years
        )
        best = {hit.context.id: hit for hit in reversed(found.hits)}  # each by its best chunk
        hits = [hit for hit in found.hits if best[hit.context.id] is hit][:top_k]
        with self._database.read() as connection:
            texts = load_citations(connection, [hit.context.id for hit in hits])
        items = tuple(
            item_of_hit(hit, texts.get(hit.context.id, hit.chunk.content), self._owners(hit))
            for hit in hits
        )
        return FoundItems(items=items, status=found.status)

    def is_said(self, query: str) -> bool:
        """Returns whether one running text or item contains all words of a query."""
        raw_types = self._directory.raw_types
        found = self._search(query, raw_types, IS_SAID_BY, 0.0)
        terms = set(tokenize(query))
        return any(
            terms <= set(tokenize(hit.chunk.content))
            for hit in found.hits
            if hit.chunk.heading or hit.context.raw_type != self._directory.name
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
            return self._engine.newest(self._identity, criteria, top_k)
        return self._engine.search(
            self._identity,
            query,
            criteria,
            top_k,
            alpha=None if alpha and is_spaceless(query) else alpha,  # the engine knows its script
            surroundings=False,
        )

    def _places(self, hit: SearchHit) -> list[int]:
        """Returns the positions of a hit's record, or of an item's owners."""
        is_record = hit.context.raw_type == self._directory.name
        keys: Iterable[str] = (
            (hit.context.raw_id,) if is_record else values_of(hit.context.metadata, OWNER)
        )
        places = self._roster.places
        return [places[key] for key in keys if key in places]

    def _owners(self, hit: SearchHit) -> list[Owner]:
        owners = [self._roster.listed[place] for place in sorted(self._places(hit))]
        return [Owner(key=each.key, name=each.name, link=each.link) for each in owners]

    def _snippet(self, hit: SearchHit) -> Snippet:
        raw_type = hit.context.raw_type
        is_record = raw_type == self._directory.name
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
