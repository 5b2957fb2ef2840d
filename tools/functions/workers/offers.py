"""What a file offers, and what is got from it, as server and worker write them to each other."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from tools.core.browsing.prompt import Message as PromptMessage
from tools.core.browsing.prompt import PromptSpec
from tools.core.browsing.resource import ResourceSpec
from tools.core.content import Attachment, Block, EmbeddedResource, Media, ResourceLink
from tools.core.result import ToolResult
from tools.core.spec import ToolSpec
from tools.functions.workers.messages import decode_error

__all__ = [
    "Key",
    "Offer",
    "decode_contents",
    "decode_messages",
    "decode_offer",
    "decode_result",
    "decode_values",
    "encode_contents",
    "encode_messages",
    "encode_offer",
    "encode_result",
    "key_of",
]

Offer = ToolSpec | ResourceSpec | PromptSpec
"""What a file offers."""

Key = tuple[str, str]
"""The kind of an offer, and its name among those."""

Sent = dict[str, Any]

KINDS: Mapping[str, type[Offer]] = {
    "tool": ToolSpec,
    "resource": ResourceSpec,
    "prompt": PromptSpec,
}
IN_PROCESS = {
    *("validate", "canonical", "invoke", "describe", "customize"),
    *("read", "render", "complete"),
}
"""What of a specification cannot leave its process."""


def key_of(offer: Offer) -> Key:
    """What tells an offer from the others of its file."""
    kind = next(kind for kind, each in KINDS.items() if isinstance(offer, each))
    return kind, offer.uri if isinstance(offer, ResourceSpec) else offer.name


def encode_offer(offer: Offer) -> Sent:
    """Returns what the server needs to know of an offer."""
    values = {each.name: getattr(offer, each.name) for each in fields(offer)}
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in {**values, "kind": key_of(offer)[0]}.items()
        if name not in IN_PROCESS
    }


def decode_offer(sent: Sent, **functions: Callable[..., Any]) -> Offer:
    """Returns the offer as the server has it, with the functions that reach its worker."""
    known = {name: value for name, value in sent.items() if name != "kind"}
    offer: Offer = _adapter(sent["kind"]).validate_python({**known, "validate": dict, **functions})
    return offer


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(KINDS[kind])


def encode_result(result: ToolResult) -> Sent:
    """Returns how a call ended; a failure to read a resource or to get a prompt too."""
    return {
        "structured": result.structured,
        "text": result.text,
        "is_error": result.is_error,
        "media": [_encode_block(each) for each in result.media],
        "blocks": [_encode_block(each) for each in result.blocks],
    }


def decode_result(sent: Sent) -> ToolResult:
    """Returns how a call ended."""
    media, blocks = (tuple(map(_decode_block, sent[name])) for name in ("media", "blocks"))
    return ToolResult(
        sent["structured"],
        sent["text"],
        sent["is_error"],
        tuple(each for each in media if isinstance(each, Attachment)),
        blocks,
    )


def encode_contents(contents: tuple[EmbeddedResource, ...]) -> Sent:
    """Returns what was read."""
    return {"contents": [_encode_block(each) for each in contents]}


def decode_contents(sent: Sent) -> tuple[EmbeddedResource, ...]:
    """Returns what was read.

    Raises:
        ToolError: If it failed.
    """
    _check(sent)
    blocks = map(_decode_block, sent["contents"])
    return tuple(each for each in blocks if isinstance(each, EmbeddedResource))


def encode_messages(messages: tuple[PromptMessage, ...]) -> Sent:
    """Returns the messages of a prompt."""
    return {"messages": [[each.role, _encode_block(each.content)] for each in messages]}


def decode_messages(sent: Sent) -> tuple[PromptMessage, ...]:
    """Returns the messages of a prompt.

    Raises:
        ToolError: If it failed.
    """
    _check(sent)
    return tuple(PromptMessage(role, _decode_block(block)) for role, block in sent["messages"])


def decode_values(sent: Sent) -> list[str]:
    """Returns what completes an argument.

    Raises:
        ToolError: If it failed.
    """
    _check(sent)
    return [str(each) for each in sent["values"]]


def _check(sent: Sent) -> None:
    if sent.get("is_error"):
        raise decode_error({**sent["structured"], "dismissed": None})


def _encode_block(block: Block) -> Sent | str:
    match block:
        case Media():
            data = b64encode(block.data).decode()
            return {"kind": block.kind, "data": data, "mime_type": block.mime_type}
        case EmbeddedResource(uri, bytes(data), mime_type):
            return {"uri": uri, "blob": b64encode(data).decode(), "mime_type": mime_type}
        case EmbeddedResource(uri, data, mime_type):
            return {"uri": uri, "text": data, "mime_type": mime_type}
        case ResourceLink():
            return asdict(block)
    return block


def _decode_block(sent: Sent | str) -> Block:
    match sent:
        case str():
            return sent
        case {"kind": kind, "data": data, "mime_type": mime_type}:
            return Media(kind, b64decode(data), mime_type)
        case {"uri": uri, "blob": blob, "mime_type": mime_type}:
            return EmbeddedResource(uri, b64decode(blob), mime_type)
        case {"uri": uri, "text": text, "mime_type": mime_type}:
            return EmbeddedResource(uri, text, mime_type)
    return ResourceLink(**sent)
