"""What each client calls the events of a session and the fields of their payloads, as one table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from storage.reading.conversations import text_of


class Moment(StrEnum):
    """What happens in a session."""

    START = "start"
    PROMPT = "prompt"
    CHANGE = "change"  # of a file
    ANSWER = "answer"
    COMPACT = "compact"
    END = "end"


class Event(NamedTuple):
    """An event of a client."""

    moment: Moment
    text: str = ""  # the field with the prompt, the answer or the path
    reply: Mapping[str, Any] = {}  # what the client expects, whatever the hook does


@dataclass(frozen=True, slots=True, kw_only=True)
class HookClient:
    """A client with hooks."""

    title: str
    events: Mapping[str, Event]
    session: tuple[str, ...] = ("session_id",)
    directory: tuple[str, ...] = ("cwd",)
    transcript: str = ""  # the field with a transcript that has the answer, where no field does
    context: tuple[str, ...] = ("hookSpecificOutput", "additionalContext")
    """The place of injected text in the reply; empty if the client does not show it."""
    rules: str = ""  # the rules file of a project that the client reads instead
    rules_head: str = ""  # what the file begins with


@dataclass(frozen=True, slots=True)
class HookCall:
    """One run of a hook."""

    client_id: str
    event_name: str
    session: str
    directory: Path
    text: str = ""
    source: str = ""  # why a session starts: startup, resume, clear, compact
    transcript: str = ""
    time: float = 0.0  # Unix seconds
    client: HookClient = field(repr=False, kw_only=True)

    @property
    def event(self) -> Event:
        """The event."""
        return self.client.events[self.event_name]

    def reply(self, context: str = "") -> Mapping[str, Any] | None:
        """Returns the reply that injects a text; None if there is nothing to say."""
        reply: dict[str, Any] = dict(self.event.reply)
        if context and self.client.context:
            *outer, last = self.client.context
            inner: dict[str, Any] = {last: context}
            for key in outer:
                inner = {key: {"hookEventName": self.event_name, **inner}}
            reply |= inner
        return reply or None


_CLAUDE_CODE = {
    "SessionStart": Event(Moment.START),
    "UserPromptSubmit": Event(Moment.PROMPT, "prompt"),
    "Stop": Event(Moment.ANSWER, "last_assistant_message"),
    "PreCompact": Event(Moment.COMPACT),
    "SessionEnd": Event(Moment.END),
}

CLIENTS: Mapping[str, HookClient] = {
    "claude-code": HookClient(
        title="Claude Code", events=_CLAUDE_CODE, transcript="transcript_path"
    ),
    "codex": HookClient(
        title="Codex",
        events={name: event for name, event in _CLAUDE_CODE.items() if name != "SessionEnd"},
    ),
    "gemini": HookClient(
        title="Gemini CLI",
        events={
            "SessionStart": Event(Moment.START),
            "BeforeAgent": Event(Moment.PROMPT, "prompt"),
            "AfterAgent": Event(Moment.ANSWER, "prompt_response"),
            "PreCompress": Event(Moment.COMPACT),
            "SessionEnd": Event(Moment.END),
        },
    ),
    "cursor": HookClient(
        title="Cursor",
        events={
            "sessionStart": Event(Moment.START),
            "beforeSubmitPrompt": Event(Moment.PROMPT, "prompt", {"continue": True}),
            "afterFileEdit": Event(Moment.CHANGE, "file_path"),
            "afterAgentResponse": Event(Moment.ANSWER, "text"),
            "preCompact": Event(Moment.COMPACT),
            "sessionEnd": Event(Moment.END),
        },
        session=("conversation_id", "session_id"),
        directory=("workspace_roots", "cwd"),
        context=(),
        rules=".cursor/rules/toolcrib-memory.mdc",
        rules_head="---\ndescription: What earlier sessions left\nalwaysApply: true\n---\n",
    ),
    "copilot": HookClient(
        title="Copilot CLI",
        events={
            "sessionStart": Event(Moment.START),
            "userPromptSubmitted": Event(Moment.PROMPT, "prompt"),
            "agentStop": Event(Moment.ANSWER),
            "preCompact": Event(Moment.COMPACT),
            "sessionEnd": Event(Moment.END),
        },
        session=("sessionId", "session_id"),
        transcript="transcriptPath",
        context=(),
        rules=".github/instructions/toolcrib-memory.instructions.md",
        rules_head='---\napplyTo: "**"\n---\n',
    ),
    "opencode": HookClient(
        title="opencode",
        events={
            "session.created": Event(Moment.START),
            "chat.message": Event(Moment.PROMPT, "prompt"),
            "session.idle": Event(Moment.ANSWER, "answer"),
            "session.compacting": Event(Moment.COMPACT),
        },
        context=("context",),
    ),
}
"""The clients whose hooks we understand, by their names in `server.clients`."""


def read_call(client_id: str, event_name: str, payload: object, default: Path) -> HookCall:
    """Reads a payload; raises ValueError that says what is wrong with it.

    `default` is the directory of a payload that names none.
    """
    client = CLIENTS.get(client_id)
    if client is None:
        raise ValueError(f"unknown client {client_id!r}; known are {', '.join(CLIENTS)}")
    event = client.events.get(event_name)
    if event is None:
        raise ValueError(
            f"{client_id} has no event {event_name!r} here; known are {', '.join(client.events)}"
        )
    if not isinstance(payload, dict):
        raise TypeError(f"the payload is {type(payload).__name__}, not a JSON object")
    session = next((text for name in client.session if (text := text_of(payload.get(name)))), "")
    if not session:
        raise ValueError(f"the payload names no session ({' or '.join(client.session)})")
    directories = (_first(payload.get(name)) for name in client.directory)
    directory = next(filter(None, directories), "")
    return HookCall(
        client_id,
        event_name,
        session[:256],
        Path(directory) if directory else default,
        text_of(payload.get(event.text)) if event.text else "",
        text_of(payload.get("source")),
        text_of(payload.get(client.transcript)) if client.transcript else "",
        time.time(),
        client=client,
    )


def _first(value: object) -> str:
    """Returns a path, or the first one of a list."""
    return text_of(value[0] if isinstance(value, list) and value else value)
