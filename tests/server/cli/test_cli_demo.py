import os
import re
import signal
from pathlib import Path

import pytest

from server.cli.demo import QUESTIONS
from tests.server.cli.conftest import Command, Started

pytestmark = pytest.mark.slow


def test_a_folder_is_added_and_asked_through_the_real_server(toolcrib: Started, work: Path) -> None:
    (work / "notes" / "empty.txt").touch()
    process = toolcrib("demo", "notes", "--ask", "Which knot makes a loop?")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err) == (0, False)
    assert "Connected over stdio, protocol 2026-07-28" in out
    assert "Which knot makes a loop?" in out
    assert "sailing.md" in out
    assert re.search(r"score [01]\.\d{3}   dense", out)
    assert "Skipped: 'empty.txt' is empty." in err
    assert "4/4" in err
    assert "Found on this machine: no MCP client that this command knows." in out
    assert "`toolcrib install --dry-run`  only shows the changes" in out
    assert str(work) not in out.partition("Connect a client")[2]
    assert not (work.parent / "data").exists()


def test_without_a_folder_the_sample_is_asked_and_its_sentences_are_shown(cli: Command) -> None:
    ended = cli("demo")
    assert (ended.code, "Traceback" in ended.err) == (0, False)
    for question in QUESTIONS:
        assert question in ended.out
    words = " ".join(ended.out.split())
    assert "a rash when she eats peanuts" in words
    assert "Invisible Cities; to: Priyanka" in words
    assert "Saturday 10 October 2026" in words
    assert "item: Washing machine; shop: Elektro Brandt" in words
    assert "| " not in words
    assert "**" not in words


def test_a_folder_in_a_virtual_environment_is_added_though_git_is_told_to_leave_it_out(
    cli: Command, work: Path
) -> None:
    (work / ".git").mkdir()
    (work / ".gitignore").write_text("*\n")
    assert "sailing.md" in cli("demo", "notes", "--ask", "Which knot makes a loop?").out


def test_a_folder_without_documents_is_exit_code_1(cli: Command, work: Path) -> None:
    (work / "bare").mkdir()
    ended = cli("demo", "bare")
    assert ended.code == 1
    assert f"Error: No documents in {work / 'bare'}: nothing to ask." in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("folder", ["nowhere", "notes/bread.md"])
def test_what_is_no_folder_is_a_wrong_usage(cli: Command, folder: str) -> None:
    ended = cli("demo", folder)
    assert ended.code == 2
    assert folder in ended.err


def test_a_server_that_does_not_start_is_a_message(
    cli: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path / "nothing"))
    ended = cli("demo", "notes")
    assert ended.code == 1
    assert "does not answer" in ended.err
    assert "toolcrib doctor" in ended.err


def test_ctrl_c_ends_both_processes_and_leaves_nothing(
    toolcrib: Started, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = work.parent / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    process = toolcrib("demo", "notes")
    while not list(temporary.glob("toolcrib-demo-*/toolcrib.db")):
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert list(temporary.glob("toolcrib-demo-*")) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
