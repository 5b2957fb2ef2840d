"""Filters as SQL: compiled once a search, the identity always first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from storage.models import ContextType, Identity, SearchFilter, TimeType

__all__ = ["Where", "compile_filter", "exactly", "identity_clause"]

_TIME_COLUMNS = {
    TimeType.EVENT: "x.event_time",
    TimeType.CREATE: "x.create_time",
    TimeType.UPDATE: "x.update_time",
}
_KEYS = ("user_id", "device_id", "agent_id")


@dataclass(frozen=True, slots=True)
class Where:
    """A condition and its values.

    Attributes:
        sql: The condition; placeholders are `?`.
        values: What the placeholders stand for, in order.
        narrows: Whether it asks for more than whose contexts they are.
        few: The condition as it is best asked about few rows, where `sql` begins with a list of all
            that have some name; the values are the same.
    """

    sql: str
    values: tuple[object, ...]
    narrows: bool = False
    few: str = ""


def identity_clause(identity: Identity, alias: str) -> Where:
    """Rows of `alias` that the identity may see: one user's; an empty device or agent is any."""
    clauses, values = [f"{alias}.user_id = ?"], [identity.user_id]
    for column in _KEYS[1:]:
        wanted = getattr(identity, column)
        if wanted:
            clauses.append(f"{alias}.{column} = ?")
            values.append(wanted)
    return Where(" AND ".join(clauses), tuple(values), narrows=len(clauses) > 1)


def exactly(identity: Identity, alias: str) -> Where:
    """Rows of `alias` that were stored under this very identity: what a write may replace."""
    sql = " AND ".join(f"{alias}.{column} = ?" for column in _KEYS)
    return Where(sql, tuple(getattr(identity, column) for column in _KEYS))


def compile_filter(identity: Identity, wanted: SearchFilter) -> Where:
    """The condition on `contexts AS x`.

    Args:
        identity: Whose contexts.
        wanted: What narrows them; entities are given folded (see `storage.people.names.fold`).
    """
    whose = identity_clause(identity, "x")
    parts = [
        *_range_clauses(wanted),
        *_id_clauses(wanted.ids),
        *_one_of("x.context_type", wanted.context_types),
        *_level_clauses(wanted.levels),
        *_one_of("x.raw_type", () if wanted.raw_type is None else (wanted.raw_type,)),
        *_one_of("x.raw_id", () if wanted.raw_id is None else (wanted.raw_id,)),
    ]
    if wanted.entities:
        named = f"FROM mentions WHERE user_id = ? AND folded IN ({_marks(wanted.entities)})"
        parts.append(
            Where(
                f"x.seq IN (SELECT context_seq {named})",
                (identity.user_id, *wanted.entities),
                few=f"EXISTS (SELECT 1 {named} AND context_seq = x.seq)",
            )
        )
    return Where(
        " AND ".join([whose.sql, *(part.sql for part in parts)]),
        (*whose.values, *(value for part in parts for value in part.values)),
        narrows=whose.narrows or bool(parts),
        few=" AND ".join([whose.sql, *(part.few or part.sql for part in parts)])
        if wanted.entities
        else "",
    )


def _range_clauses(wanted: SearchFilter) -> list[Where]:
    time_range = wanted.time_range
    if time_range is None:
        return []
    column = _TIME_COLUMNS[time_range.time_type]
    clauses = []
    if time_range.start is not None:
        bound = f"{column} >= ?"
        if time_range.time_type is TimeType.EVENT and _has_summaries(wanted):
            bound = f"({bound} OR x.bucket_end > ?)"  # the bucket goes on after its event_time
        clauses.append(Where(bound, (time_range.start,) * bound.count("?")))
    if time_range.end is not None:
        clauses.append(Where(f"{column} <= ?", (time_range.end,)))
    return clauses


def _has_summaries(wanted: SearchFilter) -> bool:
    of_events = not wanted.context_types or ContextType.EVENT in wanted.context_types
    return of_events and (not wanted.levels or max(wanted.levels) > 0)


def _level_clauses(levels: Sequence[int]) -> list[Where]:
    if not levels:
        return []
    return [
        Where(
            f"(x.context_type <> '{ContextType.EVENT}' OR x.hierarchy_level IN ({_marks(levels)}))",
            tuple(levels),
        )
    ]


def _id_clauses(ids: Sequence[str]) -> list[Where]:
    if not ids:
        return []
    return [Where("x.id IN (SELECT value FROM json_each(?))", (json.dumps(ids),))]


def _one_of(column: str, values: Sequence[object]) -> list[Where]:
    if not values:
        return []
    return [Where(f"{column} IN ({_marks(values)})", tuple(values))]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
