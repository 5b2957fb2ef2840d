"""Contents of files by SHA-256, compressed; unused ones are removed."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping

_UNUSED = (
    "NOT EXISTS (SELECT 1 FROM changes WHERE before = digest)"
    " AND NOT EXISTS (SELECT 1 FROM files WHERE state = digest)"
)


def pack(content: bytes) -> bytes:
    """Compresses a content at the lowest level, which costs a tenth of the highest."""
    return zlib.compress(content, 1)


def add(connection: sqlite3.Connection, packed: Mapping[str, bytes]) -> None:
    """Stores contents, each once."""
    connection.executemany(
        "INSERT INTO contents (digest, packed) VALUES (?, ?) ON CONFLICT DO NOTHING",
        packed.items(),
    )


def read(connection: sqlite3.Connection, digest: str) -> bytes | None:
    """Returns the content of a digest; None if it is not stored."""
    row = connection.execute("SELECT packed FROM contents WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else zlib.decompress(row["packed"])


def remove_unused(connection: sqlite3.Connection, digests: Iterable[str] | None = None) -> None:
    """Removes contents that no change and no root needs: some digests, or all."""
    if digests is None:
        connection.execute(f"DELETE FROM contents WHERE {_UNUSED}")
        return
    connection.executemany(
        f"DELETE FROM contents WHERE digest = ? AND {_UNUSED}", ((each,) for each in digests)
    )


def total(connection: sqlite3.Connection) -> int:
    """Returns the bytes of all contents, compressed."""
    return int(connection.execute("SELECT bytes FROM totals").fetchone()[0])
