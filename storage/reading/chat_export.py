"""Chat exports: reads the conversations of a downloaded file, one at a time.

The file is JSON (a list, or one value per line), or a zip archive of such files. Exports can exceed
a gigabyte, so only one conversation is in memory, and everything before a damaged part is read.

ChatGPT and Claude publish no schemas; this follows their exports of 2023 to 2026. A conversation of
ChatGPT is a tree of messages (`mapping`), because questions can be edited and answers regenerated;
`current_node` is the end of the branch last shown. Claude's messages are a chronological list. If
they name parents they form a tree: the last one ends the branch that is shown, unless the
conversation names another leaf.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from pathlib import PurePath
from typing import IO, Any, TextIO

from storage.errors import UnreadableDocumentError
from storage.reading.conversations import (
    BRANCHES,
    FILES,
    HIDDEN,
    OTHER,
    REASONING,
    TOOLS,
    Conversation,
    Utterance,
    branch,
    get,
    identifier,
    read_plain,
    seconds,
    text_of,
    title_of,
)

_CHATGPT_SPEAKERS = {"user": "User", "assistant": "ChatGPT"}
_INSTRUCTIONS = {"user_editable_context", "model_editable_context"}
_HIDDEN_MARK = "is_visually_hidden_from_conversation"
_THOUGHTS = {"thoughts", "reasoning_recap"}
_CITATION = re.compile("\ue200[^\ue201]{0,2000}\ue201|【\\d{1,4}†[^】\n]{0,200}】")
MAX_CONVERSATION_CHARS = 64_000_000  # maximum characters of JSON of one conversation
MAX_UNPACKED_BYTES = 8_000_000_000  # maximum bytes of JSON that an archive may unpack to
# The suffixes of files that may be exports.
SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".zip"})
_CHUNK_CHARS = 1 << 20
_BETWEEN = re.compile(r"[\s,\[\]]*")
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # others may unpack without limit


def read_chatgpt(value: Mapping[str, Any]) -> Conversation | None:
    """Reads one element of `conversations.json`; None if it is not of this kind."""
    nodes = value.get("mapping")
    if not isinstance(nodes, Mapping):
        return None
    left_out: Counter[str] = Counter()
    messages = _chatgpt_branch(nodes, get(value, "current_node", str), left_out)
    title, time = title_of(value.get("title")), seconds(value.get("create_time"))
    model = text_of(value.get("default_model_slug"))
    turns = tuple(turn for message in messages if (turn := _chatgpt_turn(message, left_out)))
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


def _chatgpt_branch(
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


def _chatgpt_turn(message: Mapping[str, Any], left_out: Counter[str]) -> Utterance | None:
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
    speaker = _CHATGPT_SPEAKERS.get(role) or role.capitalize() or "Unknown"
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


_CLAUDE_SPEAKERS = {"human": "User", "assistant": "Claude"}
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
    shown = _claude_branch(messages, get(value, "current_leaf_message_uuid", str))
    left_out[BRANCHES] += len(messages) - len(shown)
    title, time = title_of(value.get("name")), seconds(value.get("created_at"))
    model = text_of(value.get("model"))
    turns = tuple(turn for message in shown if (turn := _claude_turn(message, left_out)))
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


def _claude_branch(messages: list[dict[str, Any]], leaf: str) -> list[dict[str, Any]]:
    """Returns the branch that is shown; all messages if their parents form no complete branch."""
    named = {get(message, "uuid", str): message for message in messages}
    parents = {name: get(message, "parent_message_uuid", str) for name, message in named.items()}
    way = branch(leaf if leaf in named else next(reversed(named), ""), parents)
    if "" in named or not way or parents[way[0]] != _NO_PARENT:
        return messages
    return [named[name] for name in way]


def _claude_turn(message: Mapping[str, Any], left_out: Counter[str]) -> Utterance | None:
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
    speaker = _CLAUDE_SPEAKERS.get(sender) or sender.capitalize() or "Unknown"
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


def read_export(
    file: IO[bytes], *, name: str, max_bytes: int = MAX_UNPACKED_BYTES
) -> Generator[Conversation | None, None, None]:
    """Reads the conversations in a file; yields nothing if it is not a chat export.

    It yields None for a value that is not a conversation. The file is read lazily and then closed;
    its name's suffix distinguishes an archive from JSON. What was read before an
    UnreadableDocumentError is valid.
    """
    if PurePath(name).suffix.lower() != ".zip":
        yield from _conversations(file, name)
        return
    try:
        with zipfile.ZipFile(file) as archive:
            for member in _members(archive, name, max_bytes):
                with archive.open(member) as stream:
                    yield from _conversations(stream, f"{name}: {member.filename}")
    except UnreadableDocumentError:
        raise
    except Exception as error:  # zipfile raises many types for damaged files
        raise _damage_error(name, str(error) or type(error).__name__) from error


def _members(archive: zipfile.ZipFile, name: str, max_bytes: int) -> list[zipfile.ZipInfo]:
    """Returns an archive's files with possible conversations; names are never used as paths."""
    members = [
        member
        for member in archive.infolist()
        if PurePath(member.filename).suffix.lower() in SUFFIXES - {".zip"}
        and not member.is_dir()
        and member.compress_type in _METHODS
    ]
    size = sum(member.file_size for member in members)  # no more than this is unpacked
    if size > max_bytes:
        raise UnreadableDocumentError(
            f"{name!r} cannot be read. Its JSON unpacks to too much: {size:,} bytes; at most"
            f" {max_bytes:,} are read.",
            suggestions=("Unpack it, and import the files that hold conversations.",),
        )
    return sorted(members, key=lambda member: member.filename)


def _conversations(stream: IO[bytes], name: str) -> Iterator[Conversation | None]:
    readers, begun = (read_chatgpt, read_claude, read_plain), False
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace") as text:
        try:
            for value in _values(text):
                read = (reader(value) for reader in readers if isinstance(value, dict))
                found = next((each for each in read if each is not None), None)
                if found is None and not begun:
                    return
                begun = True
                yield found
        except (ValueError, RecursionError) as error:
            if begun:
                raise _damage_error(name, str(error)) from error


def _values(text: TextIO) -> Iterator[object]:
    """Yields the values of a JSON list, or of a text with one value after another."""
    decoder = json.JSONDecoder()
    buffer, at = "", 0
    while True:
        at = _BETWEEN.match(buffer, at).end()  # type: ignore[union-attr]  # it matches nothing too
        try:
            value, end = decoder.raw_decode(buffer, at)
        except ValueError as error:
            held = len(buffer) - at
            if held > MAX_CONVERSATION_CHARS:
                raise ValueError(
                    f"a value has more than {MAX_CONVERSATION_CHARS:,} characters"
                ) from error
            more = text.read(max(_CHUNK_CHARS, held))  # doubling keeps it linear
            if not more:
                if held:
                    raise
                return
            buffer, at = buffer[at:] + more, 0
        else:
            yield value
            at = end


def _damage_error(name: str, reason: str) -> UnreadableDocumentError:
    return UnreadableDocumentError(
        f"{name!r} cannot be read to its end. It is damaged: {reason[:200]}",
        suggestions=("Download the export again; everything before the damage was read.",),
    )
