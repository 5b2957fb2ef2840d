from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest

from storage.catalog.uses import MOST_KEPT, Use, Uses
from storage.database import Database
from storage.keeping.backup import back_up
from storage.keeping.erasure import erase
from storage.models import Identity

ANN = Identity("ann")
OTHERS = (Identity("bob"), Identity("Ann"), Identity("ann2", "phone"))


def test_uses_are_counted_and_listed_with_the_latest_last(database: Database) -> None:
    uses = Uses(database)
    uses.add(ANN, "send a letter", "mail")
    uses.add(ANN, "book a room", "hotel")
    uses.add(ANN, "send a letter", "mail")
    uses.add(ANN, "send a letter", "post")
    assert uses.listed(ANN) == [
        Use("book a room", "hotel", 1),
        Use("send a letter", "mail", 2),
        Use("send a letter", "post", 1),
    ]


@pytest.mark.parametrize("other", OTHERS)
def test_nobody_else_learns_or_forgets(database: Database, other: Identity) -> None:
    uses = Uses(database)
    uses.add(ANN, "send a letter", "mail")
    assert uses.listed(other) == []
    assert uses.forget(other) == 0
    uses.add(other, "send a letter", "post")
    assert uses.listed(ANN) == [Use("send a letter", "mail", 1)]
    assert uses.forget(other) == 1
    assert uses.listed(ANN) == [Use("send a letter", "mail", 1)]


def test_a_user_has_what_all_devices_taught(database: Database) -> None:
    uses = Uses(database)
    phone, desk = Identity("ann", "phone"), Identity("ann", "desk")
    for identity in (phone, desk, phone):
        uses.add(identity, "send a letter", "mail")
    assert uses.listed(ANN) == [Use("send a letter", "mail", 3)]
    assert uses.listed(desk) == [Use("send a letter", "mail", 1)]
    assert uses.forget(phone) == 1
    assert uses.listed(ANN) == [Use("send a letter", "mail", 1)]
    assert uses.forget(ANN) == 1
    assert uses.listed(ANN) == []


def test_the_oldest_go_where_there_are_too_many(database: Database) -> None:
    uses = Uses(database)
    uses.add(Identity("bob"), "first", "tool")
    for at in range(MOST_KEPT):
        uses.add(ANN, f"question {at}", "tool")
    uses.add(ANN, "question 0", "tool")
    uses.add(ANN, "one more", "tool")
    kept = [each.query for each in uses.listed(ANN)]
    assert len(kept) == MOST_KEPT
    assert kept[-2:] == ["question 0", "one more"]
    assert "question 1" not in kept
    assert len(uses.listed(Identity("bob"))) == 1


def test_two_processes_count_every_use(database: Database) -> None:
    def learn(where: Database) -> None:
        for _ in range(30):
            Uses(where).add(ANN, "send a letter", "mail")

    with closing(Database(database.path)) as other:
        threads = [threading.Thread(target=learn, args=(each,)) for each in (database, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert Uses(database).listed(ANN) == [Use("send a letter", "mail", 60)]


def test_what_is_forgotten_leaves_the_disk(database: Database) -> None:
    uses = Uses(database)
    uses.add(ANN, "xylophone repairs in Antwerp", "mail")
    uses.forget(ANN)
    assert (database.get_meta("deletions") or "0") != "0"
    erase(database)
    assert b"xylophone" not in database.path.read_bytes()


def test_a_backup_holds_what_was_learned(database: Database) -> None:
    Uses(database).add(ANN, "send a letter", "mail")
    copy = database.path.parents[1] / "copy.db"
    back_up(database, copy)
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT query, tool_id FROM tool_uses").fetchall() == [
            ("send a letter", "mail")
        ]
