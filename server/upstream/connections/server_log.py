"""The log of another server: what it prints outside of the protocol, in a bounded private file."""

from __future__ import annotations

import json
import logging
import re
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from server.mcp.visible import visible
from server.transport.jsonrpc import Flow
from tools.core.audit.recording import AuditFile
from tools.core.audit.secret_patterns import redacted_text
from tools.sandbox.secrets.redaction import Redaction

MOST_BYTES = 500_000
"""Bytes of a file; one earlier file is kept."""

HELD = 2_000
"""Maximum number of lines that wait for the answer to a probe."""

_PAGE_BEGINS = re.compile("Failed to validate request")
_PAGE = re.compile(r"pydantic\.dev|input_type=")
_WORD = re.compile(r"\s*[a-z_]+")
"""The rest of an address that was wrapped."""

_logger = logging.getLogger("toolcrib")


def log_path(data_dir: Path, server: str) -> Path:
    """Returns the file of a server's log; the one before it ends in .1."""
    return data_dir / "server-logs" / f"{server}.jsonl"


class ServerLog:
    """What one process of a server prints: its last lines, and those in the file.

    Secrets are redacted: some programs print their settings when they fail to start.
    """

    KEPT = 5
    LONGEST = 500
    """Maximum length of a kept line."""

    def __init__(self, path: Path | None, redaction: Redaction) -> None:
        self.flow = Flow(burst=4_000, a_second=4_000)
        self._file = AuditFile(path, max_bytes=MOST_BYTES, backups=1) if path else None
        self._redaction = redaction
        self._last: deque[str] = deque(maxlen=self.KEPT)
        self._held: list[str] | None = None
        self._written = Flow(burst=2_000, a_second=200)
        self._left_out = 0
        self._pid = 0

    @property
    def last(self) -> Sequence[str]:
        """The last lines."""
        return [*self._last, *_without_page(self._held or ())][-self.KEPT :]

    def begin(self, pid: int) -> None:
        """Notes the start of a process."""
        self._pid = pid
        self._write("(started)")

    def take(self, line: bytes) -> None:
        """Takes a line; if lines come too fast, the file has only their number."""
        seen = visible(line[: 4 * self.LONGEST].decode(errors="replace").rstrip())
        text = redacted_text(self._redaction.text(seen), self.LONGEST)
        if not text:
            return
        if self._held is not None and len(self._held) < HELD:
            self._held.append(text)
        else:
            self._keep(text)

    def hold(self) -> None:
        """Holds the lines back from now on, as the server is sent a probe."""
        self._held = []

    def release(self) -> None:
        """Keeps the lines held back, without the errors of an older server about the probe."""
        held, self._held = self._held or (), None
        for text in _without_page(held):
            self._keep(text)

    def end(self, how: str) -> None:
        """Notes the end of the process."""
        self.release()
        self._write(f"({how})")
        if self._file is not None:
            self._file.close()

    def _keep(self, text: str) -> None:
        self._last.append(text)
        if not self._written.passes():
            self._left_out += 1
            return
        if self._left_out:
            self._write(f"({self._left_out} lines omitted)")
            self._left_out = 0
        self._write(text)

    def _write(self, text: str) -> None:
        if self._file is None:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"time": now, "pid": self._pid, "text": text}, ensure_ascii=False)
        try:
            self._file.append(line.encode())
        except OSError as error:
            _logger.warning("The log of a server cannot be written: %s", error)
            self._file = None


def _without_page(lines: Sequence[str]) -> Sequence[str]:
    """Returns lines without the validation errors that SDKs print about an unknown method."""
    begins = next((at for at, line in enumerate(lines) if _PAGE_BEGINS.search(line)), None)
    if begins is None:
        return lines
    ends = max((at for at, line in enumerate(lines) if _PAGE.search(line)), default=begins) + 1
    with suppress(IndexError):
        ends += _WORD.fullmatch(lines[ends]) is not None
    return [*lines[:begins], *lines[ends:]]
