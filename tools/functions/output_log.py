"""What a worker prints, line by line in the server's log, however much it is."""

from __future__ import annotations

import logging
import re
import time

from anyio.abc import ByteReceiveStream

__all__ = ["log_output"]

logger = logging.getLogger("toolcrib.functions")

LONGEST_LINE = 2_000
"""Bytes of a line that are logged."""
LINES_A_SECOND = 200
"""Lines of one worker that are logged within a second; the rest is counted."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that move a terminal's cursor or change its colours."""


async def log_output(stream: ByteReceiveStream, name: str) -> None:
    """Logs a worker's stderr, to which its stdout goes too, until the stream ends."""
    log = _Log(name)
    line = bytearray()
    try:
        async for chunk in stream:
            *ended, rest = chunk.split(b"\n")
            for part in ended:
                line += part[: LONGEST_LINE + 1]
                log.add(line)
                line.clear()
            line += rest[: LONGEST_LINE + 1 - len(line)]
    finally:
        if line:
            log.add(line)
        log.report_dropped()


class _Log:
    def __init__(self, name: str) -> None:
        self._name = name
        self._second = 0
        self._logged = 0
        self._dropped = 0

    def add(self, line: bytearray) -> None:
        if self._second != (now := int(time.monotonic())):
            self.report_dropped()
            self._second, self._logged = now, 0
        self._logged += 1
        if self._logged > LINES_A_SECOND:
            self._dropped += 1
            return
        text = line[:LONGEST_LINE].decode(errors="replace").rstrip("\r")
        more = " […]" if len(line) > LONGEST_LINE else ""
        logger.info("%s: %s%s", self._name, CONTROL.sub(_escaped, text), more)

    def report_dropped(self) -> None:
        if self._dropped:
            logger.warning("%s printed %d more lines than are logged", self._name, self._dropped)
        self._dropped = 0


def _escaped(match: re.Match[str]) -> str:
    return f"\\x{ord(match[0]):02x}"
