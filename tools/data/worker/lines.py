"""Lines of JSONL, those too that hold no row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from .failures import RecipeError

__all__ = ["NOT_UNICODE", "Line", "lines_of", "naming_line", "naming_place"]

NOT_UNICODE = "not all of it is Unicode"
"""Why no text can be read."""

_CHARACTERS = 160
"""Of a line that is shown."""

_MARK = b"\xef\xbb\xbf"
"""What some programs begin a file with, and no reader of rows expects."""


class Line:
    """A line that is not empty, or the lines of one row.

    Args:
        number: Its place in the file, from 0.
        content: What is in it.
        fault: Why it holds no row; empty where it holds one.
    """

    def __init__(self, number: int, content: bytes, fault: str) -> None:
        self.number = number
        self.content = content
        self.fault = fault

    @property
    def text(self) -> str:
        """How it begins."""
        return self.content[: 4 * _CHARACTERS].decode(errors="replace").strip()[:_CHARACTERS]


def lines_of(path: Path) -> Iterator[Line]:
    """Yields the lines of a file of JSONL that are not empty."""
    with path.open("rb") as file:
        for number, content in enumerate(file):
            if content.strip():
                plain = content.removeprefix(_MARK)
                yield Line(number, plain, _fault(plain))


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


def naming_place(error: RecipeError, path: Path) -> RecipeError:
    """Returns the error that says where JSON is broken; the same where it is not."""
    content = path.read_bytes().removeprefix(_MARK)
    if not content.lstrip().startswith(b"["):
        broken = next((line for line in lines_of(path) if line.fault), None)
        where = broken and f"line {broken.number + 1} is no JSON object ({broken.fault})"
    else:
        where = _place(content)
    if where is None:
        return error
    return RecipeError(f"The data set cannot be read: {where}.", "Mend it there.")


def _place(content: bytes) -> str | None:
    """Where an array of objects is none."""
    try:
        rows = json.loads(content.decode())
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return f"line {line}: {NOT_UNICODE}"
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, character {error.colno}: {error.msg}"
    except RecursionError:
        return "too many brackets in each other"
    other = next((at for at, row in enumerate(rows, 1) if not isinstance(row, dict)), None)
    return None if other is None else f"value {other} of its array is no JSON object"


def _fault(content: bytes) -> str:
    """Why a line holds no row; empty where it holds one."""
    try:
        row = json.loads(content.decode().rstrip("\r\n"))
        if b"\\u" in content:
            json.dumps(row, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return f"{error.msg}, character {error.colno}"
    except UnicodeError:  # of bytes, or of half a character that is written with \u
        return NOT_UNICODE
    except RecursionError:
        return "too many brackets in each other"
    return "" if isinstance(row, dict) else "another value"
