"""Hooks over HTTP, sent to a real server."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from server.clients.locations import AGENT_HEADER
from server.hooks.process import MOST_BYTES
from server.hooks.unstored import FOLDER, is_waiting
from storage.database import RECORD, Database
from storage.memory.captured import CONVERSATION
from tests.server.serving import environ, serving

TOKENS = {
    "ann": {"token": "anns-token", "user_id": "Ann"},
    "reader": {"token": "readers-token", "user_id": "Reader"},
}
OWNER = "owners-token"
DECISION = "We decided to use tabs."


class Sender:
    """A client that sends events of a project to a server."""

    def __init__(self, place: Path, url: str) -> None:
        self.data = place / "data"
        self.project = place / "shop"
        self.project.mkdir()
        self._url = url.removesuffix("/mcp")

    def send(
        self, event: str, session: str = "1", bearer: str = OWNER, **fields: Any
    ) -> httpx2.Response:
        payload = {"session_id": session, "cwd": str(self.project)} | fields
        return self.post(event, json.dumps(payload), {"Authorization": f"Bearer {bearer}"})

    def post(
        self, event: str, data: str, headers: dict[str, str], client: str = "claude-code"
    ) -> httpx2.Response:
        url = f"{self._url}/hooks/{client}/{event}"
        headers = {"Content-Type": "application/json"} | headers
        return httpx2.post(url, content=data, headers=headers, timeout=20)

    def turn(self, prompt: str, answer: str, *, bearer: str = OWNER) -> None:
        assert self.send("UserPromptSubmit", "1", bearer, prompt=prompt).json() == {}
        assert self.send("Stop", "1", bearer, last_assistant_message=answer).json() == {}

    def shown(self, bearer: str = OWNER) -> str:
        return self.send("SessionStart", "new", bearer, source="startup").text

    def stored(self) -> list[tuple[str, str]]:
        with closing(Database(self.data / RECORD)) as database:
            rows = database.rows(
                "SELECT x.user_id, c.content FROM chunks c JOIN contexts x ON x.seq = c.context_seq"
                " WHERE x.raw_type = ? ORDER BY c.seq",
                (CONVERSATION,),
            )
        return [tuple(row) for row in rows]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    place = tmp_path_factory.mktemp("hooks")
    profiles = {"narrow": {"tokens": ["reader"], "allow": ["query"]}}
    settings = {"HTTP__TOKEN": OWNER, "HTTP__TOKENS": json.dumps(TOKENS)}
    env = environ(place, PROFILES=json.dumps(profiles), **settings)
    with serving("http", env) as url:
        yield place, url


@pytest.fixture
def sender(server: tuple[Path, str], tmp_path: Path) -> Sender:
    sender = Sender(tmp_path, server[1])
    sender.data = server[0] / "data"
    return sender


def test_a_session_is_shown_what_an_earlier_one_decided(sender: Sender) -> None:
    sender.turn(DECISION, "All right.")
    reply = json.loads(sender.shown())["hookSpecificOutput"]
    assert reply["hookEventName"] == "SessionStart"
    assert DECISION in reply["additionalContext"]


def test_each_token_has_its_own_memory(sender: Sender) -> None:
    sender.turn(DECISION, "All right.", bearer="anns-token")
    assert DECISION in sender.shown("anns-token")
    assert sender.shown() == "{}"
    assert ("Ann", DECISION) in sender.stored()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer guess"}, 401),
        ({"Authorization": "Bearer readers-token"}, 403),
        ({"Authorization": f"Bearer {OWNER}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {OWNER}", "Origin": "http://evil.example"}, 403),
        ({"Authorization": f"Bearer {OWNER}", "Content-Type": "text/plain"}, 400),
    ],
)
def test_requests_that_the_transport_refuses_store_nothing(
    sender: Sender, headers: dict[str, str], status: int
) -> None:
    said = {"session_id": "1", "cwd": str(sender.project), "last_assistant_message": "Intruder."}
    assert sender.post("Stop", json.dumps(said), headers).status_code == status
    assert "Intruder." not in str(sender.stored())


@pytest.mark.parametrize(
    ("client", "event", "data"),
    [
        ("claude-code", "Stop", "{"),
        ("claude-code", "Elevenses", '{"session_id": "1"}'),
        ("nobody", "Stop", '{"session_id": "1"}'),
        ("claude-code", "Stop", "[" * 100_000),
    ],
)
def test_a_payload_that_cannot_be_read_is_answered_with_nothing(
    sender: Sender, client: str, event: str, data: str
) -> None:
    reply = sender.post(event, data, {"Authorization": f"Bearer {OWNER}"}, client)
    assert (reply.status_code, reply.json()) == (200, {})


def test_a_payload_without_end_is_refused(sender: Sender) -> None:
    headers = {"Authorization": f"Bearer {OWNER}"}
    assert sender.post("Stop", " " * (MOST_BYTES + 1), headers).status_code == 413


def test_sessions_of_agents_that_toolcrib_started_are_not_captured(sender: Sender) -> None:
    said = {"session_id": "1", "cwd": str(sender.project), "last_assistant_message": "Agent."}
    headers = {"Authorization": f"Bearer {OWNER}", AGENT_HEADER: "http://127.0.0.1:1"}
    assert sender.post("Stop", json.dumps(said), headers).json() == {}
    assert "Agent." not in str(sender.stored())


def test_files_that_a_payload_names_are_neither_read_nor_written(sender: Sender) -> None:
    transcript = sender.project / "transcript.jsonl"
    transcript.write_text('{"role": "assistant", "text": "From a file."}', encoding="utf-8")
    sender.turn(DECISION, "All right.")
    sender.send("Stop", transcript_path=str(transcript))
    headers = {"Authorization": f"Bearer {OWNER}"}
    said = json.dumps({"conversation_id": "2", "workspace_roots": [str(sender.project)]})
    sender.post("sessionStart", said, headers, "cursor")
    assert "From a file." not in str(sender.stored())
    assert list(sender.project.iterdir()) == [transcript]


def test_turns_that_meet_a_busy_record_are_stored_later(sender: Sender) -> None:
    sender.turn(DECISION, "All right.")
    with closing(sqlite3.connect(sender.data / RECORD, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        sender.turn("Go on.", "Done.")
        holder.rollback()
    assert list((sender.data / FOLDER).glob("*.json"))
    sender.turn("And now?", "It works.")
    turns = [said for _, said in sender.stored()]
    assert turns[-6:] == [DECISION, "All right.", "Go on.", "Done.", "And now?", "It works."]


@pytest.mark.slow
def test_what_waits_when_a_server_starts_is_stored(tmp_path: Path) -> None:
    with serving("http", environ(tmp_path)) as url:
        sender = Sender(tmp_path, url)
        sender.turn(DECISION, "All right.")
        holder = sqlite3.connect(sender.data / RECORD, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        sender.send("UserPromptSubmit", prompt="Go on.")
        sender.send("Stop", last_assistant_message="Done.")
    holder.close()
    assert len(list((sender.data / FOLDER).glob("*.json"))) == 2
    with serving("http", environ(tmp_path)) as url:
        while is_waiting(sender.data):
            httpx2.get(url, timeout=20)
        assert [said for _, said in sender.stored()][2:] == ["Go on.", "Done."]
