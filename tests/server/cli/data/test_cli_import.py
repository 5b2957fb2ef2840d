import fcntl
import json
import os
import signal
import sqlite3
import time
import zipfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from pypdf import PdfWriter

from server.cli.data.importer import ORIGIN, Importer, Outcome
from server.cli.opened import open_app
from tests.server.cli.conftest import Command, Started

pytestmark = pytest.mark.slow


def record(work: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{work.parent}/data/toolcrib.db?mode=ro", uri=True)


def stored(work: Path) -> set[str]:
    with record(work) as connection:
        names = {row[0] for row in connection.execute("SELECT raw_id FROM contexts")}
    connection.close()
    return names


def waiting(work: Path) -> int:
    with record(work) as connection:
        (count,) = connection.execute("SELECT count(*) FROM embed_queue").fetchone()
    connection.close()
    return int(count)


def test_a_folder_is_imported_embedded_and_unchanged_the_second_time(
    cli: Command, work: Path
) -> None:
    first = cli("import", "notes")
    assert (first.code, first.out) == (0, "3 added\n")
    assert "Embedding" in first.err
    assert stored(work) == {"notes/sailing.md", "notes/bread.md", "notes/it's 🍅 [red].txt"}
    assert waiting(work) == 0
    assert cli("import", "notes/").out == "3 unchanged\n"


def test_a_file_beneath_the_root_is_the_document_that_an_agent_adds(
    cli: Command, work: Path, tmp_path: Path
) -> None:
    assert cli("call", "add_document", "path=notes/bread.md").code == 0
    (tmp_path / "link").symlink_to(work)
    assert cli("import", str(tmp_path / "link" / "notes" / "bread.md")).out == "1 unchanged\n"


def test_the_rule_that_denies_a_file_is_named_in_the_summary(
    cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_POLICY__DENY", '["read(notes/**)"]')
    ended = cli("import", "notes/bread.md")
    assert ended.out == "1 skipped\n  1 skipped: The rule 'read(notes/**)' denies it.\n"


def test_a_file_beside_the_root_is_stored_under_its_whole_path(cli: Command, work: Path) -> None:
    outside = work.parent / "outside.md"
    outside.write_text("# Outside\n\nBeside the root.\n")
    assert cli("import", "../outside.md").out == "1 added\n"
    assert stored(work) == {str(outside)}


def test_what_cannot_be_read_is_skipped_with_one_line_each(cli: Command, work: Path) -> None:
    notes = work / "notes"
    (notes / "empty.txt").touch()
    (notes / "noise.dat").write_bytes(bytes(range(256)) * 20)
    (notes / "new\nline.txt").touch()
    Path(os.fsdecode(os.fsencode(notes) + b"/bad\xff.txt")).write_text("no UTF-8 in the name")
    with (notes / "huge.txt").open("wb") as huge:
        huge.truncate(50_000_001)
    locked = PdfWriter()
    locked.add_blank_page(100, 100)
    locked.encrypt("secret")
    locked.write(notes / "locked.pdf")
    ended = cli("import", "notes")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "3 added, 6 skipped",
        "  2 skipped: It is empty.",
        "  1 skipped: The name is not valid UTF-8.",
        "  1 skipped: It is too large.",
        "  1 skipped: It is encrypted with a password.",
        "  1 skipped: The content is binary, not text.",
    ]
    skipped = [line for line in ended.err.splitlines() if line.startswith("Skipped: ")]
    reasons = ("empty", "binary", "'notes/new\\nline.txt'", "UTF-8", "50000001", "password")
    assert len(skipped) == len(reasons)
    assert [reason for reason in reasons if not any(reason in line for line in skipped)] == []


def test_a_file_that_goes_before_its_turn_is_skipped_in_plain_words(work: Path) -> None:
    told: list[Outcome] = []
    with open_app() as app:
        importer = Importer(app, told.append, lambda _reason, _count: None)
        anyio.run(importer.take, work / "notes" / "gone.md")
    assert [each.message for each in told] == ["'notes/gone.md' was deleted after it was listed."]
    assert told[0].cause == "It was deleted after it was listed"


def test_a_named_file_that_cannot_be_read_is_exit_code_1(cli: Command, work: Path) -> None:
    (work / "notes" / "empty.txt").touch()
    ended = cli("import", "notes/bread.md", "notes/empty.txt")
    assert (ended.code, ended.out) == (1, "1 added, 1 skipped\n  1 skipped: It is empty.\n")
    assert "Skipped: 'notes/empty.txt' is empty." in ended.err


def test_a_folder_without_files_is_exit_code_1(cli: Command, work: Path) -> None:
    (work / "bare").mkdir()
    ended = cli("import", "bare")
    assert (ended.code, ended.out) == (1, "")
    assert "Error: No files in 'bare'." in ended.err


def test_a_path_that_does_not_exist_is_a_wrong_usage(cli: Command, work: Path) -> None:
    ended = cli("import", "nowhere")
    assert ended.code == 2
    assert "'nowhere' does not exist" in ended.err


def test_the_data_directory_is_no_document(cli: Command, work: Path) -> None:
    cli("import", "notes/bread.md")
    ended = cli("import", "../data/toolcrib.db")
    assert (ended.code, ended.out) == (1, "1 skipped\n  1 skipped: The path is protected.\n")
    assert "1 Toolcrib's own" in cli("import", "..").out


def test_a_full_disk_stops_at_once_and_says_so(
    cli: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("import", "notes/bread.md")
    sqlite3_connect = sqlite3.connect

    def small(*arguments: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3_connect(*arguments, **options)  # type: ignore[call-overload]  # passed on as given
        (used,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {used}")
        return connection

    (work / "notes" / "long.md").write_text("# Long\n\n" + "many different words here\n\n" * 50_000)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", small)
        ended = cli("import", "notes/long.md", "notes/sailing.md")
    assert ended.code == 1
    assert "full" in ended.err
    assert "nothing was changed" in ended.err
    assert stored(work) == {"notes/bread.md"}


def test_ctrl_c_keeps_what_was_acknowledged_and_the_next_run_goes_on(
    toolcrib: Started, cli: Command, work: Path
) -> None:
    for number in range(400):
        text = f"# Note {number}\n\n" + f"word{number} " * 400
        (work / "notes" / f"{number:03}.md").write_text(text)
    process = toolcrib("import", "notes")
    while not _begun(work):
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Stored documents are kept" in err
    assert "Traceback" not in err
    acknowledged = int(out.split()[0])
    assert acknowledged <= len(stored(work)) <= acknowledged + 1
    again = cli("import", "notes/000.md", "notes/bread.md")
    assert again.code == 0
    assert "unchanged" in again.out
    assert waiting(work) == 0


def _begun(work: Path) -> bool:
    try:
        return len(stored(work)) > 2
    except sqlite3.OperationalError:  # not there yet
        return False


def test_embedding_waits_for_the_process_that_holds_the_lock(
    toolcrib: Started, cli: Command, work: Path
) -> None:
    cli("import", "notes/bread.md")
    lock = (work.parent / "data" / "indexer.lock").open("ab")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = toolcrib("import", "notes")
        while len(stored(work)) < 3:
            assert process.poll() is None
        assert waiting(work) == 2
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, waiting(work)) == (0, 0)
    assert "2 added" in out


def contexts(work: Path, columns: str) -> list[tuple[Any, ...]]:
    with record(work) as connection:
        query = f"SELECT {columns} FROM contexts ORDER BY raw_id"  # noqa: S608  # the tests' own
        rows = connection.execute(query).fetchall()
    connection.close()
    return rows


def test_add_is_another_name_of_import(cli: Command) -> None:
    assert cli("add", "notes").out == "3 added\n"
    assert " add [OPTIONS] " in cli("add", "--help").out
    assert "│ add " not in cli("--help").out


def test_what_ignore_rules_leave_out_is_passed_over_and_counted(cli: Command, work: Path) -> None:
    (work / "notes" / ".gitignore").write_text("*.txt\n")
    (work / "notes" / ".toolcribignore").write_text("/bread.md\n")
    assert cli("import", "notes").out == "1 added\nPassed over: 2 hidden, 2 ignored\n"
    assert cli("import", "notes/bread.md").out == "1 added\n"


def test_a_file_that_is_the_same_is_not_read_again_and_a_changed_one_is_replaced(
    cli: Command, work: Path
) -> None:
    cli("import", "notes")
    os.utime(work / "notes" / "sailing.md", (0, 0))
    (work / "notes" / "bread.md").write_text("# Bread\n\nRye.\n")
    before = contexts(work, "event_time")
    assert cli("import", "notes").out == "1 replaced, 2 unchanged\n"
    assert contexts(work, "event_time")[2] == before[2]


def test_the_front_matter_of_a_vault_is_kept(cli: Command, work: Path) -> None:
    note = "---\ntitle: Log\ndate: 1970-01-02\ntags: [boat]\nrating: 5\n---\nSaw [[Ada]] #sun\n"
    (work / "notes" / "log.md").write_text(note)
    cli("import", "notes/log.md")
    ((title, event_time, keywords, entities, metadata),) = contexts(
        work, "title, event_time, keywords, entities, metadata"
    )
    assert (title, event_time) == ("Log", 86_400 + 43_200)
    assert (json.loads(keywords), json.loads(entities)) == (["boat", "sun"], ["Ada"])
    assert json.loads(metadata) == {"rating": 5, ORIGIN: str(work / "notes" / "log.md")}
    assert "log.md" in cli("query", "boat").out


def test_a_folder_that_git_leaves_out_is_imported_when_it_is_named(
    cli: Command, work: Path
) -> None:
    (work / ".git").mkdir()
    (work / ".gitignore").write_text("/notes/\n")
    assert cli("import", "notes").out == "3 added\n"
    assert cli("import", "notes", "--prune").out == "3 unchanged\n"


def test_prune_deletes_what_is_gone_or_ignored_now_and_nothing_else(
    cli: Command, work: Path
) -> None:
    cli("import", "notes")
    outside = work / "other.md"
    outside.write_text("# Other\n")
    cli("import", "other.md")
    cli("call", "add_document", "text=Words.", "raw_type=file", "raw_id=notes/agents.md")
    (work / "notes" / "sailing.md").unlink()
    (work / "notes" / ".toolcribignore").write_text("*.txt\n")
    outside.unlink()
    assert "deleted" not in cli("import", "notes").out
    assert cli("import", "notes", "--prune").out.startswith("1 unchanged, 2 deleted\n")
    assert stored(work) == {"notes/bread.md", "other.md", "notes/agents.md"}


def test_prune_deletes_nothing_where_another_root_names_other_files_alike(
    cli: Command, work: Path, tmp_path: Path
) -> None:
    cli("import", "notes")
    (tmp_path / "elsewhere" / "notes").mkdir(parents=True)
    (tmp_path / "elsewhere" / "notes" / "new.md").write_text("# New\n")
    elsewhere = str(tmp_path / "elsewhere")
    ended = cli("import", "--root", elsewhere, f"{elsewhere}/notes", "--prune")
    assert ended.out == "1 added\n"
    assert len(stored(work)) == 4


def test_prune_spares_an_empty_folder_and_what_cannot_be_listed(cli: Command, work: Path) -> None:
    cli("import", "notes")
    (work / "notes").rename(work / "away")
    (work / "notes").mkdir()
    assert cli("import", "notes", "away/bread.md", "--prune").out == "1 added\n"
    assert len(stored(work)) == 4


CHATS = [
    {"conversation": "c-1", "title": "Knots", "turns": [{"speaker": "Ada", "text": "A bowline."}]},
    {"conversation": "c-2", "title": "Silence", "turns": [{"speaker": "Ada", "text": ""}]},
]
CHATGPT = {
    "title": "Ropes",
    "conversation_id": "c-3",
    "create_time": 86_400.0,
    "current_node": "b",
    "mapping": {
        "a": {
            "parent": None,
            "message": {
                "author": {"role": "user"},
                "create_time": 86_400.0,
                "content": {"content_type": "text", "parts": ["Which rope floats?"]},
            },
        },
        "b": {
            "parent": "a",
            "message": {
                "author": {"role": "tool"},
                "content": {"content_type": "text", "parts": ["search"]},
            },
        },
    },
}


def test_an_export_of_chats_is_imported_as_it_was_downloaded(cli: Command, work: Path) -> None:
    with zipfile.ZipFile(work / "notes" / "export.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([CHATGPT]))
        archive.writestr("user.json", json.dumps({"email": "ada@example.org"}))
    ended = cli("import", "notes/export.zip")
    assert ended.out == "1 added\nLeft out of chats: tool calls and results (1)\n"
    columns = "raw_type, raw_id, title, event_time"
    assert contexts(work, columns) == [("chatgpt", "c-3", "Ropes", 86_400.0)]
    assert "User, 1970-01-02T00:00:00Z" in cli("query", "floating rope").out
    assert cli("import", "notes").out.startswith("3 added, 1 unchanged\n")


def test_a_folder_that_holds_an_unpacked_export_gives_its_chats_alone(
    cli: Command, work: Path
) -> None:
    (work / "export").mkdir()
    (work / "export" / "conversations.json").write_text(json.dumps([CHATGPT]))
    (work / "export" / "user.json").write_text('{"email": "ada@example.org"}')
    (work / "export" / "chat.html").write_text("<p>Which rope floats?</p>")
    ended = cli("import", "export")
    assert ended.out.splitlines()[:2] == ["1 added", "Passed over: 2 part of a chat export"]


def test_chats_without_text_and_damaged_exports_are_skipped(cli: Command, work: Path) -> None:
    (work / "notes" / "chats.jsonl").write_text("\n".join(map(json.dumps, [*CHATS, 7, *CHATS])))
    (work / "notes" / "cut.json").write_text(json.dumps([*CHATS, CHATGPT])[:-9])
    (work / "notes" / "data.json").write_text('{"not": "a chat"}')
    ended = cli("import", "notes")
    assert ended.out.splitlines() == [
        "5 added, 2 unchanged, 5 skipped",
        "  3 skipped: The conversation has no text.",
        "  1 skipped: A part of it is not a conversation.",
        "  1 skipped: It is damaged.",
    ]
    assert "Skipped: 'notes/cut.json' cannot be read to its end." in ended.err
    assert "Skipped: The conversation 'Silence' has no text." in ended.err
    assert cli("import", "notes/chats.jsonl").code == 0


def test_the_summary_is_json_where_a_program_asks(cli: Command, work: Path) -> None:
    (work / "notes" / "empty.txt").touch()
    (work / "notes" / "chats.json").write_text(json.dumps([CHATGPT]))
    summary = json.loads(cli("import", "notes", "--json").out)
    assert summary == {
        "added": 4,
        "replaced": 0,
        "unchanged": 0,
        "deleted": 0,
        "skipped": 1,
        "marked": 0,
        "skipped_because": {"It is empty": 1},
        "passed_over": {},
        "left_out_of_chats": {"tool calls and results": 1},
    }


def test_of_many_files_skipped_for_one_reason_the_first_are_named(cli: Command, work: Path) -> None:
    for number in range(50):
        (work / "notes" / f"{number}.txt").touch()
    ended = cli("import", "notes")
    assert "  50 skipped: It is empty.\n" in ended.out
    assert ended.err.count("Skipped: '") == 10
    assert ended.err.count("Skipped: The others with this reason are counted below.") == 1


def test_without_waiting_everything_is_stored_and_embedded_by_another_process(
    cli: Command, work: Path
) -> None:
    ended = cli("import", "notes", "--no-wait")
    assert (ended.code, ended.out) == (0, "3 added\n")
    assert "3 passages are still being embedded for semantic search" in " ".join(ended.err.split())
    deadline = time.monotonic() + 120
    while waiting(work) and time.monotonic() < deadline:
        time.sleep(0.1)  # as for any other process
    assert waiting(work) == 0


def test_a_file_with_broken_bytes_is_taken_in_and_its_lines_are_named(
    cli: Command, work: Path
) -> None:
    (work / "notes" / "log.txt").write_bytes(b"Mooring log\n" * 40 + b"bad \0\xff line\nquay\n")
    (work / "notes" / "picture.txt").write_bytes(bytes(range(256)) * 9)
    ended = cli("import", "notes")
    assert ended.out.startswith("4 added, 1 skipped\n")
    assert "1 with a note, which their metadata keep." in ended.out
    said = " ".join(ended.err.split())
    assert "Note: 'notes/log.txt': A line has bytes that could not be read" in said
    assert "line 41." in said
    assert (
        "bad \ufffd\ufffd line"
        in cli("call", "get_document", "raw_type=file", "raw_id=notes/log.txt").out
    )
