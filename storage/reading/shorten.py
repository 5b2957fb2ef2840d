"""Cuts texts to a length."""

from __future__ import annotations


def clip(text: str, limit: int) -> str:
    """Returns a text of at most `limit` characters; "…" replaces what is cut off."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def clip_line(text: str, limit: int) -> str:
    """Clips a text on one line, with single spaces between its words."""
    return clip(" ".join(text.split()), limit)
