"""Compiles search filters to SQL, identity first, and selects the matching chunks.

If most candidates match a condition, only the best of them are checked, as many as needed. If few
match, all matching chunks are listed and compared one by one. The best candidates themselves decide
which applies, whatever the condition.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from storage.database import Where, identity_clause
from storage.models import ContextType, Identity, SearchFilter, TimeType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Seqs: TypeAlias = NDArray[np.int64]

SAMPLE = 500  # candidates that are checked first
FEW = 32  # below one match in this many candidates, listing all matches is cheaper than checking on

_CARDS = ", ".join(f"'{kind}'" for kind in ContextType if kind.is_card)

_TIME_COLUMNS = {
    TimeType.EVENT: "x.event_time",
    TimeType.CREATE: "x.create_time",
    TimeType.UPDATE: "x.update_time",
}


def compile_filter(identity: Identity, criteria: SearchFilter) -> Where:
    """Returns the condition on `contexts AS x` for a filter with folded entities."""
    owner = identity_clause(identity, "x")
    prefix = criteria.under
    parts = [
        *_range_clauses(criteria),
        *_in_list("x.id", criteria.ids),
        *_kind_clauses(criteria),
        *_level_clauses(criteria.levels),
        *_one_of("x.raw_type", criteria.raw_types),
        *_one_of("x.raw_id", () if criteria.raw_id is None else (criteria.raw_id,)),
        *([Where("substr(x.raw_id, 1, ?) = ?", (len(prefix), prefix))] if prefix else ()),
        *_entity_clauses(identity, criteria),
        *(
            _in_table("labels", "value", identity, values, ("key", key))
            for key, values in criteria.labels
        ),
        *_memory_clauses(identity, criteria),
    ]
    return replace(
        Where.every([owner, *parts]),
        narrows=owner.narrows or bool(parts),
        few=" AND ".join([owner.sql, *(part.few or part.sql for part in parts)])
        if any(part.few for part in parts)
        else "",
    )


class Selection:
    """The chunks that match a condition, during one transaction."""

    def __init__(self, connection: sqlite3.Connection, where: Where) -> None:
        self._connection = connection
        self._where = where
        self._fits: dict[int, bool] = {}

    @property
    def narrows(self) -> bool:
        """Whether some of the user's chunks may not match."""
        return self._where.narrows

    @cached_property
    def members(self) -> Seqs:
        """All matching chunks, ascending."""
        import numpy as np

        rows = self._connection.execute(
            "SELECT c.seq FROM contexts x CROSS JOIN chunks c ON c.context_seq = x.seq"
            f" WHERE {self._where.sql}",
            self._where.values,
        )
        return np.sort(np.fromiter((row[0] for row in rows), np.int64))

    def keep(self, seqs: Seqs) -> Seqs:
        """Returns those of the user's given chunks that match, in the given order."""
        import numpy as np

        if not self.narrows:
            return seqs
        unknown = [seq for seq in seqs.tolist() if seq not in self._fits]
        rows = self._connection.execute(
            "SELECT c.seq FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value"
            " CROSS JOIN contexts x ON x.seq = c.context_seq"
            f" WHERE {self._where.few or self._where.sql}",
            (json.dumps(unknown), *self._where.values),
        )
        self._fits |= dict.fromkeys(unknown, False)
        self._fits |= dict.fromkeys((row[0] for row in rows), True)
        fits = [self._fits[seq] for seq in seqs.tolist()]
        kept: Seqs = seqs[np.array(fits, dtype=bool)]
        return kept

    def first(
        self, ranked: Callable[[int], Seqs], count: int, enough: int | None = None
    ) -> Seqs | None:
        """Returns the best matching candidates; None if few match and `members` must be ranked.

        `ranked` returns the given number of best candidates, best first, or all if there are fewer.
        The search stops at `enough` matches, by default at `count`.
        """
        if not self.narrows or not count:
            return ranked(count)
        if "members" in vars(self):  # few matched before
            return None
        enough = enough or count
        size = max(count, SAMPLE)
        while True:
            candidates = ranked(size)
            fitting = self.keep(candidates)
            if len(fitting) >= enough or len(candidates) < size:
                return fitting[:count]
            if len(fitting) * FEW < len(candidates):
                return None
            size = 1 + size * enough * 3 // (len(fitting) * 2)


def _kind_clauses(criteria: SearchFilter) -> list[Where]:
    if criteria.context_types or criteria.cards:
        return _one_of("x.context_type", criteria.context_types)
    return [Where(f"x.context_type NOT IN ({_CARDS})", ())]


def _entity_clauses(identity: Identity, criteria: SearchFilter) -> list[Where]:
    if not criteria.entities:
        return []
    declared = _in_table("mentions", "folded", identity, criteria.entities)
    if not criteria.said_in:
        return [declared]
    mentioned = "seq IN (SELECT value FROM json_each(?))"
    return [
        Where(
            f"({declared.sql} OR x.seq IN (SELECT context_seq FROM chunks WHERE {mentioned}))",
            (*declared.values, json.dumps(criteria.said_in)),
            few=f"({declared.few} OR EXISTS"
            f" (SELECT 1 FROM chunks n WHERE n.context_seq = x.seq AND n.{mentioned}))",
        )
    ]


def _memory_clauses(identity: Identity, criteria: SearchFilter) -> list[Where]:
    if criteria.memory_layers:
        return [_in_table("memories", "layer", identity, criteria.memory_layers)]
    if criteria.memory is None:
        return []
    listed = "EXISTS" if criteria.memory else "NOT EXISTS"
    also = f" OR x.context_type IN ({_CARDS})" if criteria.memory and criteria.cards else ""
    return [Where(f"({listed} (SELECT 1 FROM memories WHERE context_seq = x.seq){also})", ())]


def _in_table(
    table: str,
    column: str,
    identity: Identity,
    values: Sequence[object],
    fixed: tuple[str, str] | None = None,
) -> Where:
    """Returns the condition for contexts that a table lists under one of some values."""
    also = f" AND {fixed[0]} = ?" if fixed else ""
    rows = f"FROM {table} WHERE user_id = ?{also} AND {column} IN ({_marks(values)})"
    return Where(
        f"x.seq IN (SELECT context_seq {rows})",
        (identity.user_id, *(fixed[1:] if fixed else ()), *values),
        few=f"EXISTS (SELECT 1 {rows} AND context_seq = x.seq)",
    )


def _range_clauses(criteria: SearchFilter) -> list[Where]:
    time_range = criteria.time_range
    if time_range is None:
        return []
    column = _TIME_COLUMNS[time_range.time_type]
    clauses = []
    if time_range.start is not None:
        bound = f"{column} >= ?"
        if time_range.time_type is TimeType.EVENT and _has_summaries(criteria):
            bound = f"({bound} OR x.bucket_end > ?)"  # the bucket extends beyond its event_time
        clauses.append(Where(bound, (time_range.start,) * bound.count("?")))
    if time_range.end is not None:
        clauses.append(Where(f"{column} <= ?", (time_range.end,)))
    return clauses


def _has_summaries(criteria: SearchFilter) -> bool:
    of_events = not criteria.context_types or ContextType.EVENT in criteria.context_types
    return of_events and (not criteria.levels or max(criteria.levels) > 0)


def _level_clauses(levels: Sequence[int]) -> list[Where]:
    if not levels:
        return []
    return [
        Where(
            f"(x.context_type <> '{ContextType.EVENT}' OR x.hierarchy_level IN ({_marks(levels)}))",
            tuple(levels),
        )
    ]


def _in_list(column: str, values: Sequence[str]) -> list[Where]:
    if not values:
        return []
    return [Where(f"{column} IN (SELECT value FROM json_each(?))", (json.dumps(values),))]


def _one_of(column: str, values: Sequence[object]) -> list[Where]:
    if not values:
        return []
    return [Where(f"{column} IN ({_marks(values)})", tuple(values))]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
