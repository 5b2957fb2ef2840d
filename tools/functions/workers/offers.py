"""Encodes offers and their results for exchange between server and worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from tools.core.content import EmbeddedResource, decode_block, encode_block
from tools.core.offered import Message as PromptMessage
from tools.core.offered import PromptSpec, ResourceSpec
from tools.core.result import decode_result
from tools.core.spec import ToolSpec
from tools.functions.workers.messages import decode_error

Offer = ToolSpec | ResourceSpec | PromptSpec  # anything that a file can offer
Key = tuple[str, str]  # the kind of an offer, and its name within that kind

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
"""Fields of a specification that cannot leave its process."""


def key_of(offer: Offer) -> Key:
    """Returns what identifies an offer within its file."""
    kind = next(kind for kind, each in KINDS.items() if isinstance(offer, each))
    return kind, offer.uri if isinstance(offer, ResourceSpec) else offer.name


def encode_offer(offer: Offer) -> Sent:
    """Encodes what the server needs to know about an offer."""
    values = {each.name: getattr(offer, each.name) for each in fields(offer)}
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in {**values, "kind": key_of(offer)[0]}.items()
        if name not in IN_PROCESS
    }


def decode_offer(sent: Sent, **functions: Callable[..., Any]) -> Offer:
    """Decodes an offer for the server, with the functions that call its worker."""
    known = {name: value for name, value in sent.items() if name != "kind"}
    offer: Offer = _adapter(sent["kind"]).validate_python({**known, "validate": dict, **functions})
    return offer


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(KINDS[kind])


def encode_contents(contents: tuple[EmbeddedResource, ...]) -> Sent:
    """Encodes resource contents."""
    return {"contents": [encode_block(each) for each in contents]}


def encode_messages(messages: tuple[PromptMessage, ...]) -> Sent:
    """Encodes the messages of a prompt."""
    return {"messages": [[each.role, encode_block(each.content)] for each in messages]}


def decode_answer(kind: str, sent: Sent) -> object:
    """Decodes what using an offer of a kind returned; raises its failure unless it is a tool."""
    if kind == "tool":
        return decode_result(sent)
    _check(sent)
    if kind == "resource":
        blocks = map(decode_block, sent["contents"])
        return tuple(each for each in blocks if isinstance(each, EmbeddedResource))
    return tuple(PromptMessage(role, decode_block(block)) for role, block in sent["messages"])


def decode_values(sent: Sent) -> list[str]:
    """Decodes the completions of an argument."""
    _check(sent)
    return [str(each) for each in sent["values"]]


def _check(sent: Sent) -> None:
    if sent.get("is_error"):
        raise decode_error({**sent["structured"], "dismissed": None})
