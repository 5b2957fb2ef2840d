"""Data classes of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

IMPORTANT = 6.0  # the importance, out of 10, from which something belongs to layer 2
IDLE_SECONDS = 1_800.0  # seconds without activity after which a session has ended

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
    """A call or message to record."""

    session_id: str
    kind: EntryKind  # whether it was a call or a message
    time: float  # Unix seconds when it began
    action: str  # the tool's name; for a message its channel, such as "prompt:recall"
    client: str = ""
    project: str = ""  # the directory of the session's project; empty if unknown
    target: str = ""  # what it was about: the given path, name, query or address
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outcome: str = "ok"  # "ok", or the error_type of a failure
    said: str = ""
    milliseconds: float = 0.0
    importance: float = 0.0  # 0 to 10; earlier successes with the target raise that of a success
    is_recall: bool = False  # whether it only searched the stored data, and so adds nothing new
    context_ids: tuple[str, ...] = ()  # mentioned contexts; missing ones are ignored
    read_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A recorded call or message."""

    seq: int  # its number; later entries have higher numbers
    session_id: str
    client: str
    device_id: str
    agent_id: str
    kind: EntryKind  # whether it was a call or a message
    time: float  # Unix seconds when it began
    action: str
    target: str  # as in NewEntry; empty if its content was deleted
    arguments: Mapping[str, Any]  # as in NewEntry; likewise
    outcome: str  # "ok", or the error_type of a failure
    said: str  # as in NewEntry; likewise
    milliseconds: float
    importance: float  # 0 to 10
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
    """A session of one client."""

    id: str
    client: str
    project: str  # its directory; empty if unknown
    device_id: str
    agent_id: str
    start_time: float  # Unix seconds when its first entry began
    last_time: float  # Unix seconds when its last entry began
    entries: int
