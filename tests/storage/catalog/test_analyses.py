from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from storage.catalog.catalog import KEPT_DAYS, MARKED_DAYS, Analyses
from storage.catalog.portions import AT_ONCE
from storage.database import Database
from storage.errors import StorageUnavailableError


@pytest.fixture
def other(database: Database) -> Iterator[Database]:
    """The same record, as another process has it open."""
    with closing(Database(database.path)) as other:
        yield other


def _values(count: int) -> dict[bytes, bytes]:
    return {sha256(b"%d" % at).digest(): b"value %d" % at for at in range(count)}


def _days(database: Database) -> dict[bytes, int]:
    with database.read() as connection:
        return dict(map(tuple, connection.execute("SELECT key, used FROM tool_analyses")))


def _today() -> int:
    """The day, which may end within a test: what a test counts on holds on the next one too."""
    return int(time.time() // 86_400)


def _set_day(database: Database, key: bytes, day: int) -> None:
    with database.write() as connection:
        connection.execute("UPDATE tool_analyses SET used = ? WHERE key = ?", (day, key))


def test_what_was_put_is_got_by_another_process(database: Database, other: Database) -> None:
    values = _values(3 * AT_ONCE + 1)
    Analyses(database).put(values)
    missing = sha256(b"missing").digest()
    assert Analyses(other).get([*values, missing]) == values
    assert Analyses(other).get([missing]) == {}
    assert Analyses(other).get([]) == {}


def test_a_later_value_takes_the_place_of_an_earlier_one(database: Database) -> None:
    analyses = Analyses(database)
    analyses.put({b"key": b"old"})
    analyses.put({b"key": b"new"})
    assert analyses.get([b"key"]) == {b"key": b"new"}


def test_what_nobody_needed_for_long_is_dropped(database: Database) -> None:
    Analyses(database).put({b"old": b"1", b"needed": b"2", b"late": b"3"})
    today = _today()
    _set_day(database, b"old", today - KEPT_DAYS - 1)
    _set_day(database, b"needed", today - KEPT_DAYS - 1)
    _set_day(database, b"late", today - KEPT_DAYS + 1)
    analyses = Analyses(database)
    assert analyses.get([b"needed"]) == {b"needed": b"2"}
    analyses.put({b"new": b"4"})
    assert _days(database).keys() == {b"needed", b"late", b"new"}


def test_a_read_notes_once_a_week_what_was_needed(database: Database) -> None:
    analyses = Analyses(database)
    analyses.put({b"stale": b"1", b"recent": b"2"})
    today = _today()
    _set_day(database, b"stale", today - MARKED_DAYS)
    _set_day(database, b"recent", today - MARKED_DAYS + 2)
    analyses.get([b"stale", b"recent"])
    assert _days(database)[b"stale"] >= today
    assert _days(database)[b"recent"] == today - MARKED_DAYS + 2


def test_a_read_succeeds_where_nothing_can_be_written(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    Analyses(database).put({b"key": b"value"})
    _set_day(database, b"key", 0)
    monkeypatch.setattr("storage.database.BUSY_TIMEOUT_MS", 1)
    with closing(Database(database.path)) as hurried, database.write():
        assert Analyses(hurried).get([b"key"]) == {b"key": b"value"}
        with pytest.raises(StorageUnavailableError):
            Analyses(hurried).put({b"key": b"other"})


def test_two_processes_fill_at_once(database: Database, other: Database) -> None:
    values = list(_values(400).items())

    def fill(where: Database) -> None:
        for start in range(0, len(values), 20):
            Analyses(where).put(dict(values[start : start + 20]))

    threads = [threading.Thread(target=fill, args=(where,)) for where in (database, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Analyses(database).get([key for key, _ in values]) == dict(values)


def test_a_value_is_there_after_the_process_died(database: Database, tmp_path: Path) -> None:
    Analyses(database).put({b"key": b"value"})
    copies = ("toolcrib.db", "toolcrib.db-wal")
    dead = tmp_path / "dead"
    dead.mkdir()
    for name in copies:  # what is on the disk while the database is open
        (dead / name).write_bytes(database.path.with_name(name).read_bytes())
    with closing(sqlite3.connect(dead / "toolcrib.db")) as connection:
        assert connection.execute("SELECT value FROM tool_analyses").fetchall() == [(b"value",)]
