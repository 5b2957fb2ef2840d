"""Images and sounds in results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Media"]


@dataclass(frozen=True, slots=True)
class Media:
    """One image or sound of a result; the client shows or plays it beside the text.

    Attributes:
        kind: Which of the two.
        data: The encoded file, as it would stand on a disk.
        mime_type: Its format, such as `image/png` or `audio/wav`.
    """

    kind: Literal["image", "audio"]
    data: bytes
    mime_type: str
