"""What goes wrong with a result, told so that the tool's author can change it."""

from __future__ import annotations

__all__ = ["UnsendableError"]


class UnsendableError(ValueError):
    """A value that JSON cannot say; the message names it, as "a … that …"."""
