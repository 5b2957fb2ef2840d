"""`toolcrib undo`: the person at the keyboard takes back what agents did."""

from pathlib import Path

import pytest

from tests.server.cli.conftest import Command


@pytest.fixture
def changed(cli: Command, work: Path) -> list[str]:
    """The ids of two calls that changed files, the first one first."""
    (work / "a.txt").write_text("one\n")
    cli("call", "write_file", "file_path=a.txt", "content=two\n")
    cli("call", "write_file", "file_path=b\x1b[31m.txt", "content=new\n")
    listed = cli("undo", "--list").out.splitlines()
    return [line.split()[0] for line in reversed(listed)]


def test_the_last_call_is_shown_and_undone_when_the_person_says_so(
    cli: Command, work: Path, changed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    refused = cli("undo")
    assert refused.code == 1
    assert "Remove b␛[31m.txt\n  @@ -1 +0,0 @@\n  -new\n" in refused.out
    assert len(list(work.glob("b*.txt"))) == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert "Undid 1 file" in cli("undo").out
    assert list(work.glob("b*.txt")) == []
    assert (work / "a.txt").read_text() == "two\n"


def test_a_call_is_named_by_its_first_characters(
    cli: Command, work: Path, changed: list[str]
) -> None:
    assert "Put back a.txt" in cli("undo", changed[0][:8], "--yes").out
    assert (work / "a.txt").read_text() == "one\n"
    assert cli("undo", "zzzz", "--yes").err.startswith("No such change in ")


def test_everything_since_a_time_is_undone_and_the_undo_too(
    cli: Command, work: Path, changed: list[str]
) -> None:
    assert "Undid 2 files" in cli("undo", "--since", "1h", "--yes").out
    assert (work / "a.txt").read_text() == "one\n"
    assert "Undid 2 files" in cli("undo", "--yes").out
    assert (work / "a.txt").read_text() == "two\n"


def test_a_file_that_was_changed_since_is_left_unless_forced(
    cli: Command, work: Path, changed: list[str]
) -> None:
    (work / "a.txt").write_text("mine\n")
    left = cli("undo", changed[0], "--yes")
    assert (left.code, left.err) == (1, "Nothing to undo.\n")
    assert "Leave a.txt: it was changed since" in left.out
    assert cli("undo", changed[0], "--yes", "--force").code == 0
    assert (work / "a.txt").read_text() == "one\n"


def test_what_is_forgotten_cannot_be_undone(cli: Command, work: Path, changed: list[str]) -> None:
    assert "Removed the kept copies of 1 change" in cli("undo", changed[0], "--forget", "--yes").out
    assert len(cli("undo", "--list").out.splitlines()) == 1
    assert "of 1 change" in cli("undo", "--forget", "--yes").out
    assert cli("undo", "--list").code == 0
    assert (work / "a.txt").read_text() == "two\n"
