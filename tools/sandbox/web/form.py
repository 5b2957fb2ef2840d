"""The forms in which a body can be shown."""

from __future__ import annotations

from typing import Literal

__all__ = ["Form"]

Form = Literal["auto", "text", "markdown", "json", "base64"]
