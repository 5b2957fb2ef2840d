"""The schema of a database: which versions can be used, and the scripts that lead to each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from storage.errors import SchemaVersionError


def check_schema(
    connection: sqlite3.Connection, path: Path, known: Sequence[int] | None = None
) -> int:
    """Returns a file's schema version, 0 if it is empty.

    Raises SchemaVersionError if this program can neither read nor upgrade it. `known` are the
    versions that it has files for, by default those of the record.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    known = known or list(migrations_in(None))
    carry_over = (
        "To carry the data over, write it to a file with the command `export FILE` of the version"
        " that wrote it, choose another data directory, and run `toolcrib import FILE`."
    )
    if version > known[-1]:
        raise SchemaVersionError(
            f"{path} has schema {version}; this version of Toolcrib knows up to {known[-1]}.",
            suggestions=("Upgrade Toolcrib.", carry_over),
        )
    if 0 < version < known[0]:
        raise SchemaVersionError(
            f"{path} has schema {version} of a development version; this version of Toolcrib reads"
            f" {known[0]} and later.",
            suggestions=(carry_over,),
        )
    return version


def migrations_in(folder: Traversable | None) -> dict[int, Traversable]:
    """Returns the script that leads to each schema version, oldest first."""
    folder = folder or resources.files("storage") / "migrations"
    scripts = [item for item in folder.iterdir() if item.name.endswith(".sql")]
    return {int(item.name[:4]): item for item in sorted(scripts, key=lambda item: item.name)}


def migrate(connection: sqlite3.Connection, pending: dict[int, Traversable]) -> None:
    """Runs the scripts that lead to newer schema versions, in one transaction."""
    if not pending:
        return
    connection.execute("BEGIN IMMEDIATE")
    for script in pending.values():
        for statement in statements(script.read_text(encoding="utf-8")):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {max(pending)}")
    connection.commit()


def statements(script: str) -> Iterator[str]:
    """Yields the statements of a script; `executescript` would commit our transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
