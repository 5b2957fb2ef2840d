"""Views of a large result: as text, as JSON and as rows; and what a preview shows of it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tools.core.result import compact

PIECE = 1_000
"""Maximum characters of a line; longer ones are shown as several."""

MOST_DEPTH = 6
MOST_KEYS = 12
"""How deep, and how wide, a preview describes JSON."""

ENCODED = re.compile(r"([\w+/=-]{30})[\w+/=-]{170,}", re.ASCII)
"""Base64 and such, of which a model needs only the beginning."""

MOST_ABRIDGED = 50
"""Maximum keys of an object in abridged JSON."""


@dataclass(frozen=True)  # no slots: cached_property stores its value
class View:
    """A large result.

    Attributes:
        text: The text, or the JSON with one key on each line.
        value: The JSON value; None if it is plain text.
    """

    text: str
    value: Any = None

    @classmethod
    def of(cls, text: str, structured: dict[str, Any]) -> View:
        """Creates the view of a result, whose text may be JSON, or the same as its structure."""
        value: Any = structured or None
        texts = ((name, each) for name, each in structured.items() if isinstance(each, str))
        name, longest = max(texts, key=lambda each: len(each[1]), default=("", ""))
        if longest and 2 * len(longest) >= len(text):
            if len(structured) > 1 and (inner := _parsed(longest)) is not None:
                return cls.of_value({**structured, name: inner})
            value, text = None, longest if len(structured) == 1 else text
        parsed = _parsed(text)
        if value is None or (parsed is not None and value == {"result": parsed}):
            value = parsed
        return cls(text) if value is None else cls.of_value(value)

    @classmethod
    def of_value(cls, value: Any) -> View:  # noqa: ANN401  # any JSON value
        """Creates the view of a JSON value."""
        return cls(json.dumps(value, ensure_ascii=False, indent=1), value)

    def lines(self) -> list[str]:
        """Returns the lines, the long ones in pieces."""
        return [
            line[start : start + PIECE]
            for line in self.text.splitlines()
            for start in range(0, max(len(line), 1), PIECE)
        ]

    @cached_property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Each list of objects in the JSON by its path; a CSV or TSV text is `$`."""
        if self.value is not None:
            return dict(_tables(self.value, "$", 0))
        rows = _delimited(self.text)
        return {"$": rows} if rows else {}

    def preview(self, room: int, tail: float = 0.25) -> str:
        """Describes the result and shows its beginning, within about `room` characters.

        `tail` is the share of the room for the end of a text; tables get their beginning only.
        """
        tables = {path: rows for path, rows in self.tables.items() if len(rows) > 1}
        if self.value is not None:
            outline = "\n".join(_outline(self.value, "$", 0))[: room // 2]
            shown = "".join(
                f"\nFirst of {len(rows)} at {path}: {compact(abridged(rows[0], 200))}"
                for path, rows in list(tables.items())[:1]
            )
            return (outline + shown)[:room]
        head = "Rows with the columns " + ", ".join(tables["$"][0]) + "\n" if tables else ""
        lines = View(without_encoded(self.text)).lines()
        front = _fitting(lines, int(room * (1 - tail)) - len(head))
        back = _fitting(lines[len(front) :][::-1], int(room * tail))[::-1] if not tables else []
        left = len(lines) - len(front) - len(back)
        return head + "\n".join([*front, f"[… {left} lines …]", *back])

    def measure(self) -> str:
        """Says what the result is and how large."""
        kinds = [f"{len(rows)} rows at {path}" for path, rows in self.tables.items()]
        kind = "text" if self.value is None else "JSON"
        length = len(self.text) if self.value is None else len(compact(self.value))
        count = len(self.lines())
        return ", ".join([kind, f"{length} characters", f"{count} lines", *kinds[:3]])


def without_encoded(text: str) -> str:
    """Returns a text with the beginnings of Base64 and such."""
    return ENCODED.sub(lambda found: f"{found[1]}… [{len(found[0])} characters]", text)


def abridged(value: Any, size: int, items: int = 3, depth: int = MOST_DEPTH) -> Any:  # noqa: ANN401  # any JSON value
    """Returns JSON of the same shape with shorter texts and the first items of each list."""
    if isinstance(value, str) and len(value) > size:
        start = without_encoded(value[: max(size, 200)])[:size]
        return f"{start}… [{len(value)} characters]"
    if isinstance(value, list):
        return [
            abridged(each, size, items, depth - 1) for each in value[: items if depth > 0 else 0]
        ]
    if isinstance(value, dict):
        few = list(value.items())[:MOST_ABRIDGED]
        return {key: abridged(each, size, items, depth - 1) for key, each in few}
    return value


def _parsed(text: str) -> Any:  # noqa: ANN401  # any JSON value
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text) or None
    except (ValueError, RecursionError):
        return None


def _tables(value: Any, path: str, depth: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:  # noqa: ANN401  # any JSON value
    if depth > MOST_DEPTH:
        return
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        yield path, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _tables(each, f"{path}{_step(key)}", depth + 1)


def _outline(value: Any, path: str, depth: int) -> Iterator[str]:  # noqa: ANN401  # any JSON value
    if isinstance(value, dict) and depth < MOST_DEPTH:
        yield f"{path}: object with {len(value)} keys: {', '.join(list(value)[:MOST_KEYS])}"
        for key, each in list(value.items())[:MOST_KEYS]:
            yield from _outline(each, f"{path}{_step(key)}", depth + 1)
    elif isinstance(value, list):
        yield f"{path}: list of {len(value)}"
        if value and depth < MOST_DEPTH:
            yield from _outline(value[0], f"{path}[0]", depth + 1)
    else:
        yield f"{path}: {'text' if isinstance(value, str) else type(value).__name__}"


def _step(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"


def _delimited(text: str) -> list[dict[str, Any]]:
    lines = text.splitlines()
    for sign in ("\t", ",", ";"):
        width = lines[0].count(sign) if lines else 0
        if width and len(lines) > 1 and all(each.count(sign) >= width for each in lines[:20]):
            rows = csv.DictReader(lines, delimiter=sign, restkey="", restval="")
            try:
                return [{key: value for key, value in row.items() if key} for row in rows]
            except csv.Error:
                return []
    return []


def _fitting(lines: list[str], room: int) -> list[str]:
    taken: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        taken.append(line)
    return taken
