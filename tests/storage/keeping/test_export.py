"""Exports: everything that is stored, of one identity or of all, in an order that stays."""

import json
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # it ships no types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.errors import BackupError
from storage.keeping.export import export_jsonl, export_markdown, write_note
from storage.library import Library
from storage.models import Context, ContextType, Identity, NewContext, NewEntry, Turn
from storage.people.models import EntityType, NewEntity, NewRelationship

ANN = Identity(user_id="ann")
BOB = Identity(user_id="bob")
LONG = "\n\n".join(f"## Part {number}\n\n{'Rope and wind. ' * 60}".strip() for number in range(9))


@pytest.fixture
def filled(library: Library, world: ModuleType) -> Library:
    shelf = library.shelf(ANN)
    shelf.add(
        world.new_document(
            "sailing", f"# Sailing\n\n{LONG}", entities=("Åsa",), metadata={"tags": [1, None]}
        )
    )
    shelf.add(
        NewContext(
            title="Keys",
            turns=(Turn("Ann, 09:00", "Where are the keys?"), Turn("Bot", "On the hook.")),
            raw_type="chatgpt",
            raw_id="c1",
            media_type="application/json",
        )
    )
    shelf.add(
        NewContext(
            context_type=ContextType.KNOWLEDGE,
            title="Tea",
            text="Ann drinks tea.",
            confidence=9.5,
            keywords=("tea",),
        )
    )
    shelf.add(
        NewContext(
            context_type=ContextType.EVENT, title="Trip", text="Ann sailed.", event_time=86400.5
        )
    )
    shelf.people.save_profile(summary="Ann sails.", facts={"boat": "Åland"})
    shelf.people.save_entity(NewEntity(name="Åsa", entity_type=EntityType.PERSON, summary="Crew."))
    shelf.people.save_entity(NewEntity(name="Regatta", entity_type=EntityType.PROJECT))
    shelf.people.relate(NewRelationship(source="Åsa", relation="trains for", target="Regatta"))
    library.shelf(BOB).add(world.new_document("secret", "Bob's own text"))
    return library


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_jsonl_export_has_everything_of_one_user_in_its_order(
    filled: Library, tmp_path: Path
) -> None:
    assert export_jsonl(filled.database, tmp_path / "out.jsonl", ANN) == 8
    head, *told = records(tmp_path / "out.jsonl")
    assert head == {"record": "toolcrib", "format": 1}
    assert [(each["record"], each.get("title") or each.get("name", "")) for each in told] == [
        ("profile", ""),
        ("entity", "Åsa"),
        ("entity", "Regatta"),
        ("relationship", ""),
        ("context", "sailing"),
        ("context", "Keys"),
        ("context", "Tea"),
        ("context", "Trip"),
    ]
    assert {each["user_id"] for each in told} == {"ann"}
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600


def test_a_record_of_a_context_has_every_field_that_a_context_has(
    filled: Library, tmp_path: Path
) -> None:
    export_jsonl(filled.database, tmp_path / "out.jsonl", ANN)
    record = next(each for each in records(tmp_path / "out.jsonl") if each.get("title") == "Tea")
    context, _ = filled.shelf(ANN).get(record["id"])
    for name in Context.__dataclass_fields__:
        if name in {"identity", "chunk_count"}:  # told as three fields; not of the source
            continue
        value = getattr(context, name)
        assert record[name] == (list(value) if isinstance(value, tuple) else value), name


def test_a_text_is_told_whole_and_a_conversation_turn_by_turn(
    filled: Library, tmp_path: Path
) -> None:
    export_jsonl(filled.database, tmp_path / "out.jsonl", ANN)
    told = {each.get("title"): each for each in records(tmp_path / "out.jsonl")}
    assert told["sailing"]["text"] == f"# Sailing\n\n{LONG}".strip()
    assert "turns" not in told["sailing"]
    assert told["Keys"]["turns"] == [
        {"heading": "Ann, 09:00", "content": "Where are the keys?"},
        {"heading": "Bot", "content": "On the hook."},
    ]
    assert told["Keys"]["text"] == "Where are the keys?\n\nOn the hook."
    relationship = next(each for each in told.values() if each["record"] == "relationship")
    assert (relationship["source"], relationship["target"]) == ("Åsa", "Regatta")


def test_two_exports_are_the_same_bytes_and_all_means_everybody(
    filled: Library, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        assert export_jsonl(filled.database, tmp_path / name, None) == 9
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert {each.get("user_id") for each in records(tmp_path / "one")} == {None, "ann", "bob"}


def test_progress_is_told_and_a_broken_off_export_leaves_nothing(
    filled: Library, tmp_path: Path
) -> None:
    reports: list[tuple[int, int]] = []
    export_jsonl(
        filled.database, tmp_path / "out", ANN, lambda done, total: reports.append((done, total))
    )
    assert reports == [(number, 8) for number in range(1, 9)]

    def give_up(done: int, _total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    for export in (export_jsonl, export_markdown):
        with pytest.raises(KeyboardInterrupt):
            export(filled.database, tmp_path / "broken", ANN, give_up)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]


def note(path: Path) -> tuple[dict[str, Any], str]:
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(front), body.strip("\n")


def test_a_markdown_export_is_a_file_a_thing_with_its_fields_before_the_text(
    filled: Library, tmp_path: Path
) -> None:
    assert export_markdown(filled.database, tmp_path / "out", ANN) == 7
    files = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert {path.parent.name for path in files} == {
        "profiles",
        "entities",
        "document",
        "knowledge",
        "event",
    }
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    (trip,) = (tmp_path / "out" / "event").iterdir()
    fields, body = note(trip)
    assert body == "Ann sailed."
    assert fields["title"] == "Trip"
    assert fields["date"] == "1970-01-02T00:00:00.500000+00:00"
    assert trip.name == f"Trip-{fields['id'][:12]}.md"
    keys = next((tmp_path / "out" / "document").glob("Keys*"))
    assert note(keys)[1] == "## Ann, 09:00\n\nWhere are the keys?\n\n## Bot\n\nOn the hook."
    person = next((tmp_path / "out" / "entities").glob("Åsa*"))
    fields, body = note(person)
    assert body == "# Åsa\n\nCrew."
    assert [each["target"] for each in fields["relationships"]] == ["Regatta"]
    fields, body = note(tmp_path / "out" / "profiles" / "ann.md")
    assert (fields["facts"], body) == ({"boat": "Åland"}, "# ann\n\nAnn sails.")


@pytest.mark.parametrize("export", [export_jsonl, export_markdown])
def test_what_is_there_already_is_refused(
    filled: Library, tmp_path: Path, export: Callable[..., int]
) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "mine").write_text("mine")
    with pytest.raises(BackupError, match=r"exists|not empty"):
        export(filled.database, target, ANN)
    with pytest.raises(BackupError, match="Not a directory"):
        export(filled.database, target / "mine" / "out", ANN)
    assert [path.name for path in target.iterdir()] == ["mine"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out"]


@pytest.mark.parametrize("export", [export_jsonl, export_markdown])
def test_a_disk_that_fills_up_leaves_nothing(
    filled: Library,
    tmp_path: Path,
    export: Callable[..., int],
    full_disk: Callable[[int], AbstractContextManager[None]],
) -> None:
    with full_disk(2000), pytest.raises(BackupError, match="File too large"):
        export(filled.database, tmp_path / "out", ANN)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


TITLES = st.text(max_size=300) | st.sampled_from(
    ["..", ".", "/etc/passwd", "../../x", "con", "nul.", "a" * 400, "é" * 200, "\0", "x\ny: z", ""]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(title=TITLES, value=st.text(), number=st.floats(allow_nan=False, allow_infinity=False))
def test_whatever_a_title_is_its_file_lies_in_the_folder_and_says_what_is_stored(
    tmp_path: Path, title: str, value: str, number: float
) -> None:
    folder = tmp_path / "out"
    folder.mkdir(exist_ok=True)
    record = {
        "record": "context",
        "id": "0" * 32,
        "context_type": "document",
        "title": title,
        "metadata": {"said": value},
        "event_time": number,
        "text": "the text",
    }
    path = write_note(folder, record)
    try:
        assert path.parent == folder / "document"
        assert path.resolve().parent == (folder / "document").resolve()
        assert path.suffix == ".md"
        assert len(path.name.encode()) <= 150
        fields, body = note(path) if "---\n" not in title + value else ({}, "the text")
        assert body == "the text"
        assert fields.get("title", "") == title or not fields
        assert fields == {} or fields["metadata"] == {"said": value}
    finally:
        path.unlink()


def test_equal_titles_and_equal_beginnings_of_ids_keep_files_apart(tmp_path: Path) -> None:
    record = {"record": "context", "context_type": "event", "title": "Same", "text": "text"}
    paths = [write_note(tmp_path, {**record, "id": "0" * 31 + letter}) for letter in "ab"]
    assert [path.name for path in paths] == [f"Same-{'0' * 12}.md", f"Same-{'0' * 31}b.md"]


def test_recorded_calls_are_exported_with_their_sessions_and_their_owner(
    library: Library, tmp_path: Path
) -> None:
    kept = library.shelf(ANN).add(NewContext(title="Tea", text="Ann drinks tea.")).context
    call = NewEntry(
        session_id="s1",
        client="Cursor",
        kind="call",
        time=12.5,
        action="add_document",
        target="tea",
        arguments={"title": "tea"},
        context_ids=(kept.id,),
    )
    seq = library.entries.record(ANN, call)
    library.entries.record(BOB, call)
    assert export_jsonl(library.database, tmp_path / "out.jsonl", ANN) == 3
    *_, session, entry = records(tmp_path / "out.jsonl")
    owner = {"user_id": "ann", "device_id": "", "agent_id": ""}
    assert session == {
        "record": "session",
        **owner,
        "id": "s1",
        "client": "Cursor",
        "project": "",
        "start_time": 12.5,
        "last_time": 12.5,
        "told_until": None,
    }
    assert entry == {
        "record": "entry",
        **owner,
        "id": seq,
        "session_id": "s1",
        "kind": "call",
        "time": 12.5,
        "action": "add_document",
        "target": "tea",
        "arguments": {"title": "tea"},
        "outcome": "ok",
        "said": "",
        "milliseconds": 0.0,
        "importance": 0.0,
        "is_recall": False,
        "context_ids": [kept.id],
    }
    assert export_jsonl(library.database, tmp_path / "all.jsonl", None) == 5
    assert export_markdown(library.database, tmp_path / "notes", ANN) == 1
