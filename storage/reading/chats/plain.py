"""Conversations in the plain form, which any other program's can be brought into.

`{"conversation": …, "title": …, "time": …, "turns": [{"speaker": …, "time": …, "text": …}]}`; only
`turns` is needed. Times are Unix seconds or ISO 8601.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storage.reading.chats.conversation import (
    Conversation,
    Utterance,
    identifier,
    seconds,
    text_of,
    title_of,
)

__all__ = ["read_plain"]


def read_plain(value: Mapping[str, Any]) -> Conversation | None:
    """Reads one conversation; None if it is not of this kind."""
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
