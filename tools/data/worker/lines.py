"""Lines of JSONL, those too that hold no row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from .failures import RecipeError

__all__ = ["Line", "lines_of", "naming_line"]

_CHARACTERS = 160
"""Of a line that is shown."""

_MARK = b"\xef\xbb\xbf"
"""What some programs begin a file with, and no reader of rows expects."""


class Line:
    """A line that is not empty.

    Args:
        number: Its place in the file, from 0.
        content: What is in it.
    """

    def __init__(self, number: int, content: bytes) -> None:
        self.number = number
        self.content = content.removeprefix(_MARK)
        self.fault = _fault(self.content)

    @property
    def text(self) -> str:
        """How it begins."""
        return self.content[: 4 * _CHARACTERS].decode(errors="replace").strip()[:_CHARACTERS]


def lines_of(path: Path) -> Iterator[Line]:
    """Yields the lines of a file that are not empty."""
    with path.open("rb") as file:
        for number, content in enumerate(file):
            if content.strip():
                yield Line(number, content)


def naming_line(error: RecipeError, path: Path) -> RecipeError:
    """Returns the error that names the first line without a row; the same where there is none."""
    broken = next((line for line in lines_of(path) if line.fault), None)
    if broken is None:
        return error
    at = broken.number + 1
    return RecipeError(
        f"The data set cannot be read: line {at} is no JSON object ({broken.fault}).",
        f"Set load_jsonl_lenient to true, which leaves such lines out, or mend line {at}.",
    )


def _fault(content: bytes) -> str:
    """Why a line holds no row; empty where it holds one."""
    try:
        row = json.loads(content.decode())
        if b"\\u" in content:
            json.dumps(row, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return f"{error.msg}, character {error.colno}"
    except UnicodeError:  # of bytes, or of half a character that is written with \u
        return "not all of it is Unicode"
    except RecursionError:
        return "too many brackets in each other"
    return "" if isinstance(row, dict) else "another value"
