from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter

Command = Callable[..., Any]
Started = Callable[..., subprocess.Popen[str]]


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


def test_a_folder_is_added_embedded_and_unchanged_the_second_time(cli: Command, work: Path) -> None:
    first = cli("add", "notes")
    assert (first.code, first.out) == (0, "3 added\n")
    assert "Embedding" in first.err
    assert stored(work) == {"notes/sailing.md", "notes/bread.md", "notes/it's 🍅 [red].txt"}
    assert waiting(work) == 0
    assert cli("add", "notes/").out == "3 unchanged\n"


def test_a_file_beneath_the_root_is_the_document_that_an_agent_adds(
    cli: Command, work: Path, tmp_path: Path
) -> None:
    assert cli("call", "add_document", "path=notes/bread.md").code == 0
    (tmp_path / "link").symlink_to(work)
    assert cli("add", str(tmp_path / "link" / "notes" / "bread.md")).out == "1 unchanged\n"


def test_a_file_beside_the_root_is_stored_under_its_whole_path(cli: Command, work: Path) -> None:
    outside = work.parent / "outside.md"
    outside.write_text("# Outside\n\nBeside the root.\n")
    assert cli("add", "../outside.md").out == "1 added\n"
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
    ended = cli("add", "notes")
    assert (ended.code, ended.out) == (0, "6 skipped, 3 added\n")
    skipped = [line for line in ended.err.splitlines() if line.startswith("Skipped: ")]
    reasons = ("empty", "binary", "'notes/new\\nline.txt'", "UTF-8", "50000001", "password")
    assert len(skipped) == len(reasons)
    assert [reason for reason in reasons if not any(reason in line for line in skipped)] == []


def test_a_named_file_that_cannot_be_read_is_exit_code_1(cli: Command, work: Path) -> None:
    (work / "notes" / "empty.txt").touch()
    ended = cli("add", "notes/bread.md", "notes/empty.txt")
    assert (ended.code, ended.out) == (1, "1 added, 1 skipped\n")
    assert "Skipped: 'notes/empty.txt' is empty." in ended.err


def test_a_folder_without_files_is_exit_code_1(cli: Command, work: Path) -> None:
    (work / "bare").mkdir()
    ended = cli("add", "bare")
    assert (ended.code, ended.out) == (1, "")
    assert "Error: There are no files in 'bare'." in ended.err


def test_a_path_that_does_not_exist_is_a_wrong_usage(cli: Command, work: Path) -> None:
    ended = cli("add", "nowhere")
    assert ended.code == 2
    assert "'nowhere' does not exist" in ended.err


def test_the_data_directory_is_no_document(cli: Command, work: Path) -> None:
    cli("add", "notes/bread.md")
    ended = cli("add", "../data/toolcrib.db")
    assert (ended.code, ended.out) == (1, "1 skipped\n")
    assert "protected" in ended.err


def test_a_full_disk_stops_at_once_and_says_so(
    cli: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("add", "notes/bread.md")
    sqlite3_connect = sqlite3.connect

    def small(*arguments: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite3_connect(*arguments, **options)  # type: ignore[call-overload]  # passed on as given
        (used,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {used}")
        return connection

    (work / "notes" / "long.md").write_text("# Long\n\n" + "many different words here\n\n" * 50_000)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", small)
        ended = cli("add", "notes/long.md", "notes/sailing.md")
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
    process = toolcrib("add", "notes")
    while not _begun(work):
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "What was added is kept" in err
    assert "Traceback" not in err
    acknowledged = int(out.split()[0])
    assert acknowledged <= len(stored(work)) <= acknowledged + 1
    again = cli("add", "notes/000.md", "notes/bread.md")
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
    cli("add", "notes/bread.md")
    lock = (work.parent / "data" / "indexer.lock").open("ab")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = toolcrib("add", "notes")
        while len(stored(work)) < 3:
            assert process.poll() is None
        assert waiting(work) == 2
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, waiting(work)) == (0, 0)
    assert "2 added" in out
