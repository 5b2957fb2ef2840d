"""Reads the last answer from a client's transcript, where its hooks do not say it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TAIL_BYTES = 512_000  # read from the end of a transcript, however long it is


def last_answer(path: Path) -> str:
    """Returns the assistant's last text in a transcript of JSON lines; empty if there is none."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - TAIL_BYTES, 0))
            lines = file.read(TAIL_BYTES).split(b"\n")
    except OSError:
        return ""
    for line in reversed(lines):
        try:
            text = _answer_in(json.loads(line))
        except ValueError:  # the first line of the tail is cut, the last one may be
            continue
        if text:
            return text
    return ""


def _answer_in(record: object) -> str:
    """Returns the text of an assistant's message, in any client's form; else nothing."""
    if not isinstance(record, dict):
        return ""
    inner = next((record[key] for key in ("message", "data", "payload") if key in record), record)
    if not isinstance(inner, dict):
        inner = record
    roles = (record.get("type"), record.get("role"), inner.get("role"), inner.get("type"))
    if not any(isinstance(role, str) and role.startswith("assistant") for role in roles):
        return ""
    return "\n".join(_texts(inner)).strip()


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content", message.get("text"))
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield part["text"]
