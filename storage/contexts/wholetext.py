"""The whole text of a context, joined from its overlapping chunks."""

from __future__ import annotations

from collections.abc import Sequence

from storage.models import Chunk


def whole_text(chunks: Sequence[Chunk]) -> str:
    """Joins chunks to the text they were cut from, without repeating overlaps.

    A gap of white space between two chunks becomes one empty line.
    """
    return "".join(gap + fresh for gap, fresh, _ in _pieces(chunks))


def places_in_whole(chunks: Sequence[Chunk]) -> list[tuple[int, int]]:
    """Returns the start and end of each chunk in the whole text."""
    places, length = [], 0
    for (gap, fresh, repeated), chunk in zip(_pieces(chunks), chunks, strict=True):
        start = length + len(gap) - repeated
        places.append((start, start + len(chunk.content)))
        length += len(gap) + len(fresh)
    return places


def _pieces(chunks: Sequence[Chunk]) -> list[tuple[str, str, int]]:
    """Returns for each chunk the gap before it, its new text, and the length it repeats."""
    pieces = []
    end = chunks[0].start if chunks else 0
    for chunk in chunks:
        repeated = max(0, end - chunk.start)
        pieces.append(("\n" * min(chunk.start - end, 2), chunk.content[repeated:], repeated))
        end = max(end, chunk.start + len(chunk.content))
    return pieces
