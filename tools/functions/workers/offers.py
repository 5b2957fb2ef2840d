"""What a file offers, and what is got from it, as server and worker write them to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from tools.core.browsing.prompt import Message as PromptMessage
from tools.core.browsing.prompt import PromptSpec
from tools.core.browsing.resource import ResourceSpec
from tools.core.content import EmbeddedResource, decode_block, encode_block
from tools.core.spec import ToolSpec
from tools.functions.workers.messages import decode_error

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
    *("validate", "canonical", "prepare", "invoke", "describe", "customize"),
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


def encode_contents(contents: tuple[EmbeddedResource, ...]) -> Sent:
    """Returns what was read."""
    return {"contents": [encode_block(each) for each in contents]}


def decode_contents(sent: Sent) -> tuple[EmbeddedResource, ...]:
    """Returns what was read."""
    _check(sent)
    blocks = map(decode_block, sent["contents"])
    return tuple(each for each in blocks if isinstance(each, EmbeddedResource))


def encode_messages(messages: tuple[PromptMessage, ...]) -> Sent:
    """Returns the messages of a prompt."""
    return {"messages": [[each.role, encode_block(each.content)] for each in messages]}


def decode_messages(sent: Sent) -> tuple[PromptMessage, ...]:
    """Returns the messages of a prompt."""
    _check(sent)
    return tuple(PromptMessage(role, decode_block(block)) for role, block in sent["messages"])


def decode_values(sent: Sent) -> list[str]:
    """Returns what completes an argument."""
    _check(sent)
    return [str(each) for each in sent["values"]]


def _check(sent: Sent) -> None:
    if sent.get("is_error"):
        raise decode_error({**sent["structured"], "dismissed": None})
