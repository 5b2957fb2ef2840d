from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from storage.catalog.records import Record, Records
from storage.database import Database

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
