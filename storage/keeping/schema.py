"""The schema of a database: which versions can be used, and the scripts that lead to each."""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from storage.errors import SchemaVersionError


def check_schema(
    connection: sqlite3.Connection, path: Path, scripts: Mapping[int, Traversable] | None = None
) -> int:
    """Returns a file's schema version, 0 if it is empty.

    Raises SchemaVersionError if this program can neither read nor upgrade it. `scripts` lead to the
    versions that it knows, by default those of the record.
    """
    version = _pragma(connection, "user_version")
    scripts = scripts or migrations_in(None)
    known = list(scripts)
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
    if version == known[-1] and not _is_as_expected(connection, scripts):
        raise SchemaVersionError(
            f"{path} has other tables than this version of Toolcrib expects; another development"
            f" version wrote its schema {version}. Nothing was changed.",
            suggestions=(carry_over,),
        )
    return version


def _is_as_expected(connection: sqlite3.Connection, scripts: Mapping[int, Traversable]) -> bool:
    """Returns whether a file of the newest schema has the tables and triggers of the scripts."""
    if _pragma(connection, "application_id") == _fingerprint(scripts):
        return True  # the scripts may have changed in a comment only: then compare what they make
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as expected:
        migrate(expected, scripts, 0)
        return _definitions(connection) == _definitions(expected)


def _definitions(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute(
        "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
    )
    return {re.sub(r"--.*|\s", "", row[0]) for row in rows}


def _fingerprint(scripts: Mapping[int, Traversable]) -> int:
    return zlib.crc32(b"".join(each.read_bytes() for each in scripts.values())) >> 1  # 31 bits


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def migrations_in(folder: Traversable | None) -> dict[int, Traversable]:
    """Returns the script that leads to each schema version, oldest first."""
    folder = folder or resources.files("storage") / "migrations"
    scripts = [item for item in folder.iterdir() if item.name.endswith(".sql")]
    return {int(item.name[:4]): item for item in sorted(scripts, key=lambda item: item.name)}


def migrate(
    connection: sqlite3.Connection, scripts: Mapping[int, Traversable], version: int
) -> None:
    """Runs the scripts that lead from a schema version to the newest, in one transaction."""
    pending = [scripts[to] for to in scripts if to > version]
    if not pending:
        return
    connection.execute("BEGIN IMMEDIATE")
    for script in pending:
        for statement in statements(script.read_text(encoding="utf-8")):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {max(scripts)}")
    connection.execute(f"PRAGMA application_id = {_fingerprint(scripts)}")
    connection.commit()


def statements(script: str) -> Iterator[str]:
    """Yields the statements of a script; `executescript` would commit our transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
