"""Reads the sessions that clients keep on disk, so that those without hooks are remembered too."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from storage.keeping.lost import connect_readonly
from storage.reading.conversations import get, joined_text, seconds, text_of

MOST_LINE_BYTES = 64_000_000
"""Length of a line of a transcript; a longer one is passed over."""

_SHOWN = re.compile(r"<(hook_context|system-reminder)>.*?</\1>", re.DOTALL)
"""What clients write into a prompt in addition to what was typed."""

_NOT_TYPED = re.compile(
    r"\s*(<(environment_context|user_instructions|session_context|command-\w+|local-command-\w+"
    r"|turn_aborted|task-notification|bash-\w+)>|# AGENTS\.md instructions|Caveat: The messages)"
)
_LATEST = 4_000_000_000.0  # a time in the year 2096, after which it is not one


class Message(NamedTuple):
    """A text of the user or the assistant."""

    by_user: bool
    text: str
    time: float


class Turn(NamedTuple):
    """A prompt and the last text of its answer."""

    prompt: Message
    answer: Message


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session that a client has stored."""

    client: str
    id: str
    directory: Path
    stamp: str  # changes when the session does
    read: Callable[[], Iterable[Message]]

    def turns(self) -> Iterator[Turn]:
        """Yields the turns that have ended, each with the last text before the next prompt."""
        prompt: Message | None = None
        answer: Message | None = None
        for each in self.read():
            if not each.by_user:
                answer = each
                continue
            if prompt and answer:
                yield Turn(prompt, answer)
            prompt, answer = each, None
        if prompt and answer:
            yield Turn(prompt, answer)


def claude_code_sessions(home: Path, environ: Mapping[str, str]) -> Iterator[SavedSession]:
    """Yields the sessions of Claude Code, each a file below the folder of its project."""
    folder = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"
    for path in sorted(folder.glob("*/*.jsonl")):
        first = next((each for each in _lines(path) if isinstance(each.get("cwd"), str)), None)
        if first is not None:
            yield _session("claude-code", path.stem, first["cwd"], path, _of_claude_code)


def codex_sessions(home: Path, environ: Mapping[str, str]) -> Iterator[SavedSession]:
    """Yields the sessions of Codex, without those of agents that it started."""
    folder = Path(environ.get("CODEX_HOME") or home / ".codex") / "sessions"
    for path in sorted(folder.glob("*/*/*/rollout-*.jsonl")):
        about = get(next(_lines(path), {}), "payload", dict)
        if about.get("thread_source", "user") == "user" and isinstance(about.get("cwd"), str):
            name = str(about.get("session_id") or about.get("id") or path.stem)
            yield _session("codex", name, about["cwd"], path, _of_codex)


def gemini_sessions(home: Path, _environ: Mapping[str, str]) -> Iterator[SavedSession]:
    """Yields the sessions of Gemini CLI whose project is known."""
    folder = home / ".gemini"
    projects = get(_json(folder / "projects.json"), "projects", dict)
    known = {str(name): path for path, name in projects.items()}
    known |= {sha256(path.encode()).hexdigest(): path for path in projects}
    for path in sorted(folder.glob("tmp/*/chats/session-*.json*")):
        project = path.parts[-3]
        directory = known.get(project) or _text(path.parents[1] / ".project_root")
        about = next(_records(path), {})
        if directory and about.get("kind", "main") == "main":
            name = str(about.get("sessionId") or path.stem)
            yield _session("gemini", name, directory, path, _of_gemini)


def opencode_sessions(home: Path, environ: Mapping[str, str]) -> Iterator[SavedSession]:
    """Yields the sessions in opencode's database, without those of agents that it started."""
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    path = data / "opencode" / "opencode.db"
    with suppress(OSError, sqlite3.Error), closing(connect_readonly(path)) as connection:
        rows = connection.execute(
            "SELECT id, directory, time_updated FROM session WHERE parent_id IS NULL ORDER BY id"
        ).fetchall()
        for name, directory, updated in rows:
            read = partial(_of_opencode, path, name)
            yield SavedSession("opencode", name, Path(directory), str(updated), read)


def copilot_sessions(home: Path, environ: Mapping[str, str]) -> Iterator[SavedSession]:
    """Yields the sessions of Copilot CLI, each a file in a folder of its own."""
    folder = Path(environ.get("COPILOT_HOME") or home / ".copilot") / "session-state"
    for path in sorted(folder.glob("*/events.jsonl")):
        about = get(next(_lines(path), {}), "data", dict)
        directory = get(about, "context", dict).get("cwd")
        if isinstance(directory, str):
            name = str(about.get("sessionId") or path.parent.name)
            yield _session("copilot", name, directory, path, _of_copilot)


SOURCES: Mapping[str, Callable[[Path, Mapping[str, str]], Iterator[SavedSession]]] = {
    "claude-code": claude_code_sessions,
    "codex": codex_sessions,
    "gemini": gemini_sessions,
    "opencode": opencode_sessions,
    "copilot": copilot_sessions,
}
"""The clients whose sessions can be read, by their names for `--from`."""


def _session(
    client: str, name: str, directory: str, path: Path, read: Callable[[Path], Iterator[Message]]
) -> SavedSession:
    state = path.stat()
    stamp = f"{state.st_size} {state.st_mtime_ns}"
    return SavedSession(client, name, Path(directory), stamp, partial(read, path))


def _of_claude_code(path: Path) -> Iterator[Message]:
    for each in _lines(path):
        if is_of_subagent(each) or each.get("isMeta") or each.get("isCompactSummary"):
            continue
        yield from _message(
            each.get("type"), get(each, "message", dict).get("content"), each.get("timestamp")
        )


def _of_codex(path: Path) -> Iterator[Message]:
    for each in _lines(path):
        item = get(each, "payload", dict)
        if each.get("type") == "response_item" and item.get("type") == "message":
            yield from _message(item.get("role"), item.get("content"), each.get("timestamp"))


def _of_gemini(path: Path) -> Iterator[Message]:
    for each in _records(path):
        said = [each, *get(each, "messages", list), *get(each.get("$set"), "messages", list)]
        for item in said:
            if isinstance(item, dict):
                yield from _message(item.get("type"), item.get("content"), item.get("timestamp"))


def _of_copilot(path: Path) -> Iterator[Message]:
    for each in _lines(path):
        said = get(each, "data", dict)
        is_ours = said.get("isAutopilotContinuation") or str(said.get("source")).startswith(
            ("skill-", "agent-")
        )
        if not is_ours and not is_of_subagent(each):
            role, _, kind = str(each.get("type")).partition(".")
            if kind == "message":
                yield from _message(role, said.get("content"), each.get("timestamp"))


def is_of_subagent(record: Mapping[str, Any]) -> bool:
    """Returns whether a line of Claude Code or Copilot CLI is of an agent that another started."""
    parent = get(record, "data", dict).get("parentToolCallId")
    return bool(record.get("isSidechain") or record.get("agentId") or parent)


def _of_opencode(path: Path, session: str) -> Iterator[Message]:
    with closing(connect_readonly(path)) as connection:
        rows = connection.execute(
            "SELECT m.data, p.data, p.time_created FROM message m"
            " JOIN part p ON p.message_id = m.id"
            " WHERE m.session_id = ? ORDER BY m.time_created, m.id, p.id",
            (session,),
        )
        for message, part, moment in rows:
            with suppress(ValueError):
                about, said = json.loads(message), json.loads(part)
                if said.get("type") == "text" and not said.get("synthetic"):
                    yield from _message(about.get("role"), said.get("text"), moment)


def _message(role: object, content: object, moment: object) -> Iterator[Message]:
    """Yields a message if it has a text that was typed, or that the assistant answered."""
    if role not in {"user", "assistant", "gemini"}:
        return
    text = text_of(_SHOWN.sub("", joined_text(content)))
    by_user = role == "user"
    if text and not (by_user and _NOT_TYPED.match(text)):
        time = seconds(moment) or 0.0
        yield Message(by_user, text, time if 0 < time < _LATEST else 0.0)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the objects of a file: one, or one a line."""
    if path.suffix == ".jsonl":
        yield from _lines(path)
    else:
        yield _json(path)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the objects of a file with one a line; what is damaged or cut is passed over."""
    with suppress(OSError), path.open("rb") as file:
        while line := file.readline(MOST_LINE_BYTES):
            with suppress(ValueError, RecursionError):
                value = json.loads(line)
                if isinstance(value, dict):
                    yield value


def _json(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        value = json.loads(path.read_bytes())
        return value if isinstance(value, dict) else {}
    return {}


def _text(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").strip()
    return ""
