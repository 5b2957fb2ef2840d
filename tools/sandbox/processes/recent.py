"""What a program wrote last, by where it stands in all that it wrote."""

from __future__ import annotations

from dataclasses import dataclass

from tools.sandbox.processes.utf8 import LONGEST_CHARACTER, without_cut_end, without_cut_start

__all__ = ["Part", "Recent"]


@dataclass(frozen=True, slots=True)
class Part:
    """Some of an output.

    Attributes:
        text: The part; U+FFFD stands for what is no UTF-8.
        first: Bytes of output before it.
        next: Bytes of output before what comes after it.
        lost: Bytes that were asked for too, and are no longer kept.
    """

    text: str
    first: int
    next: int
    lost: int


class Recent:
    """Keeps the last bytes of an output.

    Args:
        limit: Bytes that are kept.

    Attributes:
        size: Bytes that were written.
    """

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._kept = bytearray()

    def feed(self, data: bytes) -> None:
        """Takes what was written next."""
        self.size += len(data)
        self._kept += data
        excess = len(self._kept) - self._limit
        if excess > 0:
            del self._kept[:excess]

    def part(self, since: int, limit: int, *, is_all: bool) -> Part:
        """The output from a place on.

        Args:
            since: Bytes of output before it; a negative number counts from the end.
            limit: Bytes that the part has at most, at least 4.
            is_all: Whether nothing more will be written; else a character may be on its way.
        """
        oldest = self.size - len(self._kept)
        wanted = min(since, self.size) if since >= 0 else max(0, self.size + since)
        first = max(wanted, oldest)
        if since < 0 or first > wanted:  # it may lie within a character
            start = bytes(self._kept[first - oldest : first - oldest + LONGEST_CHARACTER])
            first += len(start) - len(without_cut_start(start))
        data = bytes(self._kept[first - oldest : first - oldest + limit])
        is_end = first + len(data) == self.size
        if not is_end:
            data = data[: data.rfind(b"\n") + 1] or data
        if not (is_end and is_all):
            data = without_cut_end(data)
        text = data.decode("utf-8", "replace")
        return Part(text, first, first + len(data), max(0, oldest - wanted))
