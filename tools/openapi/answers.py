"""Converts an API's responses to results and failures of its tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import anyio.to_thread

from storage.index.bounded import clip
from tools.core.errors import (
    ConflictError,
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
    ToolError,
    UpstreamError,
)
from tools.core.result import ToolResult
from tools.sandbox.web.reading import read_body
from tools.sandbox.web.response import WebResponse

_MISSING = object()
_EVERY = "*"

_Tree = dict[str, "_Tree"]


def selected(value: Any, paths: Sequence[str]) -> Any:  # noqa: ANN401  # any JSON value
    """Returns the named parts of a JSON value, or None if it has none of them.

    Paths are keys joined by dots; * matches every key or item. A key of a list's items may directly
    follow the list: `items.name` is `items.*.name`.
    """
    tree: _Tree = {}
    for path in paths:
        node = tree
        for key in path.split("."):
            node = node.setdefault(key, {})
    found = _part(value, tree)
    return None if found is _MISSING else found


def _part(value: Any, tree: _Tree | None) -> Any:  # noqa: ANN401  # any JSON value
    """Returns the part of a value that a tree selects: all if it is empty, nothing if None."""
    if tree is None:
        return _MISSING
    if not tree:
        return value
    if isinstance(value, Mapping):
        return _keys(value, tree)
    if isinstance(value, list):
        return _items(value, tree)
    return _MISSING


def _keys(value: Mapping[str, Any], tree: _Tree) -> Any:  # noqa: ANN401  # any JSON value
    every = tree.get(_EVERY)
    parts = {key: _part(each, _both(tree.get(key), every)) for key, each in value.items()}
    return {key: part for key, part in parts.items() if part is not _MISSING} or _MISSING


def _items(value: Sequence[Any], tree: _Tree) -> Any:  # noqa: ANN401  # any JSON value
    keys = {key: each for key, each in tree.items() if key != _EVERY and not key.isdecimal()}
    every = _both(tree.get(_EVERY), keys or None)
    parts = [_part(each, _both(tree.get(str(at)), every)) for at, each in enumerate(value)]
    return [part for part in parts if part is not _MISSING] or _MISSING


def _both(first: _Tree | None, second: _Tree | None) -> _Tree | None:
    if first is None or second is None:
        return second if first is None else first
    if not first or not second:
        return {}
    made = {**first, **second}
    for key in first.keys() & second.keys():
        made[key] = _both(first[key], second[key]) or {}
    return made


MOST_SAID = 2_000  # maximum characters of a failure's body that are shown
LONGEST_HEADER = 1_000
MOST_KEYS = 20

TELLING = ("location", "link", "etag", "retry-after", "x-total-count")
"""Headers that help to decide what to do next."""

_SECOND_TIME = "Change the request, or ask the user: the API has refused it as it is."
_FAILURES: Mapping[int, tuple[type[ToolError], str]] = {
    400: (InvalidArgumentsError, "Change the arguments as the answer says."),
    401: (PermissionDeniedError, "Ask the user about openapi.NAME.secret in the settings."),
    403: (PermissionDeniedError, "Ask the user whether the secret that is sent may do this."),
    404: (NotFoundError, "Check the arguments that name what is asked for."),
    409: (ConflictError, "Look at the present state first."),
    410: (NotFoundError, "Ask for something else: it is gone."),
    412: (ConflictError, "Look at the present state first."),
    422: (InvalidArgumentsError, "Change the arguments as the answer says."),
    429: (RateLimitedError, "Wait before the next request."),
}


async def result_of(
    response: WebResponse, paths: Sequence[str], *, method: str, url: str
) -> ToolResult:
    """Converts a response to a result."""
    if not 200 <= response.status < 300:  # noqa: PLR2004  # the protocol's successes
        raise await _failure(response, method, url)
    headers = {name: value[:LONGEST_HEADER] for name in TELLING if (value := response.header(name))}
    kind = response.media_type
    is_json = kind == "application/json" or kind.endswith("+json")
    if is_json and response.content and not response.truncated:
        body, text, note = await anyio.to_thread.run_sync(_json, response, paths)
        return _result(response, headers, body, text, note)
    read = await read_body(response, "auto")
    note = read.note if not paths else f"{read.note} Not JSON: fields were not looked for.".strip()
    if read.media is not None:
        plain = _result(response, headers, None, "", note)
        return ToolResult(plain.structured, plain.text, media=(read.media,))
    return _result(response, headers, read.content or None, read.content, note)


def _result(
    response: WebResponse, headers: Mapping[str, str], body: object, text: str, note: str
) -> ToolResult:
    structured: dict[str, Any] = {"status": response.status, "headers": dict(headers), "body": body}
    lines = [] if text and response.status == HTTPStatus.OK else [_status(response.status)]
    lines += [f"{name}: {value}" for name, value in headers.items() if name != "etag"]
    if note:
        structured["note"] = note
        lines.append(f"[{note}]")
    return ToolResult(structured, "\n".join([*lines, *([text] if text else [])]))


def _json(response: WebResponse, paths: Sequence[str]) -> tuple[Any, str, str]:
    try:
        value = json.loads(response.text() or "", parse_constant=lambda _name: None)
    except (ValueError, RecursionError):
        text = response.text() or ""
        return text, text, "It is declared as JSON but is not valid JSON."
    note = ""
    if paths:
        whole, value = value, selected(value, paths)
        if value is None:
            note = f"It has none of these fields. {_shape(whole)}"
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value, text, note


def _shape(value: object) -> str:
    inner = value[0] if isinstance(value, list) and value else value
    kind = "Its items have" if inner is not value else "It has"
    if not isinstance(inner, Mapping):
        return f"It is a {'list' if isinstance(value, list) else 'single value'}."
    keys = [key[:50] for key in inner]
    more = f" and {len(keys) - MOST_KEYS} more" * (len(keys) > MOST_KEYS)
    return f"{kind}: {', '.join(keys[:MOST_KEYS])}{more}."


async def _failure(response: WebResponse, method: str, url: str) -> ToolError:
    body_text = ((await anyio.to_thread.run_sync(response.text)) or "").strip()
    if response.redirect_to:
        return UpstreamError(
            f"{method} {url} redirects to {response.redirect_to}, which was not followed.",
            next_actions=["Ask the user about openapi.NAME.url in the settings."],
        )
    kind, advice = _FAILURES.get(response.status, (UpstreamError, ""))
    if not advice:
        advice = "Try again later." if response.status >= 500 else _SECOND_TIME  # noqa: PLR2004  # RFC 9110, 15.6
    if wait := response.header("retry-after")[:50]:
        advice += f" Retry after: {wait}."
    ending = f": {clip(body_text, MOST_SAID)}" if body_text else "."
    return kind(
        f"{method} {url} answered {_status(response.status)}{ending}", next_actions=[advice]
    )


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
