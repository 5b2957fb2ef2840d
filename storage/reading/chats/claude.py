"""Reads Claude conversations from its data export.

There is no published schema; this follows the exports of 2024 to 2026. Messages are a chronological
list. If they name parents they form a tree: the last one ends the branch that is shown, unless the
conversation names another leaf.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from storage.reading.chats.conversation import (
    BRANCHES,
    FILES,
    OTHER,
    REASONING,
    TOOLS,
    Conversation,
    Utterance,
    branch,
    get,
    identifier,
    seconds,
    text_of,
    title_of,
)

_SPEAKERS = {"human": "User", "assistant": "Claude"}
_BLOCKS = {
    "thinking": REASONING,
    "redacted_thinking": REASONING,
    "tool_use": TOOLS,
    "tool_result": TOOLS,
    "image": FILES,
}
_NO_PARENT = "00000000-0000-4000-8000-000000000000"
_PLACEHOLDER = re.compile(r"```\s*This block is not supported on your current device yet\.\s*```")


def read_claude(value: Mapping[str, Any]) -> Conversation | None:
    """Reads one element of `conversations.json`; None if it is not of this kind."""
    if not isinstance(value.get("chat_messages"), list):
        return None
    left_out: Counter[str] = Counter()
    messages = [message for message in value["chat_messages"] if isinstance(message, dict)]
    shown = _current_branch(messages, get(value, "current_leaf_message_uuid", str))
    left_out[BRANCHES] += len(messages) - len(shown)
    title, time = title_of(value.get("name")), seconds(value.get("created_at"))
    model = text_of(value.get("model"))
    turns = tuple(turn for message in shown if (turn := _turn(message, left_out)))
    return Conversation(
        source="claude",
        id=identifier(value.get("uuid"), title=title, time=time, turns=turns),
        title=title,
        time=time,
        turns=turns,
        summary=text_of(value.get("summary")),
        metadata={"model": model} if model else {},
        left_out=left_out,
    )


def _current_branch(messages: list[dict[str, Any]], leaf: str) -> list[dict[str, Any]]:
    """Returns the branch that is shown; all messages if their parents form no complete branch."""
    named = {get(message, "uuid", str): message for message in messages}
    parents = {name: get(message, "parent_message_uuid", str) for name, message in named.items()}
    way = branch(leaf if leaf in named else next(reversed(named), ""), parents)
    if "" in named or not way or parents[way[0]] != _NO_PARENT:
        return messages
    return [named[name] for name in way]


def _turn(message: Mapping[str, Any], left_out: Counter[str]) -> Utterance | None:
    texts = []
    for block in get(message, "content", list):
        kind = get(block, "type", str)
        if kind == "text":
            texts.append(text_of(block.get("text")))
        else:
            left_out[_BLOCKS.get(kind, OTHER)] += 1
    if not any(texts):
        texts.append(text_of(_PLACEHOLDER.sub("", text_of(message.get("text")))))
    texts += _attachment_texts(message, left_out)
    text = "\n\n".join(filter(None, texts))
    if not text:
        return None
    sender = get(message, "sender", str)
    speaker = _SPEAKERS.get(sender) or sender.capitalize() or "Unknown"
    return Utterance(speaker, seconds(message.get("created_at")), text)


def _attachment_texts(message: Mapping[str, Any], left_out: Counter[str]) -> list[str]:
    """Returns the texts of attachments, which include long pastes; counts those without text."""
    texts = []
    for attachment in get(message, "attachments", list):
        text = text_of(get(attachment, "extracted_content", str))
        name = title_of(get(attachment, "file_name", str))
        left_out[FILES] += not text
        texts.append(f"{name}:\n\n{text}" if name and text else text)
    left_out[FILES] += max(len(get(message, key, list)) for key in ("files", "files_v2"))
    return texts
