"""A run between its operators: the rows that are left, and where the others went."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .entries import Entry
from .failures import RecipeError
from .keeping import Kept, columns_of
from .reading import NO_TEXT, UNREADABLE, Columns, Read, chosen, rows_of
from .steps import NUMBER, Outcome, as_step
from .writing import write

_CHARACTERS = 160
"""Of a text that is shown."""


class Course:
    """A run between two operators.

    Args:
        config: The recipe.
        source: What was read.

    Attributes:
        columns: The rows that are left, with their numbers.
        steps: What each operator did.
        gone: By its number, what dropped a row.
        done: How many operators have run.

    Raises:
        RecipeError: If the rows have no such texts.
    """

    def __init__(self, config: dict[str, Any], source: Read) -> None:
        self._config = config
        self._source = source
        self.steps: list[dict[str, Any]] = []
        self.gone = {line.number: UNREADABLE for line in source.broken}
        self.done = 0
        self._read = len(source.numbers) + len(source.broken)
        if source.broken:
            self.steps.append(broken_step(source.broken, len(source.numbers)))
        columns = {**source.columns, NUMBER: source.numbers}
        self.columns = _with_text(columns, config, self.steps, self.gone)

    def go_on(self, kept: Kept | None) -> bool:
        """Goes on after the operators of which there is what they left.

        Returns:
            Whether it could be read; else this is still before the first operator.
        """
        columns = None if kept is None else columns_of(kept)
        if kept is None or columns is None:
            return False
        known = set(self._source.numbers).union(line.number for line in self._source.broken)
        if not known.issuperset([*columns.get(NUMBER, (None,)), *kept.gone]):
            return False
        self.columns, self.done, self.steps, self.gone = columns, kept.done, kept.steps, kept.gone
        return True

    def take(self, name: str, outcome: Outcome) -> None:
        """Takes what an operator has left."""
        step = as_step(
            name,
            rows_of(self.columns),
            rows_of(outcome.columns),
            seconds=outcome.seconds,
            failed=outcome.failed,
            errors=outcome.errors,
        )
        self.steps.append(step)
        self.gone.update(dict.fromkeys(outcome.dropped, name))
        self.columns = outcome.columns
        self.done += 1

    def told(self) -> dict[str, Any]:
        """What another run has to know of the operators before."""
        gone: dict[str, list[int]] = {}
        for number, name in self.gone.items():
            gone.setdefault(name, []).append(number)
        return {"done": self.done, "rows_in": self._read, "steps": self.steps, "gone": gone}

    def written(self, sample: int) -> dict[str, Any]:
        """Writes the result, and returns what came of the run with some of its rows."""
        texts = _texts(self._source, self._config)
        numbers = self.columns.pop(NUMBER)
        write(self.columns, self._source.features, self._config)
        gone = self.gone
        return {
            "engine": "direct",
            "rows_in": self._read,
            "rows_out": len(numbers),
            "steps": self.steps,
            "kept": [_shown(number, texts) for number in _first(numbers, sample)],
            "dropped": [
                {**_shown(number, texts), "operator": gone[number]}
                for number in _spread(gone, sample)
            ],
        }


def text_keys(config: dict[str, Any]) -> list[str]:
    """Returns the keys under which rows have their texts."""
    keys = config.get("text_keys") or ["text"]
    return [keys] if isinstance(keys, str) else list(keys)


def _with_text(
    columns: Columns, config: dict[str, Any], steps: list[dict[str, Any]], gone: dict[int, str]
) -> Columns:
    """The rows that have each of their texts; Data-Juicer reads no others.

    Raises:
        RecipeError: If there is no such column.
    """
    keys = text_keys(config)
    for key in keys:
        if key not in columns:
            known = ", ".join(repr(name) for name in columns if name != NUMBER)
            raise RecipeError(
                f"text_keys: the rows have no field {key!r}; they have {known}.",
                "Name one of these fields.",
            )
    keep = [all(columns[key][at] is not None for key in keys) for at in range(rows_of(columns))]
    if all(keep):
        return columns
    steps.append(as_step(NO_TEXT, len(keep), sum(keep)))
    dropped = (number for number, kept in zip(columns[NUMBER], keep, strict=True) if not kept)
    gone.update(dict.fromkeys(dropped, NO_TEXT))
    return chosen(columns, keep)


def broken_step(broken: list[Entry], rows: int) -> dict[str, Any]:
    """Returns the lines that were left out as a step, with what was wrong with the first.

    Args:
        broken: The lines.
        rows: How many rows are left.
    """
    return as_step(UNREADABLE, rows + len(broken), rows, failed=len(broken), errors=broken)


def _texts(source: Read, config: dict[str, Any]) -> dict[int, Any]:
    """The text of each row as it was read, and what could not be read, by their numbers."""
    texts = source.columns.get(text_keys(config)[0], [])
    return {
        **dict(zip(source.numbers, texts, strict=bool(texts))),
        **{line.number: line.text for line in source.broken},
    }


def _shown(number: int, texts: dict[int, Any]) -> dict[str, Any]:
    text = texts[number]
    return {"row": number + 1, "text": "" if text is None else str(text)[:_CHARACTERS]}


def _first(numbers: list[int], sample: int) -> list[int]:
    return list(dict.fromkeys(numbers[: sample * 2]))[:sample]


def _spread(gone: dict[int, str], sample: int) -> list[int]:
    """The first rows that each operator dropped, as many of each."""
    share = max(sample // max(len(set(gone.values())), 1), 1)
    taken: Counter[str] = Counter()
    shown = []
    for number, operator in sorted(gone.items()):
        taken[operator] += 1
        if taken[operator] <= share:
            shown.append(number)
    return shown[:sample]
