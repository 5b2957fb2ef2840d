"""Conversations from any program, and the code their readers share."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar

from storage.models import ContextType, NewContext, Turn, seconds_of

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
    """A turn of one speaker."""

    speaker: str
    time: float | None  # Unix seconds; None if unknown
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation."""

    source: str  # its program: "chatgpt", "claude" or "chat"
    id: str
    title: str  # its title, or its first words
    time: float | None  # Unix seconds of its start; None if unknown
    turns: tuple[Utterance, ...]  # the turns in order, without those that have no text
    summary: str = ""  # a summary, if the source has one
    metadata: Mapping[str, Any] = field(default_factory=dict)  # other useful values
    # How much is not in the turns, by reason.
    left_out: Mapping[str, int] = field(default_factory=dict)

    def to_context(self) -> NewContext:
        """Converts it to a document, unchanged if there are no new turns."""
        times = [turn.time for turn in self.turns if turn.time is not None]
        first = self.turns[0].text[:1000] if self.turns else ""
        words = textwrap.shorten(first, _FIRST_WORDS, placeholder=" …") or "Conversation"
        return NewContext(
            context_type=ContextType.DOCUMENT,
            raw_type=self.source,
            raw_id=self.id,
            title=self.title or words,
            turns=tuple(Turn(_heading(turn), turn.text) for turn in self.turns),
            summary=self.summary,
            event_time=min(times, default=None) if self.time is None else self.time,
            metadata=self.metadata,
            media_type="application/json",
            sha256=_digest([self.title, self.summary, *self.turns]),
        )


def get(value: object, key: str, kind: type[_T]) -> _T:
    """Returns the value under a key, or an empty one if its type differs."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, kind) else kind()


def text_of(value: object) -> str:
    """Returns a text without characters that cannot be stored; empty for other types."""
    if not isinstance(value, str):
        return ""
    return _SURROGATES_AND_NUL.sub("", value.replace("\r\n", "\n")).strip()


def joined_text(content: object) -> str:
    """Returns the texts of a message, which may be a text, a part, or a list of them."""
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return text_of("\n".join(each for each in texts if isinstance(each, str)))


def title_of(value: object) -> str:
    """Returns a text on one line, truncated."""
    return " ".join(text_of(value).split())[:_MAX_TITLE]


def seconds(value: object) -> float | None:
    """Parses a number (s or ms) or an ISO 8601 text, UTC by default, to Unix seconds."""
    match value:
        case str():
            try:
                return _within(seconds_of(value.strip(), UTC))
            except (ValueError, OverflowError):
                return None
        case bool():
            return None
        case int() | float():
            return _within(value / 1000 if _LAST_MOMENT < value < _MAX_NUMBER else value)
        case _:
            return None


def _within(moment: float) -> float | None:
    """Returns a moment within the calendar; exports write 0 and less for unknown times."""
    return float(moment) if 0 < moment <= _LAST_MOMENT else None


def identifier(
    *candidates: object, title: str, time: float | None, turns: Sequence[Utterance]
) -> str:
    """Returns the first candidate that is a valid id, else a hash that identifies the conversation.

    The hash is of the title, the start and the first turn, which stay the same when it continues.
    Without any time it is of all turns: storing a conversation twice is better than losing another.
    """
    for candidate in candidates:
        if isinstance(candidate, str | int) and not isinstance(candidate, bool):
            name = text_of(str(candidate))[:_MAX_ID]
            if name:
                return name
    timed = time is not None or any(turn.time is not None for turn in turns[:1])
    return _digest([title, time, *(turns[:1] if timed else turns)])[:32]


def branch(leaf: str, parents: Mapping[str, str]) -> list[str]:
    """Returns the path to a leaf in the tree of messages, which branches at edits and retries."""
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


def read_plain(value: Mapping[str, Any]) -> Conversation | None:
    """Reads a conversation in the generic format, to which other programs' can be converted.

    `{"conversation": …, "title": …, "time": …, "turns": [{"speaker": …, "time": …, "text": …}]}`;
    only `turns` is required. Times are Unix seconds or ISO 8601. Returns None for other formats.
    """
    turns = value.get("turns")
    if not isinstance(turns, list) or not any(
        isinstance(turn, dict) and {"speaker", "text"} <= turn.keys() for turn in turns
    ):
        return None
    title, time = title_of(value.get("title")), seconds(value.get("time"))
    utterances = tuple(
        Utterance(title_of(turn.get("speaker")) or "Unknown", seconds(turn.get("time")), text)
        for turn in turns
        if isinstance(turn, dict) and (text := text_of(turn.get("text")))
    )
    return Conversation(
        source="chat",
        id=identifier(value.get("conversation"), title=title, time=time, turns=utterances),
        title=title,
        time=time,
        turns=utterances,
    )
