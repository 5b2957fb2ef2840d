"""Plans of an export, stored again."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict

from storage.agent.plans import planned_of, progress_of
from storage.agent.steps import Step
from storage.database import exactly
from storage.keeping.records import PlanRecord
from storage.keeping.rows import Outcome, insert_row
from storage.models import Identity


def add_plan(
    identity: Identity | None, connection: sqlite3.Connection, record: PlanRecord
) -> Outcome:
    """Stores a plan; of one that is stored the version that was changed last.

    Args:
        identity: Whose it is to be; None leaves it to whose it is.
        connection: The record.
        record: The plan.
    """
    owner = identity or record.identity
    own = exactly(owner, "p")
    row = connection.execute(
        f"SELECT p.seq, p.update_time FROM plans p WHERE {own.sql} AND p.id = ?",
        (*own.values, record.id),
    ).fetchone()
    if row is not None and row["update_time"] >= record.update_time:
        return "unchanged"
    steps = [Step(**step.model_dump()) for step in record.steps]
    values = record.model_dump(exclude={"record"}) | asdict(owner)
    values |= {"steps": planned_of(steps), "progress": progress_of(steps)}
    if row is not None:
        values["seq"] = row["seq"]
        connection.execute("DELETE FROM plans WHERE seq = ?", (row["seq"],))
    insert_row(connection, "plans", values)
    return "added" if row is None else "replaced"
