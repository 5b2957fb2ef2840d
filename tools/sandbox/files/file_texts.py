"""What the tools of text files share: their parameters, and how a file's name is told."""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import Field

__all__ = ["Digest", "Encoding", "FilePath", "unicode_name", "visible"]

FilePath = Annotated[str, Field(description="Relative to the root, or absolute within it")]
Encoding = Annotated[str, Field(max_length=64, description="Such as cp1252; default: detected")]
Digest = Annotated[
    str, Field(pattern="^[0-9a-fA-F]{64}$", description="Refuse if the file has another digest")
]


def unicode_name(name: str) -> str:
    """A file's name as valid Unicode; bytes that are none are shown as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def visible(name: str) -> str:
    """A name that cannot pass for more than one line or drive a terminal."""
    return name if name.isprintable() else name.encode("unicode_escape").decode("ascii")
