"""Memory as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

IMPORTANT = 6.0
"""Importance, of 10, from which something belongs to layer 2."""

IDLE_SECONDS = 1_800.0
"""How long nothing happens in a session that has ended."""

EntryKind = Literal["call", "message"]


class MemoryLayer(IntEnum):
    """The layers of memory; not to be mixed up with the hierarchy of events."""

    RECENT = 1
    IMPORTANT = 2
    SUMMARY = 3
    SEMANTIC = 4

    @property
    def label(self) -> str:
        """As tools name it: "l1" to "l4"."""
        return f"l{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """Something that was called or said.

    Attributes:
        session_id: The session it belongs to.
        client: Name of the client.
        kind: Whether it was a call or a message.
        time: Unix seconds when it began.
        action: The tool's name; of a message what it was said through, such as "prompt:recall".
        target: What it was about: the path, name, query or address that it was given.
        arguments: What it was given, redacted and cut.
        outcome: "ok", or the error_type of a failure.
        said: How its answer begins; of a message how it begins itself.
        milliseconds: How long it took.
        importance: How much it matters, 0 to 10, the first time; earlier successes with the same
            target in its session raise that of a success.
        is_recall: Whether it only looked for what is stored, and so tells nothing new.
        context_ids: The contexts that its arguments or answer tell of; those that are not there do
            not count.
        read_ids: Those of them whose text it brought back.
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
        seq: Which one; later ones have higher numbers.
        session_id: The session it belongs to.
        client: Name of the client.
        device_id: The device.
        agent_id: The agent.
        kind: Whether it was a call or a message.
        time: Unix seconds when it began.
        action: As in NewEntry.
        target: As in NewEntry; empty where what it told of was forgotten.
        arguments: As in NewEntry; the same.
        outcome: "ok", or the error_type of a failure.
        said: As in NewEntry; the same.
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
        """Whether it says more than what was done: what it told of may have been forgotten."""
        return bool(self.target or self.arguments or self.said)

    @property
    def text(self) -> str:
        """What it is found by: what was done, with what, and what came of it."""
        given = " ".join(f"{key}={value}" for key, value in self.arguments.items())
        return "\n".join(filter(None, (f"{self.action} {self.target}".strip(), given, self.said)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation of one client.

    Attributes:
        id: Which one.
        client: Name of the client.
        device_id: The device.
        agent_id: The agent.
        start_time: Unix seconds when its first entry began.
        last_time: Unix seconds when its last entry began.
        entries: How many entries it has.
    """

    id: str
    client: str
    device_id: str
    agent_id: str
    start_time: float
    last_time: float
    entries: int
