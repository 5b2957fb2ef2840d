"""The audit log: one line a call, appended and never changed.

It tells who called what, what the policy and a person said of it, and what came of it. What is
forgotten must be told on by no line: of calls that work on stored context (scope context) it has
numbers, choices and ids, and the length of each text only.
"""

from __future__ import annotations

import json
import logging
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.core.audit.file import AuditFile
from tools.core.audit.recording import FinishedCall
from tools.core.audit.redact import clipped, redacted, redacted_text
from tools.core.spec import Effect, ToolScope, ToolSpec
from tools.sandbox.processes.models import Level

if TYPE_CHECKING:
    from tools.core.permission import Permission

__all__ = ["AWAITING", "Audit"]

AWAITING = "awaiting"
"""The outcome of a call that its client makes again, with answers to what it was asked."""

WHOLE_CHARACTERS = 32_000
"""Of a command, path or URL, which no tool takes longer, and of what a program is run with."""

ARGUMENT_CHARACTERS = 2_000
NAME_CHARACTERS = 256
ITEMS = 20

_ID = re.compile(r"[0-9a-f]{32}")
_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What would steer a terminal that shows the file, and halves of surrogate pairs."""

_LEVELS = frozenset(Level)

_logger = logging.getLogger("toolcrib")


class Audit:
    """Writes down each call, at once: one that was answered is in the log.

    Args:
        path: The file; it is created, for its owner alone.
        max_bytes: Size after which it is rotated.
        backups: Rotated files that are kept.
    """

    def __init__(self, path: Path, *, max_bytes: int = 10_000_000, backups: int = 10) -> None:
        self._file = AuditFile(path, max_bytes=max_bytes, backups=backups)
        self._fails = False

    def keep(self, call: FinishedCall, permission: Permission, *, is_final: bool = True) -> None:
        """Appends the line of a call; a failure to write is logged once and ends no call.

        A call that only passes another on, and did, leaves no line: the other one leaves its own.

        Args:
            call: The call, and what came of it.
            permission: What the policy and a person said of it.
            is_final: Whether it was answered; else its client makes it again.
        """
        if call.spec is not None and call.spec.passes_on and permission.passed_on:
            return
        try:
            line = _line(call, permission, is_final=is_final)
            self._file.append(_encoded(line))
        except Exception as error:  # noqa: BLE001  # whatever was called, and whatever the disk says
            if not self._fails:
                _logger.error("The audit log cannot be written: %s", error)  # noqa: TRY400  # no defect
            self._fails = True
        else:
            self._fails = False

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _line(call: FinishedCall, permission: Permission, *, is_final: bool) -> dict[str, Any]:
    context, spec = call.call.context, call.spec
    decision, approval = permission.decision, permission.approval
    began = datetime.fromtimestamp(call.call.began, UTC)
    line = {
        "time": began.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "call": os.urandom(8).hex(),
        "user": context.identity.user_id,
        "device": context.identity.device_id,
        "agent": context.identity.agent_id,
        "session": context.session_id,
        "client": context.client,
        "tool": redacted_text(call.call.name, NAME_CHARACTERS) if spec is None else spec.name,
        "source": spec and spec.source,
        "scope": spec and spec.scope,
        "effects": spec and sorted(spec.effects),
        "arguments": _arguments(call.arguments, spec),
        "verdict": decision and decision.verdict,
        "rule": decision and decision.rule,
        "rule_source": decision and decision.source,
        "approved_by": approval and approval.by,
        "outcome": call.outcome if is_final else AWAITING,
        "milliseconds": round(call.seconds * 1000, 3),
        "sandbox": _level(call),
        "pid": os.getpid(),
    }
    return {
        name: clipped(value, NAME_CHARACTERS) if isinstance(value, str) else value
        for name, value in line.items()
    }


def _encoded(line: Mapping[str, Any]) -> bytes:
    """One line of JSON in UTF-8 that a terminal can show as it is."""
    text = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if text.isascii() and "\x7f" not in text:
        return text.encode()
    return _STEERING.sub(_escape, text).encode()


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    is_half = unicodedata.category(character) == "Cs"
    return "\ufffd" if is_half else f"\\u{ord(character):04x}"


def _level(call: FinishedCall) -> str | None:
    """What confined the programs of a call, where its result tells."""
    level = call.result and call.result.structured.get("sandbox")
    return level if isinstance(level, str) and level in _LEVELS else None


def _arguments(given: Mapping[str, Any], spec: ToolSpec | None) -> dict[str, Any]:
    """What a call was given, without secrets, and without what may be forgotten."""
    if spec is None:  # what it was meant to store may be stored by the next call
        return {}
    if spec.scope is ToolScope.CONTEXT:
        known = spec.input_schema.get("properties", {})
        return {
            name: _untold(given[name], schema.get("enum", ()))
            for name, schema in known.items()
            if name in given
        }
    about = spec.subject and spec.subject.parameter
    told = {name: value for name, value in given.items() if name == about}
    others = {name: value for name, value in given.items() if name != about}
    runs = spec.scope is ToolScope.SYSTEM and Effect.EXECUTE in spec.effects
    budget = WHOLE_CHARACTERS if runs else ARGUMENT_CHARACTERS
    return {**redacted(told, WHOLE_CHARACTERS), **redacted(others, budget)}


def _untold(value: object, choices: Sequence[object] = ()) -> object:
    """A value without any text that may be forgotten."""
    if isinstance(value, str):
        is_telling = value not in choices and not _ID.fullmatch(value)
        return f"[{len(value)} characters]" if is_telling else value
    if isinstance(value, list) and len(value) <= ITEMS:
        return ["[…]" if isinstance(each, list | dict) else _untold(each) for each in value]
    if isinstance(value, list | Mapping):
        return f"[{len(value)} entries]"
    return redacted({"": value}, ITEMS)[""]
