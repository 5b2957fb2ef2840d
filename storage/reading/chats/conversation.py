"""A conversation, whichever program it comes from, and what its readers share."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar

from storage.models import ContextType, NewContext, Turn

BRANCHES = "messages of other branches"
FILES = "images and files"
HIDDEN = "hidden messages"
OTHER = "other content"
REASONING = "reasoning"
TOOLS = "tool calls and results"

_MAX_TITLE = 512
_MAX_ID = 1024
_FIRST_WORDS = 60
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()
_MAX_NUMBER = 1e15
_SURROGATES_AND_NUL = re.compile("[\x00\ud800-\udfff]")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one side said at once.

    Attributes:
        speaker: Who.
        time: Unix seconds; None where it is not known.
        text: What.
    """

    speaker: str
    time: float | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation.

    Attributes:
        source: Where it was: "chatgpt", "claude" or "chat".
        id: Its name there.
        title: Its title, or its first words.
        time: Unix seconds of its start; None where it is not known.
        turns: What was said, in order; what has no text is left out.
        summary: What it was about, where its source says so.
        metadata: What else is worth knowing.
        left_out: How much of it is not in the turns, by reason.
    """

    source: str
    id: str
    title: str
    time: float | None
    turns: tuple[Utterance, ...]
    summary: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def to_context(self) -> NewContext:
        """The conversation as a document: one turn after the other, unchanged if nothing is new."""
        times = [turn.time for turn in self.turns if turn.time is not None]
        return NewContext(
            context_type=ContextType.DOCUMENT,
            raw_type=self.source,
            raw_id=self.id,
            title=self.title or _first_words(self.turns),
            turns=tuple(Turn(_heading(turn), turn.text) for turn in self.turns),
            summary=self.summary,
            event_time=min(times, default=None) if self.time is None else self.time,
            metadata=self.metadata,
            media_type="application/json",
            sha256=_digest([self.title, self.summary, *self.turns]),
        )


def get(value: object, key: str, kind: type[_T]) -> _T:
    """What stands under a key, or nothing of that kind if anything else does."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, kind) else kind()


def text_of(value: object) -> str:
    """A text without what cannot be stored, or nothing."""
    if not isinstance(value, str):
        return ""
    return _SURROGATES_AND_NUL.sub("", value.replace("\r\n", "\n")).strip()


def title_of(value: object) -> str:
    """A text on one line that is not too long."""
    return " ".join(text_of(value).split())[:_MAX_TITLE]


def seconds(value: object) -> float | None:
    """Unix seconds from a number (seconds or milliseconds) or an ISO 8601 text, UTC by default."""
    match value:
        case str():
            try:
                moment = datetime.fromisoformat(value.strip())
            except ValueError:
                return None
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return _within(moment.timestamp())
        case bool():
            return None
        case int() | float():
            return _within(value / 1000 if _LAST_MOMENT < value < _MAX_NUMBER else value)
        case _:
            return None


def _within(moment: float) -> float | None:
    """The moment, if a calendar has it; exports write 0 and less where they know none."""
    return float(moment) if 0 < moment <= _LAST_MOMENT else None


def identifier(
    *candidates: object, title: str, time: float | None, turns: Sequence[Utterance]
) -> str:
    """The first candidate that is a name, else one made from what no other conversation shares.

    That is the title, the start and the first turn, which stay when it goes on; without any time
    it is all that was said: to keep a conversation twice is better than to lose another one.
    """
    for candidate in candidates:
        if isinstance(candidate, str | int) and not isinstance(candidate, bool):
            name = text_of(str(candidate))[:_MAX_ID]
            if name:
                return name
    timed = time is not None or any(turn.time is not None for turn in turns[:1])
    return _digest([title, time, *(turns[:1] if timed else turns)])[:32]


def branch(leaf: str, parents: Mapping[str, str]) -> list[str]:
    """The way to a leaf of the tree that a conversation is where something was said anew.

    Args:
        leaf: The last message.
        parents: Each message's predecessor, which need not be there.

    Returns:
        The messages from the first to the leaf.
    """
    way: dict[str, None] = {}
    at = leaf
    while at in parents and at not in way:
        way[at] = None
        at = parents[at]
    return list(reversed(way))


def _digest(parts: Iterable[str | float | Utterance | None]) -> str:
    plain = [astuple(part) if isinstance(part, Utterance) else part for part in parts]
    return sha256(json.dumps(plain).encode()).hexdigest()


def _heading(turn: Utterance) -> str:
    if turn.time is None:
        return turn.speaker
    moment = datetime.fromtimestamp(turn.time, UTC)
    return f"{turn.speaker}, {moment:%Y-%m-%dT%H:%M:%SZ}"


def _first_words(turns: tuple[Utterance, ...]) -> str:
    words = turns[0].text[:1000] if turns else ""
    return textwrap.shorten(words, _FIRST_WORDS, placeholder=" …") or "Conversation"


def read_plain(value: Mapping[str, Any]) -> Conversation | None:
    """Reads a conversation in the form that any other program's can be brought into.

    `{"conversation": …, "title": …, "time": …, "turns": [{"speaker": …, "time": …, "text": …}]}`;
    only `turns` is needed. Times are Unix seconds or ISO 8601. None if it is not of this kind.
    """
    turns = value.get("turns")
    if not isinstance(turns, list) or not any(_is_turn(turn) for turn in turns):
        return None
    title, time = title_of(value.get("title")), seconds(value.get("time"))
    said = tuple(
        Utterance(title_of(turn.get("speaker")) or "Unknown", seconds(turn.get("time")), text)
        for turn in turns
        if isinstance(turn, dict) and (text := text_of(turn.get("text")))
    )
    return Conversation(
        source="chat",
        id=identifier(value.get("conversation"), title=title, time=time, turns=said),
        title=title,
        time=time,
        turns=said,
    )


def _is_turn(turn: object) -> bool:
    return isinstance(turn, dict) and "speaker" in turn and "text" in turn
