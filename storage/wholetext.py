"""The whole text of a context, from its chunks, which overlap."""

from __future__ import annotations

from collections.abc import Sequence

from storage.models import Chunk

__all__ = ["whole_text"]


def whole_text(chunks: Sequence[Chunk]) -> str:
    """The text that chunks were cut from: what one repeats of those before is left out again.

    Of the white space between two chunks, which none ends with, an empty line is left.

    Args:
        chunks: All of a context's, or a run of them, in order.
    """
    parts, end = [], 0
    for chunk in chunks:
        parts.append("\n" * min(chunk.start - end, 2))
        parts.append(chunk.content[max(0, end - chunk.start) :])
        end = max(end, chunk.start + len(chunk.content))
    return "".join(parts).strip()
