import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from server.hooks.exclusions import set_paused
from storage.database import Database
from tests.server.cli.conftest import Command
from tests.server.hooks.conftest import Clients

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def project(work: Path) -> Path:
    path = work.parent / "shop"
    path.mkdir()
    return path


def line(role: str, text: str, project: Path, minute: int) -> dict[str, Any]:
    return {
        "type": role,
        "cwd": str(project),
        "timestamp": f"2026-11-20T10:{minute:02}:00.000Z",
        "message": {"role": role, "content": text},
    }


def save(project: Path, *said: str, name: str = "s1") -> None:
    """Writes a session as Claude Code does: prompts and answers in turns."""
    path = project.parent / "home" / ".claude" / "projects" / "-shop" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    roles = ("user", "assistant") * len(said)
    lines = (
        json.dumps(line(role, text, project, n))
        for n, (role, text) in enumerate(zip(roles, said, strict=False))
    )
    path.write_text("".join(f"{each}\n" for each in lines))


def test_turns_are_found_with_their_date_project_and_session_and_imported_once(
    cli: Command, project: Path
) -> None:
    said = ["Which glue?", "We decided to use epoxy for the keel."]
    save(project, *said)
    ended = cli("import", "sessions")
    assert ended.out.splitlines() == [
        "Claude Code: 1 turn of 1 session added",
        "Codex: no sessions on this machine",
        "Gemini CLI: no sessions on this machine",
        "opencode: no sessions on this machine",
        "Copilot CLI: no sessions on this machine",
    ]
    found = cli("query", "what glues the keel").out
    assert "2026-11-20T10:01:00Z" in found
    assert "epoxy for the keel" in found
    assert "nothing new" in cli("import", "sessions", "--from", "claude-code").out
    save(project, *said, "And the mast?", "Spruce.")
    ended = cli("import", "sessions", "--from", "claude-code", "--json")
    assert json.loads(ended.out) == {
        "claude-code": {"sessions": 1, "turns": 1, "ignored": 0, "unreadable": 0}
    }


def test_what_hooks_captured_is_not_added_again_and_the_next_session_is_shown_all(
    cli: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = Clients(project.parent, monkeypatch)
    monkeypatch.setattr(clients, "project", lambda _name: project)
    clients.turn("s1", "Which glue?", "We decided to use epoxy for the keel.")
    save(project, "Which glue?", "We decided to use epoxy for the keel.")
    save(project, "Which wood?", "We decided to use spruce for the mast.", name="s0")
    ended = cli("import", "sessions", "--from", "claude-code")
    assert ended.out == "Claude Code: 1 turn of 1 session added\n"
    shown = clients.start("s2")
    assert "2026-11-20: We decided to use spruce for the mast." in shown
    assert shown.count("epoxy") == shown.count("We decided to use epoxy for the keel.") > 0


def test_secrets_and_ignored_projects_are_left_out(cli: Command, project: Path) -> None:
    save(project, f"The token is {SECRET}.", "I keep it to myself.")
    cli("import", "sessions")
    record = (project.parent / "data" / "toolcrib.db").read_bytes()
    assert SECRET.encode() not in record
    assert b"I keep it to myself" in record
    (project / ".toolcribignore").write_text("*\n")
    save(project, "Whisper.", "psst", name="s2")
    ended = cli("import", "sessions", "--from", "claude-code")
    assert ended.out == "Claude Code: nothing new, 1 session left out as ignored or paused\n"
    (project / ".toolcribignore").unlink()
    with closing(Database(project.parent / "data" / "toolcrib.db")) as database:
        set_paused(database, project, paused=True)
    assert cli("import", "sessions", "--from", "claude-code").out == ended.out


def test_a_damaged_session_does_not_keep_the_others(cli: Command, project: Path) -> None:
    save(Path(f"{project}\0"), "Which glue?", "Epoxy.", name="s1")
    save(project, "Which wood?", "Spruce.", name="s2")
    file = project.parent / "home" / ".claude" / "projects" / "-shop" / "s2.jsonl"
    file.write_text(file.read_text().replace("2026-11-20T", "9999-12-31T23:59:59-23:00 "))
    ended = cli("import", "sessions", "--from", "claude-code")
    assert ended.out == "Claude Code: 1 turn of 1 session added, 1 session cannot be read\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--from", "cursor"), "'cursor' has no sessions that can be read"),
        (("--dry-run",), "sessions takes only --from"),
    ],
)
def test_what_does_not_go_with_sessions_is_refused(
    cli: Command, arguments: tuple[str, ...], complaint: str
) -> None:
    ended = cli("import", "sessions", *arguments)
    assert ended.code == 2
    assert complaint in " ".join(ended.err.replace("│", " ").split())
