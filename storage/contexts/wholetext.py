"""The whole text of a context, from its chunks, which overlap."""

from __future__ import annotations

from collections.abc import Sequence

from storage.models import Chunk


def whole_text(chunks: Sequence[Chunk]) -> str:
    """The text that chunks were cut from: what one repeats of those before is left out again.

    Of the white space between two chunks, which none ends with, an empty line is left.

    Args:
        chunks: All of a context's, or a run of them, in order.
    """
    return "".join(gap + fresh for gap, fresh, _ in _pieces(chunks))


def places_in_whole(chunks: Sequence[Chunk]) -> list[tuple[int, int]]:
    """Where each chunk begins and ends in the whole text."""
    places, length = [], 0
    for (gap, fresh, repeated), chunk in zip(_pieces(chunks), chunks, strict=True):
        start = length + len(gap) - repeated
        places.append((start, start + len(chunk.content)))
        length += len(gap) + len(fresh)
    return places


def _pieces(chunks: Sequence[Chunk]) -> list[tuple[str, str, int]]:
    """What each chunk adds: the gap before it, its own text, and how much before it repeats."""
    pieces = []
    end = chunks[0].start if chunks else 0
    for chunk in chunks:
        repeated = max(0, end - chunk.start)
        pieces.append(("\n" * min(chunk.start - end, 2), chunk.content[repeated:], repeated))
        end = max(end, chunk.start + len(chunk.content))
    return pieces
