import json
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli.conftest import Command, Started

pytestmark = pytest.mark.slow


PATIENCE_SECONDS = 60


class Watch:
    """A running `toolcrib watch` and the lines that it says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def says(self, *lines: str) -> None:
        """Waits for so many lines; together they are these, in any order."""
        assert sorted(self.next_line() for _ in lines) == sorted(lines)

    def next_line(self) -> str:
        """The next line; nothing where none comes."""
        assert self.process.stdout is not None
        timer = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        timer.start()
        line = self.process.stdout.readline().rstrip("\n")
        timer.cancel()
        return line

    def end(self, number: int = signal.SIGINT) -> tuple[str, str]:
        """Ends it as a person or the system does; what it had still to say."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 0
        return out, err


@pytest.fixture
def watching(toolcrib: Started, work: Path) -> Iterator[Callable[..., Watch]]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> Watch:
        started.append(toolcrib("watch", *arguments))
        return Watch(started[-1])

    yield start
    for process in started:
        process.kill()
        process.communicate()


FIRST = ("added notes/bread.md", "added notes/it's 🍅 [red].txt", "added notes/sailing.md")


@pytest.fixture
def followed(watching: Callable[..., Watch], work: Path) -> Watch:
    """The folder `notes`, brought up to date."""
    watch = watching("notes")
    watch.says(f"watching {work / 'notes'}", *FIRST)
    return watch


def rows(work: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{work.parent}/data/toolcrib.db?mode=ro", uri=True)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def stored(work: Path) -> set[str]:
    return {raw_id for (raw_id,) in rows(work, "SELECT raw_id FROM contexts")}


def test_files_that_come_change_and_go_do_so_in_the_library(followed: Watch, work: Path) -> None:
    notes = work / "notes"
    (notes / "rye.md").write_text("# Rye\n")
    followed.says("added notes/rye.md")
    (notes / "rye.md").write_text("# Rye bread\n")
    followed.says("replaced notes/rye.md")
    (notes / "rye.md").rename(notes / "oats.md")
    followed.says("deleted notes/rye.md", "added notes/oats.md")
    (notes / "oats.md").unlink()
    followed.says("deleted notes/oats.md")
    assert followed.end() == ("stopped\n", "")
    assert stored(work) == {line.removeprefix("added ") for line in FIRST}


def test_directories_that_come_move_and_go_do_so_with_all_their_files(
    followed: Watch, work: Path
) -> None:
    shutil.copytree(work / "notes", work / "copy" / "a" / "b")
    (work / "copy").rename(work / "notes" / "copy")
    followed.says(*(line.replace("notes/", "notes/copy/a/b/") for line in FIRST))
    (work / "notes" / "copy" / "a").rename(work / "notes" / "moved")
    gone = [line.replace("added notes/", "deleted notes/copy/a/b/") for line in FIRST]
    followed.says(*gone, *(line.replace("notes/", "notes/moved/b/") for line in FIRST))
    shutil.rmtree(work / "notes" / "moved")
    followed.says(*(line.replace("added notes/", "deleted notes/moved/b/") for line in FIRST))


def test_what_happened_meanwhile_is_caught_up_with(
    cli: Command, watching: Callable[..., Watch], work: Path
) -> None:
    cli("import", "notes")
    (work / "notes" / "bread.md").unlink()
    (work / "notes" / "sailing.md").write_text("# Rowing\n")
    watch = watching("notes")
    notes = work / "notes"
    watch.says(f"watching {notes}", "replaced notes/sailing.md", "deleted notes/bread.md")


def test_the_ignore_rules_hold_and_a_change_of_them_too(followed: Watch, work: Path) -> None:
    (work / "notes" / ".toolcribignore").write_text("bread.md\n*.tmp\n")
    followed.says("deleted notes/bread.md")
    (work / "notes" / ".hidden.md").write_text("# Hidden\n")
    (work / "notes" / "a.tmp").write_text("A")
    (work / "notes" / "b.md").write_text("# B\n")
    followed.says("added notes/b.md")
    (work / "notes" / ".toolcribignore").unlink()
    followed.says("added notes/a.tmp", "added notes/bread.md")


def test_a_folder_in_a_folder_is_followed_though_the_outer_one_leaves_it_out(
    watching: Callable[..., Watch], work: Path
) -> None:
    drafts = work / "notes" / "private" / "drafts"
    drafts.mkdir(parents=True)
    (drafts / "rye.md").write_text("# Rye\n")
    (work / ".git").mkdir()
    (work / "notes" / ".gitignore").write_text("private\n")
    watch = watching("notes", "notes/private/drafts")
    inner = "added notes/private/drafts/rye.md"
    watch.says(f"watching {work / 'notes'}", f"watching {drafts}", *FIRST, inner)
    (drafts.parent / "left out.md").write_text("# Left out\n")
    (work / "notes" / ".gitignore").write_text("private\nbread.md\n")
    watch.says("deleted notes/bread.md")
    (drafts.parent / "left out.md").unlink()
    drafts.parent.chmod(0o700)
    (drafts / "oats.md").write_text("# Oats\n")
    watch.says("added notes/private/drafts/oats.md")
    assert {f"notes/private/drafts/{name}.md" for name in ("rye", "oats")} < stored(work)


def test_a_file_that_cannot_be_read_is_told_once_and_kept_as_it_was(
    followed: Watch, work: Path
) -> None:
    (work / "notes" / "bread.md").write_bytes(bytes(range(256)))
    binary = "The content is binary (256 bytes read), not text."
    followed.says(f"skipped 'notes/bread.md' cannot be read. {binary}")
    (work / "notes" / "bread.md").write_bytes(bytes(range(256)) * 2)
    (work / "notes" / ".gitignore").write_text("nothing\n")
    (work / "notes" / "rye.md").write_text("# Rye\n")
    followed.says("added notes/rye.md")
    assert "notes/bread.md" in stored(work)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list everything")
def test_nothing_is_deleted_of_a_directory_that_cannot_be_listed(
    followed: Watch, work: Path
) -> None:
    below = work / "notes" / "below"
    below.mkdir()
    (below / "rye.md").write_text("# Rye\n")
    followed.says("added notes/below/rye.md")
    below.chmod(0)
    (work / "notes" / "oats.md").write_text("# Oats\n")
    followed.says("added notes/oats.md")
    below.chmod(0o700)
    (below / "rye.md").write_text("# Rye bread\n")
    followed.says("replaced notes/below/rye.md")


def test_chats_are_imported_when_an_export_is_put_there(followed: Watch, work: Path) -> None:
    chat = {"conversation": "c-1", "title": "Knots", "turns": [{"speaker": "A", "text": "Hi."}]}
    (work / "notes" / "chats.json").write_text(json.dumps([chat]))
    followed.says("added chat: Knots")
    (work / "notes" / "chats.json").unlink()
    (work / "notes" / "bread.md").unlink()
    followed.says("deleted notes/bread.md")
    assert "c-1" in stored(work)


def test_of_an_export_that_is_unpacked_there_the_chats_alone_are_imported(
    followed: Watch, work: Path
) -> None:
    export = work / "notes" / "export"
    export.mkdir()
    (export / "chat.html").write_text("<p>The same once more.</p>")
    followed.says("added notes/export/chat.html")  # nothing tells yet what it is
    chat = {"conversation": "c-1", "title": "Knots", "turns": [{"speaker": "A", "text": "Hi."}]}
    (export / "conversations.json").write_text(json.dumps([chat]))
    followed.says("added chat: Knots", "deleted notes/export/chat.html")
    (export / "user.json").write_text("{}")
    (work / "notes" / "rye.md").write_text("# Rye\n")
    followed.says("added notes/rye.md")


def test_a_folder_that_is_not_there_is_waited_for_and_nothing_is_deleted(
    followed: Watch, work: Path
) -> None:
    notes = work / "notes"
    notes.rename(work / "away")
    followed.says(f"{notes} is not there; waiting for it")
    (work / "away" / "rye.md").write_text("# Rye\n")
    (work / "away").rename(notes)
    followed.says(f"watching {notes}", "added notes/rye.md")
    assert len(stored(work)) == 4


def test_a_record_that_cannot_be_written_is_told_and_tried_again(
    followed: Watch, work: Path
) -> None:
    record = sqlite3.connect(work.parent / "data" / "toolcrib.db", isolation_level=None)
    record.execute("BEGIN IMMEDIATE")
    (work / "notes" / "rye.md").write_text("# Rye\n")
    assert "Trying again every 5 seconds." in followed.next_line()
    record.execute("ROLLBACK")
    record.close()
    followed.says("added notes/rye.md")


def test_what_is_stored_is_embedded_and_found_by_others_on_the_same_data(
    followed: Watch, cli: Command, work: Path
) -> None:
    assert followed.process.poll() is None
    assert cli("import", "notes").out == "3 unchanged\n"  # which waits for the embedding
    assert rows(work, "SELECT count(*) FROM embed_queue") == [(0,)]
    assert "notes/bread.md" in cli("query", "baking").out


def test_the_system_ends_it_cleanly_even_in_the_middle_of_much_work(
    watching: Callable[..., Watch], work: Path
) -> None:
    for number in range(1000):
        (work / "notes" / f"{number:03}.md").write_text(f"# Note {number}\n")
    watch = watching("notes")
    watch.says(f"watching {work / 'notes'}", "added notes/000.md")
    out, err = watch.end(signal.SIGTERM)
    assert out.endswith("stopped\n")
    assert "Traceback" not in err
    assert out.count("added") < 1000


def test_a_file_is_no_folder_to_watch(cli: Command, work: Path) -> None:
    ended = cli("watch", "notes/bread.md")
    assert ended.code == 2
    assert "is a file" in ended.err
