"""Reads the last answer from a client's transcript, where its hooks do not say it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from server.hooks.saved_sessions import is_of_subagent
from storage.reading.conversations import joined_text

TAIL_BYTES = 512_000  # read from the end of a transcript, however long it is
WAIT_SECONDS = 1.0
LOOK_EVERY = 0.05


def last_answer(path: Path, wait: float = WAIT_SECONDS) -> str:
    """Returns the assistant's last text since the user's in a transcript of JSON lines.

    Waits for it, as Copilot CLI writes the turn that has ended only while its hook runs. Empty if
    it does not come.
    """
    until = time.monotonic() + wait
    while not (answer := _newest_answer(path)) and time.monotonic() < until:
        time.sleep(LOOK_EVERY)
    return answer


def _newest_answer(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - TAIL_BYTES, 0))
            lines = file.read(TAIL_BYTES).split(b"\n")
    except OSError:
        return ""
    for line in reversed(lines):
        try:
            record = json.loads(line)
        except ValueError:  # the first line of the tail is cut, the last one may be
            continue
        if text := _text_of(record, "assistant"):
            return text
        if _text_of(record, "user"):
            return ""
    return ""


def _text_of(record: object, speaker: str) -> str:
    """Returns the text of a speaker's message, in any client's form; else nothing."""
    if not isinstance(record, dict) or is_of_subagent(record):
        return ""
    inner = next((record[key] for key in ("message", "data", "payload") if key in record), record)
    if not isinstance(inner, dict):
        inner = record
    roles = (record.get("type"), record.get("role"), inner.get("role"), inner.get("type"))
    if not any(isinstance(role, str) and role.startswith(speaker) for role in roles):
        return ""
    return joined_text(inner.get("content", inner.get("text")))
