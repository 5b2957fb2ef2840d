"""Records each call: as a line of the audit log, and in the memory of the user it concerns.

A line records who called what, the decisions of the policy and the user, and the outcome; it is
appended and never changed.

Importance of an entry, 0 to 10: 2 for a call that only reads or fails, 4 for any other, 1 more if
it may remove or overwrite, and 5 for a message. Each earlier success with the same target in the
session adds 1, up to 3 (see `storage.memory.entries`).

Neither may reveal forgotten content. For calls on stored context (scope context), a line holds
numbers, choices and ids, and only the length of each text; an entry has no result. Calls that store
keep their arguments only if the result names the contexts, which the entry is then linked to. Calls
that delete keep none.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from storage.index.bounded import clip
from storage.memory.entries import Recorder
from storage.models import Identity, NewEntry
from tools.core.audit.redact import CONTEXT_ID, context_ids, redacted
from tools.core.audit.secret_patterns import redacted_text
from tools.core.audit.trail import open_to_append, rotate, unrotated
from tools.core.calling.call import CANCELLED, FinishedCall
from tools.core.context import Origin
from tools.core.errors import DeadlineError, PermissionDeniedError
from tools.core.spec import Effect, ToolScope, ToolSpec
from tools.sandbox.processes.models import Level

AWAITING = "awaiting"
"""The outcome of a call that its client repeats with answers to our questions."""

WHOLE_CHARACTERS = 32_000
"""Limit for a command, path or URL, longer than any tool accepts, and for a program's input."""

LINE_ARGUMENT_CHARACTERS = 2_000
NAME_CHARACTERS = 256
ITEMS = 20

_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that would control a terminal showing the file, and unpaired surrogates."""

_LEVELS = frozenset(Level)

PATIENCE = 1.0
"""Seconds that a result waits for its entry, which is then written in the background."""

READING = 2.0
CHANGING = 4.0
DESTRUCTIVE = 1.0
MESSAGE = 5.0

ACTION_CHARACTERS = 128
TARGET_CHARACTERS = 240
ARGUMENT_CHARACTERS = 900
SAID_CHARACTERS = 700

IDENTITY = ("user_id", "device_id", "agent_id")
LONGEST_IDENTITY = 256
"""The limit of `tools.answers.params`."""

MAIN_ARGUMENTS = (
    *("file_path", "path", "pattern", "raw_id", "title", "name", "entity_name", "researcher_name"),
    *("query", "topic", "url", "uri", "directory", "command"),
)
"""The target of a call is the first of these arguments that it gives."""

_logger = logging.getLogger("toolcrib")


class Audit:
    """Writes each call to the log immediately: an answered call is always in it."""

    def __init__(self, path: Path, *, max_bytes: int = 10_000_000, backups: int = 10) -> None:
        self._file = AuditFile(path, max_bytes=max_bytes, backups=backups)
        self._fails = False

    def keep(self, call: FinishedCall, *, is_final: bool = True) -> None:
        """Appends the line of a call; write failures are logged once and fail no call.

        A proxy tool's call that was passed on leaves no line: the inner call writes its own. A call
        that is not final is awaiting: its client repeats it.
        """
        if call.spec is not None and call.spec.is_proxy and call.call.permission.passed_on:
            return
        try:
            line = _line(call, is_final=is_final)
            self._file.append(_encoded(line))
        except Exception as error:  # noqa: BLE001  # any failure of encoding or of the disk
            if not self._fails:
                _logger.error("The audit log cannot be written: %s", error)  # noqa: TRY400  # no defect
            self._fails = True
        else:
            self._fails = False

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _line(call: FinishedCall, *, is_final: bool) -> dict[str, Any]:
    context, spec, permission = call.call.context, call.spec, call.call.permission
    decision, approval = permission.decision, permission.approval
    began = datetime.fromtimestamp(call.call.began, UTC)
    line = {
        "time": began.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "call": call.call.id,
        "user": context.identity.user_id,
        "device": context.identity.device_id,
        "agent": context.identity.agent_id,
        "session": context.session_id,
        "client": context.client,
        "called_by": context.tool or None,
        "tool": redacted_text(call.name, NAME_CHARACTERS) if spec is None else spec.name,
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
        name: clip(value, NAME_CHARACTERS) if isinstance(value, str) else value
        for name, value in line.items()
    }


def _encoded(line: Mapping[str, Any]) -> bytes:
    """Encodes a line as UTF-8 JSON that is safe to show in a terminal."""
    text = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if text.isascii() and "\x7f" not in text:
        return text.encode()
    return _STEERING.sub(_escape, text).encode()


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    is_half = unicodedata.category(character) == "Cs"
    return "\ufffd" if is_half else f"\\u{ord(character):04x}"


def _level(call: FinishedCall) -> str | None:
    """Returns the sandbox level of a call's programs, if its result reports one."""
    level = call.result and call.result.structured.get("sandbox")
    return level if isinstance(level, str) and level in _LEVELS else None


def _arguments(given: Mapping[str, Any], spec: ToolSpec | None) -> dict[str, Any]:
    """Returns a call's arguments without secrets and without text that the user may forget."""
    if spec is None:  # the next call may store what this one was meant to
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
    budget = WHOLE_CHARACTERS if runs else LINE_ARGUMENT_CHARACTERS
    return {**redacted(told, WHOLE_CHARACTERS), **redacted(others, budget, spec.secret_names)}


def _untold(value: object, choices: Sequence[object] = ()) -> object:
    """Replaces text that the user may forget by its length."""
    if isinstance(value, str):
        is_telling = value not in choices and not CONTEXT_ID.fullmatch(value)
        return f"[{len(value)} characters]" if is_telling else value
    if isinstance(value, list) and len(value) <= ITEMS:
        return ["[…]" if isinstance(each, list | dict) else _untold(each) for each in value]
    if isinstance(value, list | Mapping):
        return f"[{len(value)} entries]"
    return redacted({"": value}, ITEMS)[""]


class AuditFile:
    """Appends lines, each with a single write, so that lines of several processes never mix.

    A full file becomes `NAME.1`, that one `NAME.2`, and so on. The first process to notice rotates;
    the others see another file under the name and open it.
    """

    def __init__(self, path: Path, *, max_bytes: int, backups: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._descriptor: int | None = None
        self._opened: tuple[int, int] | None = None
        self._torn = False

    def append(self, line: bytes) -> None:
        """Appends one line, given without its newline; never waits for another process."""
        descriptor = self._at_end_of(len(line) + 1)
        data = (b"\n" if self._torn else b"") + line + b"\n"
        self._torn = True
        written = os.write(descriptor, data)
        if written < len(data):
            raise OSError(f"{self._path}: {written} of {len(data)} bytes could be written")
        self._torn = False

    def close(self) -> None:
        """Closes the file; the next line opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _at_end_of(self, more: int) -> int:
        """Returns the file's current descriptor, rotating first if it would get too large."""
        try:
            now = self._path.lstat()
        except FileNotFoundError:
            return self._open()
        descriptor = self._descriptor
        if descriptor is None or self._opened != (now.st_dev, now.st_ino):
            descriptor = self._open()
            now = os.fstat(descriptor)
        if now.st_size and now.st_size + more > self._max_bytes:
            self._rotate()
            return self._open()
        return descriptor

    def _open(self) -> int:
        self.close()
        # If the last line is incomplete, we end it; at worst this adds a harmless empty line.
        descriptor, found, self._torn = open_to_append(self._path)
        self._descriptor, self._opened = descriptor, (found.st_dev, found.st_ino)
        return descriptor

    def _rotate(self) -> None:
        """Renames every file to the next number, unless another process is rotating now."""
        with unrotated(self._path, wait=False) as held:
            if held and self._is_still_there():
                rotate(self._path, self._backups)

    def _is_still_there(self) -> bool:
        with suppress(FileNotFoundError):
            now = self._path.lstat()
            return (now.st_dev, now.st_ino) == self._opened
        return False


class Recording:
    """Records calls and messages; never fails, and delays a result by a second at most."""

    def __init__(self, recorder: Recorder, project: str = "") -> None:
        self._recorder = recorder
        self._project = project  # the directory that the sessions work on

    async def keep(self, call: FinishedCall) -> None:
        """Records a call, unless its tool is a proxy."""
        if call.spec is not None and call.spec.is_proxy:
            return
        try:
            await self._written(_identity(call), _entry(call))
        except Exception:
            _logger.exception("A call of %r could not be recorded", call.name)

    async def hear(
        self,
        origin: Origin,
        action: str,
        said: str,
        *,
        is_recall: bool = False,
        context_ids: Sequence[str] = (),
    ) -> None:
        """Records a user's message, without anything that looks like a secret.

        The action names its channel, such as "prompt:recall". A recall only asks for stored
        content; `context_ids` are its results.
        """
        message = NewEntry(
            session_id=origin.session_id,
            client=origin.client,
            kind="message",
            time=time.time(),
            action=action,
            said=redacted_text(said, SAID_CHARACTERS),
            importance=MESSAGE,
            is_recall=is_recall,
            context_ids=tuple(context_ids),
        )
        await self._written(origin.identity, message)

    async def _written(self, identity: Identity, new: NewEntry) -> None:
        new = replace(new, project=self._project)
        written = asyncio.wrap_future(self._recorder.submit(identity, new))
        with anyio.CancelScope(shield=True):
            await asyncio.wait([written], timeout=PATIENCE)  # does not cancel on timeout


def _identity(call: FinishedCall) -> Identity:
    """Returns whom a call concerned: the caller, or another identity it may act for."""
    own = call.call.context.identity
    taken = {} if call.spec is None else call.spec.input_schema.get("properties", {})
    named = {key: call.arguments.get(key) for key in IDENTITY if key in taken}
    for key, value in named.items():
        if value is None:
            continue
        if not isinstance(value, str) or len(value) > LONGEST_IDENTITY:
            return own
        if key == "user_id" and not value:
            return own
    try:
        return call.call.context.about(**named)
    except PermissionDeniedError:
        return own


def _entry(call: FinishedCall) -> NewEntry:
    arguments, context = call.arguments, call.call.context
    names = () if call.spec is None else call.spec.secret_names
    others = {key: value for key, value in arguments.items() if key not in IDENTITY}
    entry = NewEntry(
        session_id=context.session_id,
        client=context.client,
        kind="call",
        time=call.call.began,
        action=clip(call.name if call.spec is None else call.spec.name, ACTION_CHARACTERS),
        target=_target(arguments),
        arguments=redacted(others, ARGUMENT_CHARACTERS, names),
        outcome=call.remembered_outcome,
        said="" if call.result is None else redacted_text(call.result.text, SAID_CHARACTERS),
        milliseconds=round(call.seconds * 1000, 3),
        importance=_importance(call),
    )
    if call.spec is None:  # what it was meant to store may be stored by the next call
        return replace(entry, target="", arguments={})
    if call.spec.scope is not ToolScope.CONTEXT:
        return entry
    return _of_stored(entry, call, call.spec)


def _of_stored(entry: NewEntry, call: FinishedCall, spec: ToolSpec) -> NewEntry:
    """Builds the entry of a call on stored context, without anything that may be forgotten."""
    entry = replace(entry, said="")  # failures too quote arguments and similar names
    if spec.destructive and spec.effects == {Effect.WRITE}:
        return replace(entry, target="", arguments={})
    answer = call.result and call.result.structured
    if spec.read_only:
        told, read = context_ids([answer, dict(call.arguments)])
        return replace(entry, is_recall=True, context_ids=told, read_ids=read)
    told, _ = context_ids([answer])  # arguments such as metadata may contain any id
    if told:
        return replace(entry, context_ids=told)
    if spec.is_function:  # its target may be the text it was to store
        return replace(entry, arguments={}, target="")
    return replace(entry, arguments={}, target=_unlinked_target(entry, call.arguments))


def _unlinked_target(entry: NewEntry, arguments: Mapping[str, Any]) -> str:
    """Returns the target of a call that names nothing it stored, without the text to store."""
    match entry.outcome:
        case "ok":
            return entry.target  # the person or thing it belongs to
        case outcome if outcome in {CANCELLED, DeadlineError.error_type}:
            return ""  # it may be stored
        case _:
            return _target({"path": arguments.get("path")})


def _importance(call: FinishedCall) -> float:
    spec = call.spec
    if spec is None or spec.read_only or call.remembered_outcome != "ok":
        return READING
    return CHANGING + DESTRUCTIVE * spec.destructive


def _target(arguments: Mapping[str, Any]) -> str:
    given = (arguments.get(name) for name in MAIN_ARGUMENTS)
    found = next((value for value in given if isinstance(value, str) and value.strip()), "")
    return redacted_text(found, TARGET_CHARACTERS)
