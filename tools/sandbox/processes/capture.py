"""What a program wrote: its beginning and its end, however much there was in between."""

from __future__ import annotations

from dataclasses import dataclass

from tools.sandbox.processes.utf8 import without_cut_end, without_cut_start

__all__ = ["Capture", "Excerpt", "shares"]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is shown of an output.

    Attributes:
        text: Its beginning and its end, and between them what is left out, where something is.
        omitted: Bytes that are left out.
    """

    text: str
    omitted: int


class Capture:
    """Keeps the first and the last bytes of an output, and counts those in between.

    Args:
        limit: Bytes that are kept, half of them from the beginning.

    Attributes:
        size: Bytes that were written.
    """

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._lost_lines = 0

    def feed(self, data: bytes) -> None:
        """Takes what was written next."""
        self.size += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        excess = len(self._tail) - self._half
        if excess > 0:
            self._lost_lines += self._tail.count(b"\n", 0, excess)
            del self._tail[:excess]

    def excerpt(self, limit: int) -> Excerpt:
        """What was kept as a text, at line ends where they are near; U+FFFD for what is no UTF-8.

        Args:
            limit: Bytes of the output to show, at most those that are kept.
        """
        kept = bytes(self._head + self._tail)
        if len(kept) == self.size <= limit:
            return Excerpt(kept.decode("utf-8", "replace"), 0)
        half = min(limit // 2, self._half)
        head = _beginning(kept[:half])
        tail = _end(kept[len(kept) - half :])
        omitted = self.size - len(head) - len(tail)
        lines = self._lost_lines + kept.count(b"\n", len(head), len(kept) - len(tail))
        note = f"[… {omitted} bytes with {lines} line ends are left out here …]\n"
        shown = head.decode("utf-8", "replace")
        between = "" if shown.endswith("\n") or not shown else "\n"
        return Excerpt(shown + between + note + tail.decode("utf-8", "replace"), omitted)


def shares(limit: int, first: int, second: int) -> tuple[int, int]:
    """How much of a limit each of two sizes gets: half of it, and what the other does not need."""
    half = limit // 2
    return max(half, limit - second), max(half, limit - first)


def _beginning(data: bytes) -> bytes:
    """Without a last line that is cut, if it is not most of it; else without a cut character."""
    end = data.rfind(b"\n") + 1
    return data[:end] if end > len(data) // 2 else without_cut_end(data)


def _end(data: bytes) -> bytes:
    """Without a first line that is cut, if it is not most of it; else without a cut character."""
    start = data.find(b"\n") + 1
    return data[start:] if 0 < start <= len(data) // 2 else without_cut_start(data)
