"""Logs what the functions of a file print."""

from __future__ import annotations

import logging
import math
import time

from tools.core.invisible import LONGEST_LINE, log_line

logger = logging.getLogger("toolcrib.functions")

LONGEST_BYTES = 4 * LONGEST_LINE + 1
"""Bytes of a line that are kept: enough for one character more than is logged."""
LINES_A_SECOND = 200
"""Lines of one worker that are logged per second; further ones are counted."""


class OutputLog:
    """Logs an output line by line.

    Args:
        most: Maximum number of logged lines; further ones are counted.
    """

    def __init__(self, name: str, most: float = math.inf) -> None:
        self._name = name
        self._left = most
        self._line = bytearray()
        self._second = 0
        self._logged = 0
        self._dropped = 0

    def feed(self, data: bytes) -> None:
        """Takes the next chunk of output; an empty chunk is the end."""
        if not data:
            self._close()
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._line += part[: LONGEST_BYTES - len(self._line)]
            self._add()
        self._line += rest[: LONGEST_BYTES - len(self._line)]

    def _add(self) -> None:
        text = self._line.decode(errors="replace").rstrip("\r")
        self._line.clear()
        if self._left > 0 and self._second != (now := int(time.monotonic())):
            self._report_dropped()
            self._second, self._logged = now, 0
        self._logged += 1
        self._left -= 1
        if self._logged > LINES_A_SECOND or self._left < 0:
            self._dropped += 1
        else:
            logger.info("%s: %s", self._name, log_line(text))

    def _close(self) -> None:
        if self._line:
            self._add()
        self._report_dropped()

    def _report_dropped(self) -> None:
        if self._dropped:
            logger.warning("%s printed %d more lines than are logged", self._name, self._dropped)
        self._dropped = 0
