"""Layer 1 of memory: entries by session, found again, and forgotten with what they told of."""

import logging
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.database import Database
from storage.keeping.erasure import erase
from storage.library import Library
from storage.memory.entries import MOST_WAITING, Entries, Recorder
from storage.models import ContextType, Entry, Identity, NewContext, NewEntry
from storage.people.models import NewEntity

ANN = Identity("ann")
PHONE = Identity("ann", device_id="phone")
BOB = Identity("bob")


def call(action: str = "read_file", target: str = "", **more: Any) -> NewEntry:
    more = {"session_id": "s1", "client": "Cursor", "time": 1_000.0, "importance": 2.0, **more}
    return NewEntry(kind="call", action=action, target=target, **more)


def shown(entries: list[Entry]) -> list[str]:
    return [f"{entry.action} {entry.target}".strip() for entry in entries]


def only(library: Library, seq: int, identity: Identity = ANN) -> Entry:
    (entry,) = library.entries.get(identity, [seq])
    return entry


def test_an_entry_comes_back_as_it_was_recorded(library: Library) -> None:
    new = call("bash", "make", arguments={"command": "make", "n": [1, None]}, said="done\x00\u00e9")
    entry = only(library, library.entries.record(PHONE, new), PHONE)
    assert (entry.session_id, entry.client, entry.device_id) == ("s1", "Cursor", "phone")
    assert (entry.action, entry.target, entry.said) == ("bash", "make", "done\x00\u00e9")
    assert entry.arguments == {"command": "make", "n": [1, None]}
    assert (entry.time, entry.outcome, entry.is_recall) == (1_000.0, "ok", False)


def test_the_last_entries_come_first_and_by_session(library: Library) -> None:
    seqs = [
        library.entries.record(ANN, call(target=str(number), session_id=f"s{number % 2}"))
        for number in range(6)
    ]
    recalled = library.entries.record(ANN, call("query", session_id="s1", is_recall=True))
    of_all = library.entries.recent(ANN, None, 3)
    assert [entry.seq for entry in of_all] == [recalled, seqs[5], seqs[4]]
    known = library.entries.recent(ANN, "s1", 10, recalls=False)
    assert [entry.target for entry in known] == ["5", "3", "1"]
    assert library.entries.recent(ANN, "s1", 10, before=seqs[3], recalls=False)[0].target == "1"
    assert [e.target for e in library.entries.recent(ANN, "s0", 9, after=seqs[2])] == ["4"]
    assert library.entries.count(ANN) == 7
    assert library.entries.count(ANN, "s1") == 4


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ["write_file b_c.md", "bash", "query kites", "read_file a.md"]),
        ({"actions": ["query", "bash"]}, ["bash", "query kites"]),
        ({"node": "s2"}, ["write_file b_c.md", "bash"]),
        ({"node": "cursor"}, ["query kites", "read_file a.md"]),
        ({"node": "phone"}, ["write_file b_c.md"]),
        ({"target": "a.md"}, ["read_file a.md"]),
        ({"target": ".md"}, []),
        ({"target_part": ".MD"}, ["write_file b_c.md", "read_file a.md"]),
        ({"target_part": "b_c"}, ["write_file b_c.md"]),
        ({"target_part": "_"}, ["write_file b_c.md"]),
        ({"target_part": "%"}, []),
        ({"text": "SPARS"}, ["query kites"]),
        ({"text": "no such host"}, ["bash"]),
        ({"since": 1_002.0}, ["write_file b_c.md", "bash"]),
        ({"until": 1_001.0}, ["query kites", "read_file a.md"]),
        ({"outcome": "ok"}, ["write_file b_c.md", "query kites", "read_file a.md"]),
        ({"outcome": "failed"}, ["bash"]),
        ({"outcome": "timeout"}, ["bash"]),
        ({"outcome": "not_found"}, []),
        ({"session_id": "s1"}, ["query kites", "read_file a.md"]),
        ({"offset": 1, "limit": 2}, ["bash", "query kites"]),
    ],
)
def test_entries_are_found_by_what_they_have(
    library: Library, wanted: dict[str, Any], expected: list[str]
) -> None:
    record = library.entries.record
    record(ANN, call("read_file", "a.md"))
    record(ANN, call("query", "kites", time=1_001.0, arguments={"query": "spars"}))
    later = {"session_id": "s2", "client": "Codex"}
    record(ANN, call("bash", time=1_002.0, outcome="timeout", said="No such host", **later))
    record(PHONE, call("write_file", "b_c.md", time=1_003.0, **later))
    assert shown(library.entries.find(ANN, **{"limit": 100, **wanted})) == expected


def test_nobody_sees_or_forgets_anothers_entries(library: Library) -> None:
    seq = library.entries.record(ANN, call(target="secret"))
    assert library.entries.find(BOB, limit=10) == []
    assert library.entries.get(BOB, [seq]) == []
    assert library.entries.sessions(BOB, 10) == []
    assert library.entries.tally(BOB) == {}
    assert library.entries.forget(BOB, [seq]) == 0
    assert library.entries.count(ANN) == 1


def test_a_device_sees_its_own_entries_and_its_user_all(library: Library) -> None:
    library.entries.record(ANN, call(target="desk"))
    library.entries.record(PHONE, call(target="phone"))
    assert shown(library.entries.recent(PHONE, None, 9)) == ["read_file phone"]
    assert library.entries.count(ANN) == 2


def test_a_session_tells_its_client_its_times_and_its_entries(library: Library) -> None:
    for moment, client in ((5.0, "Cursor"), (3.0, ""), (9.0, "")):
        library.entries.record(ANN, call(time=moment, client=client))
    library.entries.record(ANN, call(session_id="s2", time=7.0))
    latest, earlier = library.entries.sessions(ANN, 10)
    assert (latest.id, latest.client, latest.entries) == ("s1", "Cursor", 3)
    assert (latest.start_time, latest.last_time) == (3.0, 9.0)
    assert earlier.id == "s2"
    assert library.entries.tally(ANN) == {"read_file": 4}


def test_repetition_raises_the_importance_by_three_at_most(library: Library) -> None:
    def importance(**more: Any) -> float:
        return only(library, library.entries.record(ANN, call(target="a.md", **more))).importance

    assert importance(outcome="timeout") == 2.0
    assert [importance() for _ in range(5)] == [2.0, 3.0, 4.0, 5.0, 5.0]
    assert importance(session_id="s2") == 2.0
    assert importance(importance=9.5) == 10.0


def test_a_long_session_makes_recording_and_searching_it_no_slower(library: Library) -> None:
    """In steps of SQLite's virtual machine, which no other work on the machine changes."""
    told = library.shelf(ANN).memories.remember("Una keeps bees").context.id

    def steps() -> int:
        counted: list[None] = []
        with library.database.read() as connection:  # the one idle connection, which all take
            connection.set_progress_handler(lambda: counted.append(None), 1)
        library.recent.state(ANN, "s1")
        library.entries.record(ANN, call("remember", "bees", context_ids=(told,)))
        with library.database.read() as connection:
            connection.set_progress_handler(None, 1)
        return len(counted)

    few = [steps() for _ in range(5)][-1]
    for recalls in (False, True):
        calls = [call(target=f"t{number}", is_recall=recalls) for number in range(3_000)]
        library.entries.record_all([(ANN, each) for each in calls])
    assert steps() < 2 * few


def test_what_is_forgotten_takes_its_empty_session_along(library: Library) -> None:
    seqs = [library.entries.record(ANN, call(session_id=name)) for name in ("s1", "s1", "s2")]
    assert library.entries.forget(ANN, [seqs[0], seqs[2], 999]) == 2
    assert [session.id for session in library.entries.sessions(ANN, 10)] == ["s1"]


def stored(library: Library, new: NewContext) -> str:
    return library.shelf(ANN).add(new).context.id


def test_an_entry_is_blank_once_what_it_told_of_is_deleted(library: Library) -> None:
    first, second = (
        stored(library, NewContext(title=name, text="zqtext", raw_type="t", raw_id=name))
        for name in ("one", "two")
    )
    told = call("add_document", "zqone", arguments={"text": "zqtext"}, said="zqsaid")
    of_both = library.entries.record(ANN, _told_of(told, first, second))
    of_none = library.entries.record(ANN, told)
    library.shelf(ANN).forget([second])
    entry = only(library, of_both)
    assert (entry.target, entry.arguments, entry.said) == ("", {}, "")
    assert entry.action == "add_document"
    assert only(library, of_none).target == "zqone"


def _told_of(new: NewEntry, *context_ids: str) -> NewEntry:
    values = {name: getattr(new, name) for name in NewEntry.__slots__}
    return NewEntry(**values | {"context_ids": context_ids})


def test_what_was_forgotten_before_the_call_that_stored_it_is_recorded_is_not_told(
    library: Library,
) -> None:
    gone = stored(library, NewContext(title="gone", text="zqtext"))
    library.shelf(ANN).forget([gone])
    told = call("remember", "zqtitle", arguments={"content": "zqtext"}, said="zqsaid")
    entry = only(library, library.entries.record(ANN, _told_of(told, gone)))
    assert (entry.action, entry.tells) == ("remember", False)


def test_nothing_of_another_user_is_linked(library: Library) -> None:
    mine = stored(library, NewContext(title="mine", text="a text"))
    seq = library.entries.record(BOB, _told_of(call(target="guess", is_recall=True), mine))
    library.shelf(ANN).forget([mine])
    assert only(library, seq, BOB).target == "guess"


def test_a_new_version_leaves_its_entries_the_target_alone(
    library: Library, world: ModuleType
) -> None:
    context_id = stored(library, world.new_document("one", "the first"))
    told = call("add_document", "one.md", arguments={"text": "the first"}, said="the first")
    seq = library.entries.record(ANN, _told_of(told, context_id))
    newer = stored(library, world.new_document("one", "the second"))
    entry = only(library, seq)
    assert (entry.target, entry.arguments, entry.said) == ("one.md", {}, "")
    library.shelf(ANN).forget([newer])
    assert only(library, seq).target == ""


def test_a_message_is_forgotten_with_what_was_stored_on_it(library: Library) -> None:
    said = NewEntry(
        session_id="s1", kind="message", time=990.0, action="prompt:remember", said="zqtea"
    )
    before = library.entries.record(ANN, said)
    context_id = stored(library, NewContext(title="tea", text="zqtea"))
    library.entries.record(ANN, _told_of(call("add_knowledge", time=1_000.0), context_id))
    library.shelf(ANN).forget([context_id])
    assert only(library, before).said == ""


def message(said: str, **more: Any) -> NewEntry:
    return NewEntry(session_id="s1", kind="message", action="prompt:x", said=said, **more)


def test_a_message_waits_for_the_first_that_is_stored_on_it_however_long(library: Library) -> None:
    early = library.entries.record(ANN, message("zqtea", time=0.0))
    asked = library.entries.record(ANN, message("tea?", time=1.0, is_recall=True))
    tea, rope = (
        stored(library, NewContext(title=name, text=f"of {name}", raw_type="t", raw_id=name))
        for name in ("zqtea", "rope")
    )
    for context_id, when in ((tea, 10_000.0), (rope, 20_000.0)):
        library.entries.record(ANN, _told_of(call("remember", time=when), context_id))
    library.shelf(ANN).forget([rope])
    assert only(library, early).said == "zqtea"
    library.shelf(ANN).forget([tea])
    assert only(library, early).said == ""
    assert only(library, asked).said == "tea?"


def test_a_message_is_forgotten_with_what_was_stored_on_it_by_a_clock_set_back(
    library: Library,
) -> None:
    said = library.entries.record(ANN, message("zqtea", time=90_000.0))
    tea = stored(library, NewContext(title="zqtea", text="of tea"))
    library.entries.record(ANN, _told_of(call("remember", time=10.0), tea))
    library.shelf(ANN).forget([tea])
    assert only(library, said).said == ""


def test_what_asked_for_an_entity_by_any_of_its_names_is_forgotten_with_it(
    library: Library,
) -> None:
    people = library.shelf(ANN).people
    people.save_entity(NewEntity(name='Zelda "Zed" Quist', aliases=("Zelly", "path")))
    told = [
        call("retrieve_profile_context", "zelly"),
        call("profile_entity_tool", arguments={"entity1": "Bo", "entity2": 'zelda "zed" quist'}),
        call("query", arguments={"filters": {"entities": ["Bo", "ZELLY"]}}),
        message("zelly", time=1.0, is_recall=True),
    ]
    kept = [
        call("read_file", arguments={"path": "a.md"}),
        call("write_file", arguments={"content": "Zelly came by."}),
    ]
    told_seqs, kept_seqs = (
        [library.entries.record(ANN, each) for each in entries] for entries in (told, kept)
    )
    people.delete_entity('Zelda "Zed" Quist')
    assert [only(library, seq).tells for seq in told_seqs] == [False] * len(told)
    assert [only(library, seq).tells for seq in kept_seqs] == [True] * len(kept)


def test_what_an_entity_was_called_is_forgotten_with_it(library: Library) -> None:
    people = library.shelf(ANN).people
    people.save_entity(NewEntity(name="Zelda"))
    mine = library.entries.record(ANN, call("save_entity", "zelda"))
    other = library.entries.record(BOB, call("save_entity", "Zelda"))
    people.delete_entity("Zelda")
    assert only(library, mine).target == ""
    assert only(library, other, BOB).target == "Zelda"


def test_what_was_read_back_is_used_once_more(library: Library) -> None:
    memory, other = (
        stored(
            library,
            NewContext(context_type=ContextType.KNOWLEDGE, title=name, text=name, memory_layer=2),
        )
        for name in ("wind and rope", "salt and tide")
    )
    new = call("query", time=5_000.0, is_recall=True)
    values = {name: getattr(new, name) for name in NewEntry.__slots__}
    told = {"context_ids": (memory, other), "read_ids": (memory,)}
    library.entries.record(ANN, NewEntry(**values | told))
    with library.database.read() as connection:
        rows = connection.execute(
            "SELECT x.id, m.uses, m.last_used FROM memories m"
            " JOIN contexts x ON x.seq = m.context_seq"
        ).fetchall()
    assert {row[0]: (row[1], row[2]) for row in rows} == {memory: (1, 5_000.0), other: (0, None)}


def test_no_byte_of_a_forgotten_entry_stays_on_the_disk(library: Library) -> None:
    secret: dict[str, Any] = {
        "target": "zqtarget",
        "arguments": {"a": "zqargument"},
        "said": "zqsaid",
    }
    context_id = stored(library, NewContext(title="one", text="a text"))
    kept = _told_of(call(**secret), context_id)
    blanked = library.entries.record(ANN, kept)
    deleted = library.entries.record(ANN, call(**secret))
    files = [path for path in library.directory.rglob("*") if path.is_file()]
    assert any(b"zqsaid" in path.read_bytes() for path in files)
    library.shelf(ANN).forget([context_id])
    library.entries.forget(ANN, [deleted])
    assert erase(library.database)
    files = [path for path in library.directory.rglob("*") if path.is_file()]
    left = [path for path in files if b"zq" in path.read_bytes()]
    assert left == []
    assert only(library, blanked).tells is False


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters()), min_size=5, max_size=5))
def test_any_text_is_recorded_and_found_again(library: Library, texts: list[str]) -> None:
    session, action, target, key, said = texts
    new = call(action, target, session_id=session, arguments={key: said}, said=said)
    entry = only(library, library.entries.record(ANN, new))
    whole = target.encode(errors="replace").decode()
    assert entry.target == whole
    found = library.entries.find(ANN, target=target, actions=[action], limit=100)
    assert entry.seq in [each.seq for each in found]
    if "\0" not in target:
        assert library.entries.find(ANN, target_part=target, session_id=session, limit=1)


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
