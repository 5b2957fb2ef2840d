"""Loads records and items from the record as result objects."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from storage.contexts.wholetext import whole_text
from storage.directory.models import Directory
from storage.directory.results import Entry, FoundItem, Owner
from storage.directory.shelving import OWNER, TITLE, YEAR, values_of
from storage.models import Chunk, Context, SearchHit


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


def item_of_hit(hit: SearchHit, text: str, owners: Iterable[Owner]) -> FoundItem:
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
