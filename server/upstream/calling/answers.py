"""Answers: what another server answered to a call, as it is handed on."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import mcp_types as types

from server.mcp.meta import with_forwarded_meta
from tools.core.result import Media, ToolFailure, ToolResult

__all__ = ["result_of"]


def result_of(answer: types.CallToolResult, *, modern: bool) -> ToolResult:
    """The answer as it came, with what is recorded of it.

    Args:
        answer: The answer.
        modern: Whether it is for a client of protocol 2026-07-28.
    """
    text = "\n".join(each.text for each in answer.content if isinstance(each, types.TextContent))
    structured: dict[str, Any]
    if answer.is_error:
        failure = ToolFailure(error_type="upstream_failed", message=text)
        structured = failure.model_dump(mode="json")
    elif isinstance(answer.structured_content, dict):
        structured = answer.structured_content
    else:
        structured = {}
    ours = with_forwarded_meta(answer if modern else _for_older(answer))
    media = tuple(_media(answer.content))
    return ToolResult(structured, text, bool(answer.is_error), media, verbatim=ours)


def _media(content: Sequence[types.ContentBlock]) -> Iterator[Media]:
    """Images and sounds, for where several answers become one; what is none is left out."""
    for block in content:
        if isinstance(block, types.ImageContent | types.AudioContent):
            with suppress(ValueError):
                yield Media(block.type, b64decode(block.data), block.mime_type)


def _for_older(answer: types.CallToolResult) -> types.CallToolResult:
    """The answer for a client until 2025-11-25, to which structured content is an object.

    Any other value is told as text, unless the server did so itself, as it should (2026-07-28,
    Structured Content).
    """
    value = answer.structured_content
    if value is None or isinstance(value, dict):
        return answer
    told = [types.TextContent(text=json.dumps(value, ensure_ascii=False))]
    return answer.model_copy(update={"structured_content": None, "content": answer.content or told})
