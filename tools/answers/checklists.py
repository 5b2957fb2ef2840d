"""Common parts of to-do lists and plans: IDs, and the format of a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from tools.core.errors import InvalidArgumentsError

ItemId = Annotated[str, Field(pattern=r"^[!-~]{1,64}$", coerce_numbers_to_str=True)]
"""Identifies an item in its list; many agents send numbers."""

_MARKS = {"completed": "x", "in_progress": ">", "failed": "!", "skipped": "-"}


def checklist_line(status: str, item_id: str, said: str) -> str:
    """Formats one line: `[x] 1. Write the tests`."""
    return f"[{_MARKS.get(status, ' ')}] {item_id}. {' '.join(said.split())}"


def shortened(text: str, characters: int) -> str:
    """Shortens a text to one line."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[: characters - 1]}…"


def check_distinct(parameter: str, ids: Iterable[str | None]) -> None:
    """Rejects duplicate IDs; missing ones are generated later."""
    given = [each for each in ids if each]
    if len(set(given)) < len(given):
        twice = sorted(each for each, times in Counter(given).items() if times > 1)
        raise InvalidArgumentsError(
            f"{parameter}: more than one has the id {', '.join(map(repr, twice))}.",
            next_actions=["Give each its own id, or leave the id of new ones out."],
        )
