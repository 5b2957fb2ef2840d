"""Writes the audit log: one line per call, appended and never changed.

A line records who called what, the decisions of the policy and the user, and the outcome. No line
may reveal forgotten content: for calls on stored context (scope context) it holds numbers, choices
and ids, and only the length of each text.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from storage.locks import locked
from storage.reading.shorten import clip
from tools.core.audit.redact import redacted, redacted_text
from tools.core.calling.call import FinishedCall
from tools.core.spec import Effect, ToolScope, ToolSpec
from tools.sandbox.processes.models import Level

AWAITING = "awaiting"
"""The outcome of a call that its client repeats with answers to our questions."""

WHOLE_CHARACTERS = 32_000
"""Limit for a command, path or URL, longer than any tool accepts, and for a program's input."""

ARGUMENT_CHARACTERS = 2_000
NAME_CHARACTERS = 256
ITEMS = 20

_ID = re.compile(r"[0-9a-f]{32}")
_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that would control a terminal showing the file, and unpaired surrogates."""

_LEVELS = frozenset(Level)
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

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
    budget = WHOLE_CHARACTERS if runs else ARGUMENT_CHARACTERS
    return {**redacted(told, WHOLE_CHARACTERS), **redacted(others, budget, spec.secret_names)}


def _untold(value: object, choices: Sequence[object] = ()) -> object:
    """Replaces text that the user may forget by its length."""
    if isinstance(value, str):
        is_telling = value not in choices and not _ID.fullmatch(value)
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
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._path, _FLAGS, 0o600)
        try:
            found = os.fstat(descriptor)
            _check_file(self._path, found)
            if stat.S_IMODE(found.st_mode) & 0o077:
                os.fchmod(descriptor, 0o600)
            # Another process may be in the middle of its line; then we add a harmless empty line.
            self._torn = found.st_size > 0 and os.pread(descriptor, 1, found.st_size - 1) != b"\n"
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor, self._opened = descriptor, (found.st_dev, found.st_ino)
        return descriptor

    def _rotate(self) -> None:
        """Renames every file to the next number, unless another process is rotating now."""
        with unrotated(self._path, wait=False) as held:
            if not held or not self._is_still_there():
                return
            for number, path in sorted(_numbered(self._path).items(), reverse=True):
                if number >= self._backups:
                    path.unlink()
                else:
                    path.rename(_rotated(self._path, number + 1))
            self._path.rename(_rotated(self._path, 1))

    def _is_still_there(self) -> bool:
        with suppress(FileNotFoundError):
            now = self._path.lstat()
            return (now.st_dev, now.st_ino) == self._opened
        return False


def unrotated(path: Path, *, wait: bool) -> AbstractContextManager[bool]:
    """Prevents other processes from rotating a log inside the block.

    Yields whether it could: without `wait` it gives up if another process holds the lock.
    """
    return locked(path.with_name(f"{path.name}.lock"), wait=wait)


def rotated(path: Path) -> list[Path]:
    """Returns the existing files of a log, newest first."""
    before = [found for _, found in sorted(_numbered(path).items())]
    return [*([path] if os.path.lexists(path) else []), *before]


def open_log(path: Path) -> BinaryIO:
    """Opens a log file for reading."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_file(path, os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{path} is not a regular file")


def _rotated(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _numbered(path: Path) -> dict[int, Path]:
    name = re.compile(re.escape(path.name) + r"\.([1-9][0-9]{0,5})")
    with suppress(FileNotFoundError):
        found = [(name.fullmatch(each.name), each) for each in path.parent.iterdir()]
        return {int(match[1]): each for match, each in found if match}
    return {}
