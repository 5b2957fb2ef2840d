"""Data classes of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

IMPORTANT = 6.0
"""The importance, out of 10, from which something belongs to layer 2."""

IDLE_SECONDS = 1_800.0
"""Seconds without activity after which a session has ended."""

EntryKind = Literal["call", "message"]


class MemoryLayer(IntEnum):
    """The layers of memory, which are unrelated to the hierarchy of events."""

    RECENT = 1
    IMPORTANT = 2
    SUMMARY = 3
    SEMANTIC = 4

    @property
    def label(self) -> str:
        """Its name in tools: "l1" to "l4"."""
        return f"l{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """A call or message to record.

    Attributes:
        session_id: The session it belongs to.
        client: Name of the client.
        kind: Whether it was a call or a message.
        time: Unix seconds when it began.
        action: The tool's name; for a message its channel, such as "prompt:recall".
        target: What it was about: the given path, name, query or address.
        arguments: Its arguments, redacted and truncated.
        outcome: "ok", or the error_type of a failure.
        said: The beginning of its answer, or of the message.
        milliseconds: How long it took.
        importance: Its importance the first time, 0 to 10; earlier successes with the same target
            in the session raise that of a success.
        is_recall: Whether it only searched the stored data, and so adds nothing new.
        context_ids: Contexts that its arguments or answer mention; missing ones are ignored.
        read_ids: Those of them whose text it returned.
    """

    session_id: str
    kind: EntryKind
    time: float
    action: str
    client: str = ""
    target: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outcome: str = "ok"
    said: str = ""
    milliseconds: float = 0.0
    importance: float = 0.0
    is_recall: bool = False
    context_ids: tuple[str, ...] = ()
    read_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A recorded call or message.

    Attributes:
        seq: Its number; later entries have higher numbers.
        session_id: The session it belongs to.
        client: Name of the client.
        device_id: The device.
        agent_id: The agent.
        kind: Whether it was a call or a message.
        time: Unix seconds when it began.
        action: As in NewEntry.
        target: As in NewEntry; empty if its content was deleted.
        arguments: As in NewEntry; likewise.
        outcome: "ok", or the error_type of a failure.
        said: As in NewEntry; likewise.
        milliseconds: How long it took.
        importance: 0 to 10.
        is_recall: As in NewEntry.
    """

    seq: int
    session_id: str
    client: str
    device_id: str
    agent_id: str
    kind: EntryKind
    time: float
    action: str
    target: str
    arguments: Mapping[str, Any]
    outcome: str
    said: str
    milliseconds: float
    importance: float
    is_recall: bool

    @property
    def tells(self) -> bool:
        """Whether it still has content besides its action, which may have been deleted."""
        return bool(self.target or self.arguments or self.said)

    @property
    def text(self) -> str:
        """The text it is found by: action, target, arguments and answer."""
        given = " ".join(f"{key}={value}" for key, value in self.arguments.items())
        return "\n".join(filter(None, (f"{self.action} {self.target}".strip(), given, self.said)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session of one client.

    Attributes:
        id: Its id.
        client: Name of the client.
        device_id: The device.
        agent_id: The agent.
        start_time: Unix seconds when its first entry began.
        last_time: Unix seconds when its last entry began.
        entries: The number of its entries.
    """

    id: str
    client: str
    device_id: str
    agent_id: str
    start_time: float
    last_time: float
    entries: int
