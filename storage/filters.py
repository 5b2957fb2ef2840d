"""Filters as SQL: compiled once a search, the identity always first."""

from __future__ import annotations

from dataclasses import dataclass

from storage.models import Identity, SearchFilter, TimeType

__all__ = ["Where", "compile_filter", "identity_clause"]

_TIME_COLUMNS = {
    TimeType.EVENT: "c.event_time",
    TimeType.CREATE: "c.create_time",
    TimeType.UPDATE: "c.update_time",
}


@dataclass(frozen=True, slots=True)
class Where:
    """A condition and its values.

    Attributes:
        sql: The condition; placeholders are `?`.
        values: What the placeholders stand for, in order.
        narrows: Whether it asks for more than whose contexts they are.
    """

    sql: str
    values: tuple[object, ...]
    narrows: bool = False


def identity_clause(identity: Identity, alias: str) -> Where:
    """Rows of `alias` that the identity may see: one user's; an empty device or agent is any."""
    clauses, values = [f"{alias}.user_id = ?"], [identity.user_id]
    for column in ("device_id", "agent_id"):
        wanted = getattr(identity, column)
        if wanted:
            clauses.append(f"{alias}.{column} = ?")
            values.append(wanted)
    return Where(" AND ".join(clauses), tuple(values), narrows=len(clauses) > 1)


def compile_filter(identity: Identity, wanted: SearchFilter) -> Where:
    """The condition on `contexts AS c` joined with `documents AS d`.

    Args:
        identity: Whose contexts.
        wanted: What narrows them; entities are given folded (see `storage.names.fold`).
    """
    whose = identity_clause(identity, "c")
    clauses, values = [whose.sql], list[object](whose.values)
    if wanted.time_range is not None:
        column = _TIME_COLUMNS[wanted.time_range.time_type]
        for bound, operator in ((wanted.time_range.start, ">="), (wanted.time_range.end, "<=")):
            if bound is not None:
                clauses.append(f"{column} {operator} ?")
                values.append(bound)
    if wanted.raw_type is not None:
        clauses.append("d.raw_type = ?")
        values.append(wanted.raw_type)
    if wanted.entities:
        marks = ", ".join("?" * len(wanted.entities))
        clauses.append(f"c.seq IN (SELECT context_seq FROM mentions WHERE folded IN ({marks}))")
        values.extend(wanted.entities)
    return Where(" AND ".join(clauses), tuple(values), whose.narrows or len(clauses) > 1)
