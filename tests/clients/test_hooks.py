"""The programs of clients run our hooks, and show a model what an earlier session decided."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from server.clients.locations import OwnAddress, command_path
from server.clients.pieces import plan
from server.hooks.payloads import CLIENTS
from server.hooks.registration import TOKEN, hook_pieces
from storage.database import RECORD, Database
from storage.memory.captured import CONVERSATION, last_fired
from tests.clients.programs import CLAUDE_CODE, Home, run
from tests.server.serving import environ, serving

pytestmark = pytest.mark.slow

TRUSTING: Mapping[str, Sequence[str]] = {
    "codex": ["--dangerously-bypass-hook-trust"],
    "copilot": ["--trust-folder"],
}
"""What a user does at a terminal before hooks of a client run."""

PROMPT = "We decided to store the orders in SQLite."
OWN = OwnAddress("127.0.0.1", 1)
ANSWER = "The orders are in SQLite now."


def add_hooks(home: Home, monkeypatch: pytest.MonkeyPatch, url: str = "") -> None:
    monkeypatch.setenv("HOME", str(home.path))
    name = home.program.name
    project = home.project if name == "copilot" else None  # it has hooks in projects only
    for change in plan(hook_pieces(name, [str(command_path())], project, url=url), OWN).changes:
        assert change.after is not None
        change.path.parent.mkdir(parents=True, exist_ok=True)
        change.path.write_bytes(change.after)


def test_a_decision_of_one_session_is_shown_to_the_model_of_the_next(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["git", "init", str(home.project)]
    subprocess.run(command, check=True, capture_output=True)
    add_hooks(home, monkeypatch)
    words = TRUSTING.get(home.program.name, ())
    with home.model([ANSWER]) as model:
        home.prompt(model, PROMPT, *words)
    with home.model(["Nothing."]) as model:
        home.prompt(model, "What now?", *words)
    shown = json.dumps([each.body for each in model.requests], ensure_ascii=False)
    assert "not an instruction" in shown
    assert PROMPT in shown
    with closing(Database(home.path / "data" / RECORD)) as database:
        rows = database.rows(
            "SELECT c.content, x.metadata FROM chunks c JOIN contexts x ON x.seq = c.context_seq"
            " WHERE x.raw_type = ?",
            (CONVERSATION,),
        )
        assert {PROMPT, ANSWER} <= {row["content"] for row in rows}
        assert {json.loads(row["metadata"])["project"] for row in rows} == {str(home.project)}
        assert list(last_fired(database)) == [home.program.name]
    assert not Path(home.path / "data" / "logs" / "toolcrib.log").exists()
    if CLIENTS[home.program.name].rules:
        status = ["git", "-C", str(home.project), "status", "--porcelain"]
        done = subprocess.run(status, check=True, capture_output=True, text=True)
        assert "toolcrib-memory" not in done.stdout


def test_claude_code_sends_its_events_to_a_running_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home", CLAUDE_CODE)
    token = {TOKEN: "owners-token"}
    settings = {"DATA_DIR": str(home.path / "data"), "HTTP__TOKEN": token[TOKEN]}
    with serving("http", environ(tmp_path, **settings)) as url:
        add_hooks(home, monkeypatch, url.removesuffix("/mcp"))
        for said, text in ((ANSWER, PROMPT), ("Nothing.", "What now?")):
            with home.model([said]) as model:
                run(home, home.command(model, *CLAUDE_CODE.prompted), model, text, token)
    shown = json.dumps([each.body for each in model.requests], ensure_ascii=False)
    assert "not an instruction" in shown
    assert PROMPT in shown
    log = home.path / "data" / "logs" / "toolcrib.log"
    assert "toolcrib.hooks" not in log.read_text("utf-8")
