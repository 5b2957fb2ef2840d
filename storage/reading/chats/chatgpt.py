"""Reads ChatGPT conversations from its data export.

There is no published schema; this follows the exports of 2023 to 2026. A conversation is a tree of
messages (`mapping`), because questions can be edited and answers regenerated; `current_node` is the
end of the branch last shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from storage.reading.chats.conversation import (
    BRANCHES,
    FILES,
    HIDDEN,
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

_SPEAKERS = {"user": "User", "assistant": "ChatGPT"}
_INSTRUCTIONS = {"user_editable_context", "model_editable_context"}
_HIDDEN_MARK = "is_visually_hidden_from_conversation"
_THOUGHTS = {"thoughts", "reasoning_recap"}
_CITATION = re.compile("\ue200[^\ue201]{0,2000}\ue201|【\\d{1,4}†[^】\n]{0,200}】")


def read_chatgpt(value: Mapping[str, Any]) -> Conversation | None:
    """Reads one element of `conversations.json`; None if it is not of this kind."""
    nodes = value.get("mapping")
    if not isinstance(nodes, Mapping):
        return None
    left_out: Counter[str] = Counter()
    messages = _current_branch(nodes, get(value, "current_node", str), left_out)
    title, time = title_of(value.get("title")), seconds(value.get("create_time"))
    model = text_of(value.get("default_model_slug"))
    turns = tuple(turn for message in messages if (turn := _turn(message, left_out)))
    return Conversation(
        source="chatgpt",
        id=identifier(
            value.get("conversation_id"), value.get("id"), title=title, time=time, turns=turns
        ),
        title=title,
        time=time,
        turns=turns,
        metadata={"model": model} if model else {},
        left_out=left_out,
    )


def _current_branch(
    nodes: Mapping[str, Any], current: str, left_out: Counter[str]
) -> list[dict[str, Any]]:
    parents = {name: get(node, "parent", str) for name, node in nodes.items()}
    if current not in nodes:
        current = _newest_leaf(nodes, parents)
    messages = [get(nodes[name], "message", dict) for name in branch(current, parents)]
    everything = sum(1 for node in nodes.values() if get(node, "message", dict))
    shown = [message for message in messages if message]
    left_out[BRANCHES] += everything - len(shown)
    return shown


def _newest_leaf(nodes: Mapping[str, Any], parents: Mapping[str, str]) -> str:
    leaves = nodes.keys() - set(parents.values()) or nodes.keys()

    def order(name: str) -> tuple[float, str]:
        return seconds(get(nodes[name], "message", dict).get("create_time")) or 0.0, name

    return max(leaves, key=order, default="")


def _turn(message: Mapping[str, Any], left_out: Counter[str]) -> Utterance | None:
    role = get(get(message, "author", dict), "role", str)
    content = get(message, "content", dict)
    kind = get(content, "content_type", str)
    about = get(message, "metadata", dict)
    if role == "system" or kind in _INSTRUCTIONS or about.get(_HIDDEN_MARK) is True:
        left_out[HIDDEN] += 1
        return None
    if kind in _THOUGHTS:
        left_out[REASONING] += 1
        return None
    if role == "tool" or get(message, "recipient", str) not in {"", "all"}:
        left_out[TOOLS] += 1
        return None
    text, files = _text(kind, content)
    left_out[FILES] += max(files, len(get(about, "attachments", list)))
    if not text:
        return None
    speaker = _SPEAKERS.get(role) or role.capitalize() or "Unknown"
    return Utterance(speaker, seconds(message.get("create_time")), text)


def _text(kind: str, content: Mapping[str, Any]) -> tuple[str, int]:
    """Returns a message's text, and the number of its pictures and files."""
    if kind == "code":
        language = get(content, "language", str).replace("unknown", "")
        code = text_of(content.get("text")) or _join_parts(get(content, "parts", list))[0]
        return (f"```{language}\n{code}\n```" if code else ""), 0
    if isinstance(content.get("parts"), list):
        return _join_parts(content["parts"])
    return text_of(content.get("text")) or text_of(content.get("result")), 0


def _join_parts(parts: list[Any]) -> tuple[str, int]:
    """Joins the texts of the parts; returns also the number of parts without text."""
    texts = [text_of(get(part, "text", str) if isinstance(part, dict) else part) for part in parts]
    silent = sum(
        1 for part, text in zip(parts, texts, strict=True) if isinstance(part, dict) and not text
    )
    return text_of(_CITATION.sub("", "\n\n".join(filter(None, texts)))), silent
