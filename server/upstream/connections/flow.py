"""Rate limits for a server's output."""

from __future__ import annotations

import logging
import time
from collections import deque

import anyio

from server.mcp.visible import visible
from tools.core.audit.redact import redacted_text

_logger = logging.getLogger("toolcrib.servers")


class Flow:
    """A token bucket: allows bursts, and limits the long-term rate.

    Args:
        burst: How many may pass at once.
        a_second: How many may pass per second.
    """

    def __init__(self, burst: int = 2_000, a_second: int = 1_000) -> None:
        self._burst = float(burst)
        self._rate = a_second
        self._left = self._burst
        self._then = time.monotonic()

    def passes(self) -> bool:
        """Returns whether one more may pass now."""
        now = time.monotonic()
        self._left = min(self._burst, self._left + (now - self._then) * self._rate)
        self._then = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    async def next(self) -> None:
        """Waits until one more may pass."""
        while not self.passes():  # noqa: ASYNC110  # it waits for time to pass
            await anyio.sleep(100 / self._rate)


class Tail:
    """A program's output outside of the protocol: logged, with the last lines kept.

    Secrets are redacted: some programs print their settings when they fail to start.

    Args:
        server: The name of the server.

    Attributes:
        last: The last lines.
        flow: Limits how fast it is read.
    """

    KEPT = 5
    LONGEST = 500
    """Maximum length of a shown line."""

    def __init__(self, server: str) -> None:
        self.last: deque[str] = deque(maxlen=self.KEPT)
        self.flow = Flow(burst=4_000, a_second=4_000)
        self._server = server
        self._logged = Flow(burst=200, a_second=20)
        self._left_out = 0

    def take(self, line: bytes) -> None:
        """Takes a line; if lines come too fast, the log only counts them."""
        seen = visible(line[: 4 * self.LONGEST].decode(errors="replace").rstrip())
        text = redacted_text(seen, self.LONGEST)
        if not text:
            return
        self.last.append(text)
        if not self._logged.passes():
            self._left_out += 1
            return
        if self._left_out:
            _logger.warning("[%s] %d lines omitted", self._server, self._left_out)
            self._left_out = 0
        _logger.info("[%s] %s", self._server, text)
