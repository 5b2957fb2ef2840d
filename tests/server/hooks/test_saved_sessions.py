import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from server.hooks.saved_sessions import SOURCES, SavedSession

CWD = "/work/shop"
AT = "2026-11-28T10:00:00.000Z"
SECONDS = 1_795_860_000.0

SAID = (("user", "Which knot?"), ("assistant", "I look."), ("assistant", "The bowline."))
TURNS = [("Which knot?", "The bowline.")]


def write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def claude_code(home: Path, said: Sequence[tuple[str, str]]) -> Path:
    lines: list[Mapping[str, Any]] = [
        {"type": "queue-operation", "content": "Which knot?"},
        *(
            {
                "type": role,
                "cwd": CWD,
                "timestamp": AT,
                "message": {"role": role, "content": [{"type": "text", "text": text}]},
            }
            for role, text in said
        ),
    ]
    return write_lines(home / ".claude" / "projects" / "-work-shop" / "s1.jsonl", lines)


def codex(home: Path, said: Sequence[tuple[str, str]]) -> Path:
    lines = [
        {"type": "session_meta", "payload": {"id": "s1", "cwd": CWD, "thread_source": "user"}},
        *(
            {
                "type": "response_item",
                "timestamp": AT,
                "payload": {"type": "message", "role": role, "content": [{"text": text}]},
            }
            for role, text in [("user", "<environment_context>…</environment_context>"), *said]
        ),
    ]
    folder = home / ".codex" / "sessions" / "2026" / "11" / "28"
    return write_lines(folder / "rollout-2026-11-28T10-00-00-s1.jsonl", lines)


def gemini(home: Path, said: Sequence[tuple[str, str]]) -> Path:
    roles = {"user": "user", "assistant": "gemini"}
    lines: list[Mapping[str, Any]] = [
        {"sessionId": "s1", "kind": "main"},
        {"$set": {"messages": [{"type": "user", "content": "<session_context>…"}]}},
    ]
    for role, text in said:
        content: Any = [{"text": f"<hook_context>…</hook_context>\n\n{text}"}]
        lines.append(
            {"type": roles[role], "timestamp": AT, "content": content if role == "user" else text}
        )
    write_lines(home / ".gemini" / "projects.json", [{"projects": {CWD: "shop"}}])
    return write_lines(home / ".gemini" / "tmp" / "shop" / "chats" / "session-s1.jsonl", lines)


def opencode(home: Path, said: Sequence[tuple[str, str]]) -> Path:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE session (id, parent_id, directory, time_updated);"
            "CREATE TABLE message (id, session_id, time_created, data);"
            "CREATE TABLE part (id, message_id, session_id, time_created, data);"
        )
        connection.execute("INSERT INTO session VALUES ('s1', NULL, ?, 5)", (CWD,))
        connection.execute("INSERT INTO session VALUES ('s2', 's1', ?, 5)", (CWD,))
        for place, (role, text) in enumerate(said):
            message = json.dumps({"role": role})
            part = json.dumps({"type": "text", "text": text})
            time = int(SECONDS * 1000)
            connection.execute("INSERT INTO message VALUES (?, 's1', ?, ?)", (place, time, message))
            connection.execute(
                "INSERT INTO part VALUES (?, ?, 's1', ?, ?)", (place, place, time, part)
            )
    return path


def copilot(home: Path, said: Sequence[tuple[str, str]]) -> Path:
    start = {"sessionId": "s1", "context": {"cwd": CWD}}
    lines: list[Mapping[str, Any]] = [
        {"type": "session.start", "data": start, "timestamp": AT},
        {"type": "system.message", "data": {"role": "system", "content": "You are helpful."}},
        *(
            {"type": f"{role}.message", "data": {"content": text}, "timestamp": AT}
            for role, text in said
        ),
    ]
    return write_lines(home / ".copilot" / "session-state" / "s1" / "events.jsonl", lines)


WRITERS = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini": gemini,
    "opencode": opencode,
    "copilot": copilot,
}


def read(home: Path, client: str) -> list[SavedSession]:
    return list(SOURCES[client](home, {}))


def turns_of(session: SavedSession) -> list[tuple[str, str]]:
    return [(turn.prompt.text, turn.answer.text) for turn in session.turns()]


@pytest.mark.parametrize("client", SOURCES)
def test_a_session_has_its_project_and_each_prompt_with_the_last_text_of_its_answer(
    tmp_path: Path, client: str
) -> None:
    WRITERS[client](tmp_path, SAID)
    [session] = read(tmp_path, client)
    assert (session.client, session.id, session.directory) == (client, "s1", Path(CWD))
    assert turns_of(session) == TURNS
    [turn] = session.turns()
    assert turn.prompt.time == turn.answer.time == SECONDS


@pytest.mark.parametrize("client", SOURCES)
def test_a_prompt_whose_answer_is_still_to_come_is_left_for_later(
    tmp_path: Path, client: str
) -> None:
    WRITERS[client](tmp_path, [*SAID, ("user", "And then?")])
    [session] = read(tmp_path, client)
    assert turns_of(session) == TURNS


@pytest.mark.parametrize("client", SOURCES)
def test_a_client_that_was_never_used_has_no_sessions(tmp_path: Path, client: str) -> None:
    assert read(tmp_path, client) == []


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "copilot"])
def test_lines_that_are_damaged_or_still_being_written_are_passed_over(
    tmp_path: Path, client: str
) -> None:
    path = WRITERS[client](tmp_path, SAID)
    with path.open("ab") as file:
        file.write(b"\xff\xfe\n[1, 2]\n" + b"[" * 100_000 + b'\n{"type": "user", "mess')
    [session] = read(tmp_path, client)
    assert turns_of(session) == TURNS


@pytest.mark.parametrize(
    "more",
    [
        {"isSidechain": True},
        {"isMeta": True},
        {"isCompactSummary": True},
        {"message": {"content": [{"type": "tool_result", "content": "x"}]}},
        {"message": {"content": "<command-name>/model</command-name>"}},
        {"message": {"content": "<system-reminder>Today is Monday.</system-reminder>"}},
    ],
)
def test_only_what_was_typed_to_claude_code_is_a_prompt(
    tmp_path: Path, more: Mapping[str, Any]
) -> None:
    path = claude_code(tmp_path, SAID)
    line = {"type": "user", "timestamp": AT, "message": {"content": "Not typed."}, **more}
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
        file.write(json.dumps({"type": "assistant", "message": {"content": "The end."}}) + "\n")
    [session] = read(tmp_path, "claude-code")
    assert turns_of(session) == [("Which knot?", "The end.")]


@pytest.mark.parametrize(
    ("line", "data"),
    [
        ({"agentId": "a"}, {}),
        ({}, {"parentToolCallId": "c"}),
        ({}, {"source": "skill-pdf"}),
        ({}, {"source": "agent-7"}),
        ({}, {"isAutopilotContinuation": True}),
    ],
)
def test_only_what_was_typed_to_copilot_is_a_prompt(
    tmp_path: Path, line: Mapping[str, Any], data: Mapping[str, Any]
) -> None:
    path = copilot(tmp_path, SAID)
    for role, text in (("user", "Not typed."), ("assistant", "The end.")):
        said = {"content": text, **(data if role == "user" else {})}
        more = line if role == "user" else {}
        with path.open("a") as file:
            file.write(json.dumps({"type": f"{role}.message", "data": said, **more}) + "\n")
    [session] = read(tmp_path, "copilot")
    assert turns_of(session) == [("Which knot?", "The end.")]


def test_a_prompt_may_begin_with_markup(tmp_path: Path) -> None:
    claude_code(tmp_path, [("user", "<div> is too wide"), ("assistant", "Now it is not.")])
    [session] = read(tmp_path, "claude-code")
    assert turns_of(session) == [("<div> is too wide", "Now it is not.")]


def test_agents_that_codex_and_gemini_started_are_not_the_users_sessions(tmp_path: Path) -> None:
    for path, old, new in (
        (codex(tmp_path, SAID), '"thread_source": "user"', '"thread_source": "subagent"'),
        (gemini(tmp_path, SAID), '"kind": "main"', '"kind": "subagent"'),
    ):
        path.write_text(path.read_text().replace(old, new))
    assert read(tmp_path, "codex") == read(tmp_path, "gemini") == []


def test_a_session_of_gemini_cli_whose_project_is_unknown_is_passed_over(tmp_path: Path) -> None:
    gemini(tmp_path, SAID)
    (tmp_path / ".gemini" / "projects.json").unlink()
    assert read(tmp_path, "gemini") == []


def test_folders_that_the_environment_names_are_read(tmp_path: Path) -> None:
    claude_code(tmp_path, SAID)
    codex(tmp_path, SAID)
    opencode(tmp_path, SAID)
    copilot(tmp_path, SAID)
    elsewhere = tmp_path / "elsewhere"
    for client, variable, folder in (
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude"),
        ("codex", "CODEX_HOME", ".codex"),
        ("copilot", "COPILOT_HOME", ".copilot"),
        ("opencode", "XDG_DATA_HOME", ".local/share"),
    ):
        found = list(SOURCES[client](elsewhere, {variable: str(tmp_path / folder)}))
        assert [session.id for session in found] == ["s1"]


def test_the_stamp_of_a_session_changes_with_it(tmp_path: Path) -> None:
    path = claude_code(tmp_path, SAID)
    [before] = read(tmp_path, "claude-code")
    [same] = read(tmp_path, "claude-code")
    with path.open("a") as file:
        file.write("{}\n")
    [after] = read(tmp_path, "claude-code")
    assert before.stamp == same.stamp != after.stamp
