"""Answers: what another server answered to a call, as it is handed on."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types

from tools.core.spec import ToolFailure, ToolResult

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
    handed_on = _own_meta_left_out(answer if modern else _for_older(answer))
    return ToolResult(structured, text, is_error=bool(answer.is_error), verbatim=handed_on)


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


def _own_meta_left_out(answer: types.CallToolResult) -> types.CallToolResult:
    """The answer without the name of its server: to the client it comes from this one."""
    if not answer.meta or types.SERVER_INFO_META_KEY not in answer.meta:
        return answer
    kept = {key: each for key, each in answer.meta.items() if key != types.SERVER_INFO_META_KEY}
    return answer.model_copy(update={"meta": kept or None})
