import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from server.hooks.events import store_left
from server.hooks.exclusions import set_paused
from server.hooks.payloads import read_call
from server.hooks.project import project_of
from server.hooks.unstored import keep
from storage.database import RECORD, Database
from storage.models import Identity
from tests.server.cli.conftest import Command, terminal


def wait(data: Path, said: str) -> None:
    """Leaves a prompt as a hook does that finds the record busy."""
    payload = {"session_id": "1", "prompt": said}
    keep(data, read_call("codex", "UserPromptSubmit", payload, Path.cwd()), Identity("local"))


@pytest.fixture
def paused(work: Path, tmp_path: Path) -> Path:
    """A project whose memory is paused."""
    project = project_of(work).directory
    with closing(Database(tmp_path / "data" / RECORD)) as database:
        set_paused(database, project, paused=True)
    return project


def fire(event: str, **payload: str) -> bytes:
    command = [sys.executable, "-c", "from server.cli import main; main()", "hook", "codex", event]
    data = json.dumps({"session_id": "1", **payload}).encode()
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    return done.stdout


def test_status_says_that_nothing_is_captured_yet(cli: Command) -> None:
    assert cli("memory").out == (
        "Memory: on\nCaptured: 0 sessions in 0 projects\nHooks: none has fired yet\n"
    )


@pytest.mark.slow
def test_status_counts_what_hooks_captured(cli: Command, work: Path) -> None:
    fire("UserPromptSubmit", prompt="Say hello.")
    fire("Stop", last_assistant_message="Hello.")
    lines = cli("memory").out.splitlines()
    assert lines[1] == "Captured: 1 session in 1 project"
    assert lines[2].startswith("Hooks of Codex: Stop, 20")
    assert json.loads(cli("memory", "--json").out)["hooks"]["codex"]["event"] == "Stop"


def test_status_names_paused_projects(cli: Command, paused: Path) -> None:
    assert f"Paused: {paused}\n" in cli("memory").out


def test_a_setting_turns_it_off(cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_MEMORY__CAPTURE", "false")
    assert cli("memory").out.startswith("Memory: off, by the setting memory.capture\n")


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{}, {"TOOLCRIB_MEMORY__CAPTURE": "false"}])
def test_a_paused_project_is_neither_captured_nor_shown(
    cli: Command, paused: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    fire("UserPromptSubmit", prompt="We decided to use tabs.")
    fire("Stop", last_assistant_message="All right.")
    assert fire("SessionStart", source="startup") == b""
    assert "Captured: 0 sessions" in cli("memory").out


@pytest.mark.parametrize("action", ["pause", "resume"])
def test_an_agents_shell_cannot_change_it(
    cli: Command, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    with Path(os.devnull).open(encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        refused = cli("memory", action)
    assert refused.code == 1
    assert "requires an interactive terminal" in refused.err
    assert cli("memory").out.startswith("Memory: on\n")


@pytest.mark.slow
def test_a_person_pauses_and_resumes(cli: Command, work: Path) -> None:
    with terminal("memory", "pause") as shown:
        shown.expect("The memory is paused everywhere.")
        shown.process.wait()
    assert cli("memory").out.startswith("Memory: paused\n")
    with terminal("memory", "resume", "--project", ".") as shown:
        shown.expect("It is still paused everywhere")
    with terminal("memory", "resume") as shown:
        shown.expect("The memory is on everywhere.")
        shown.process.wait()
    assert cli("memory").out.startswith("Memory: on\n")


@pytest.mark.slow
def test_what_waits_from_a_pause_is_not_stored_after_it(
    cli: Command, work: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    wait(data, "Before the pause.")
    for action, said in (("pause", "During it."), ("resume", "After it.")):
        with terminal("memory", action) as shown:
            shown.expect("The memory is")
            shown.process.wait()
        wait(data, said)
    store_left(data)
    with closing(Database(data / RECORD)) as database:
        rows = database.rows("SELECT said FROM entries ORDER BY seq")
    assert [row["said"] for row in rows] == ["Before the pause.", "After it."]


def test_a_backup_has_what_waits(cli: Command, work: Path, tmp_path: Path) -> None:
    assert cli("import", "notes").code == 0
    wait(tmp_path / "data", "We decided to use tabs.")
    assert cli("backup", "copy").code == 0
    with closing(sqlite3.connect(work / "copy")) as copy:
        assert copy.execute("SELECT said FROM entries").fetchall() == [("We decided to use tabs.",)]
