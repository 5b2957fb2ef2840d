import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from storage.catalog.catalog import (
    KEPT_DAYS,
    MARKED_DAYS,
    MOST_KEPT,
    Analyses,
    Listings,
    Pins,
    Record,
    Records,
    Use,
    Uses,
)
from storage.catalog.transactions import AT_ONCE
from storage.database import Database
from storage.errors import StorageUnavailableError
from storage.keeping.backup import back_up
from storage.keeping.erasure import erase
from storage.models import Identity


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


OFFERED = {"tools": [{"name": "read", "inputSchema": {}}], "instructions": "Lies zuerst: größe"}


def test_a_listing_is_found_after_a_restart(database: Database) -> None:
    before = time.time()
    Listings(database).put("files", "f1", OFFERED)
    with closing(Database(database.path)) as reopened:
        listing = Listings(reopened).get("files", "f1")
    assert listing is not None
    assert listing.server == "files"
    assert listing.offered == OFFERED
    assert before <= listing.listed_at <= time.time()


def test_a_server_under_other_settings_was_never_asked(database: Database) -> None:
    listings = Listings(database)
    assert listings.get("files", "f1") is None
    listings.put("files", "f1", OFFERED)
    assert listings.get("files", "f2") is None
    assert listings.get("other", "f1") is None


def test_a_server_has_one_listing(database: Database) -> None:
    listings = Listings(database)
    listings.put("files", "f1", OFFERED)
    listings.put("files", "f2", {"tools": []})
    assert listings.get("files", "f1") is None
    listing = listings.get("files", "f2")
    assert listing is not None
    assert listing.offered == {"tools": []}


def test_listings_of_servers_that_are_named_no_more_go(database: Database) -> None:
    listings = Listings(database)
    for name in ("a", "b", "c"):
        listings.put(name, "f", OFFERED)
    listings.keep(["a", "c", "new"])
    assert [name for name in ("a", "b", "c") if listings.get(name, "f")] == ["a", "c"]
    listings.keep([])
    assert listings.get("a", "f") is None


READ = ("aa", '{"name": "read", "description": "Reads."}')
READ_ALL = ("bb", '{"name": "read", "description": "Reads all."}')


def test_a_pin_is_found_after_a_restart(database: Database) -> None:
    before = time.time()
    Pins(database).trust("files", {"read": READ})
    with closing(Database(database.path)) as reopened:
        pins = Pins(reopened)
        pin = pins.of("files")["read"]
        assert pins.definition("files", "read") == {"name": "read", "description": "Reads."}
    assert (pin.server, pin.tool, pin.sha256, pin.approved) == ("files", "read", "aa", False)
    assert before <= pin.pinned_at <= time.time()


def test_each_server_has_its_own_pins(database: Database) -> None:
    pins = Pins(database)
    pins.trust("files", {"read": READ})
    pins.trust("other", {"read": READ_ALL, "Read": READ})
    assert {tool: pin.sha256 for tool, pin in pins.of("other").items()} == {
        "read": "bb",
        "Read": "aa",
    }
    assert pins.of("files")["read"].sha256 == "aa"
    assert pins.of("none") == {}
    assert pins.definition("files", "none") is None


def test_the_first_definition_stays(database: Database) -> None:
    pins = Pins(database)
    assert pins.trust("files", {"read": READ})["read"].sha256 == "aa"
    assert pins.trust("files", {"read": READ_ALL})["read"].sha256 == "aa"


def test_a_person_replaces_it(database: Database) -> None:
    pins = Pins(database)
    pins.trust("files", {"read": READ})
    assert pins.approvals() == 0
    pins.approve("files", "read", *READ_ALL)
    assert pins.approvals() == 1
    pin = pins.of("files")["read"]
    assert (pin.sha256, pin.approved) == ("bb", True)
    assert pins.trust("files", {"read": READ})["read"] == pin


def test_another_process_sees_an_approval(database: Database) -> None:
    with closing(Database(database.path)) as other:
        Pins(other).approve("files", "read", *READ)
        assert Pins(database).approvals() == 1
        assert Pins(database).of("files")["read"].approved


def test_of_processes_that_see_a_tool_first_at_once_one_pins_it(database: Database) -> None:
    with closing(Database(database.path)) as other, ThreadPoolExecutor(2) as threads:
        tools = [f"t{number}" for number in range(200)]
        first = threads.submit(Pins(database).trust, "s", dict.fromkeys(tools, READ))
        second = threads.submit(Pins(other).trust, "s", dict.fromkeys(tools, READ_ALL))
        assert first.result() == second.result() == Pins(database).of("s")


def test_thousands_of_tools_are_pinned_together(database: Database) -> None:
    definitions = {f"t{number}": READ for number in range(4_500)}
    assert Pins(database).trust("many", definitions).keys() == definitions.keys()


HERE = Path("/tools")


def _record(tool_id: str, file: str, **fields: object) -> Record:
    return Record(tool_id, Path(file), {"tool_id": tool_id, "name": tool_id, **fields})


def test_records_are_listed_by_their_ids(database: Database) -> None:
    records = Records(database)
    assert records.listed() == []
    sent = _record("send", "/tools/mail.json", tags=["é", "邮件"], parameters={"type": "object"})
    read = _record("read", "/tools/mail.json")
    assert records.replace(HERE, [sent, read]) == 0
    with closing(Database(database.path)) as other:
        assert Records(other).listed() == [read, sent]


def test_a_directory_has_what_its_files_say_now(database: Database) -> None:
    records = Records(database)
    records.replace(HERE, [_record("a", "/tools/a.json"), _record("b", "/tools/deep/b.json")])
    changed = _record("a", "/tools/a.json", description="another")
    assert records.replace(HERE, [changed, _record("c", "/tools/c.json")]) == 1
    assert [each.tool_id for each in records.listed()] == ["a", "c"]
    assert records.listed()[0] == changed
    assert records.replace(HERE, []) == 2
    assert records.listed() == []


@pytest.mark.parametrize("elsewhere", ["/tools2/x.json", "/Tools/x.json", "/other/tools/x.json"])
def test_other_directories_keep_theirs(database: Database, elsewhere: str) -> None:
    records = Records(database)
    kept = _record("x", elsewhere)
    records.replace(Path(elsewhere).parent, [kept])
    records.replace(HERE, [_record("a", "/tools/a.json")])
    records.replace(HERE, [])
    assert records.listed() == [kept]


def test_a_directory_holds_those_beneath_it(database: Database) -> None:
    records = Records(database)
    records.replace(HERE / "deep", [_record("a", "/tools/deep/a.json")])
    assert records.replace(HERE, []) == 1
    records.replace(HERE, [_record("a", "/tools/a.json")])
    assert records.replace(Path("/"), []) == 1


def test_an_id_belongs_to_the_directory_that_was_looked_at_last(database: Database) -> None:
    records = Records(database)
    records.replace(HERE, [_record("a", "/tools/a.json")])
    newer = _record("a", "/other/a.json")
    records.replace(Path("/other"), [_record("a", "/other/z.json"), newer])
    assert records.listed() == [newer]
    assert records.replace(HERE, []) == 0
    assert records.listed() == [newer]


def test_only_a_change_counts_as_one(database: Database) -> None:
    records = Records(database)
    assert records.changes() == 0
    same = [_record("a", "/tools/a.json")]
    records.replace(HERE, same)
    changes = records.changes()
    assert changes > 0
    records.replace(HERE, same)
    assert records.changes() == changes
    records.replace(HERE, [])
    assert records.changes() > changes


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
