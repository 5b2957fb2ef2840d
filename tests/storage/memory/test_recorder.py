"""The recorder writes in the background and never fails."""

import logging
from pathlib import Path

import pytest

from storage.database import Database
from storage.library import Library
from storage.memory.entries import Entries
from storage.memory.models import NewEntry
from storage.memory.recorder import MOST_WAITING, Recorder
from storage.models import Identity

ANN = Identity("ann")


def entry(target: str) -> NewEntry:
    return NewEntry(session_id="s", kind="call", time=1.0, action="a", target=target)


def test_entries_are_in_the_record_once_they_are_done_and_in_their_order(library: Library) -> None:
    written = [library.recorder.submit(ANN, entry(str(number))) for number in range(50)]
    for future in written:
        future.result(timeout=10)
    recent = library.entries.recent(ANN, "s", 100)
    assert [each.target for each in recent] == [str(number) for number in reversed(range(50))]


def test_what_waits_is_written_before_the_end(tmp_path: Path) -> None:
    database = Database(tmp_path / "toolcrib.db")
    recorder = Recorder(Entries(database))
    with database.write():  # nobody else can write meanwhile
        for number in range(20):
            recorder.submit(ANN, entry(str(number)))
    recorder.close()
    assert Entries(database).count(ANN) == 20
    assert recorder.submit(ANN, entry("late")).result(timeout=10) is None
    assert Entries(database).count(ANN) == 20
    database.close()


def test_those_that_come_together_are_written_in_one_transaction(library: Library) -> None:
    commits: list[int] = []
    with library.database.write() as connection:
        connection.execute("PRAGMA user_version")  # the lock is held
        written = [library.recorder.submit(ANN, entry(str(number))) for number in range(30)]
        record_all = library.entries.record_all

        def counted(batch: list[tuple[Identity, NewEntry]]) -> list[int]:
            commits.append(len(batch))
            return record_all(batch)

        library.entries.record_all = counted  # type: ignore[method-assign,assignment]  # it only counts
    for future in written:
        future.result(timeout=10)
    assert library.entries.count(ANN) == 30
    assert len(commits) <= 1  # the first may have been on its way


def test_a_record_that_refuses_is_told_to_the_log_once_and_to_nobody_else(
    library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    with library.database.write() as connection:
        connection.execute("ALTER TABLE entries RENAME TO away")
    with caplog.at_level(logging.WARNING, "toolcrib"):
        for number in range(3):
            assert library.recorder.submit(ANN, entry(str(number))).result(timeout=10) is None
    assert len(caplog.records) == 1
    assert "not recorded" in caplog.text


def test_no_more_wait_than_there_is_room_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(tmp_path / "toolcrib.db")
    recorder = Recorder(Entries(database))
    with database.write(), caplog.at_level(logging.WARNING, "toolcrib"):
        for number in range(MOST_WAITING + 50):
            recorder.submit(ANN, entry(str(number)))
    recorder.close()
    assert MOST_WAITING <= Entries(database).count(ANN) < MOST_WAITING + 50
    assert "too many" in caplog.text
    database.close()
