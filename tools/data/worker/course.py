"""A run between its operators: the rows that are left, and where the others went."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .failures import RecipeError
from .keeping import Kept, columns_of
from .reading import NO_TEXT, UNREADABLE, Columns, Source, chosen, rows_of
from .steps import NUMBER, Outcome, as_step
from .texts import fields_of, joined
from .writing import Changes, write

_CHARACTERS = 160
"""Characters of a text that are shown."""


class Course:
    """A run between two operators."""

    def __init__(self, config: dict[str, Any], source: Source) -> None:
        self._config = config
        self._source = source
        self.steps: list[dict[str, Any]] = []
        self.gone = dict.fromkeys(source.broken, UNREADABLE)
        self.done = 0
        self._read = len(source.numbers) + len(source.broken)
        if source.broken:
            broken = list(source.broken.values())
            rows, many = len(source.numbers), len(broken)
            step = as_step(UNREADABLE, rows + many, rows, failed=many, errors=broken)
            self.steps.append(step)
        columns = {name: source.copy(name, source.numbers) for name in source.columns}
        self.columns = self._with_text({**columns, NUMBER: source.numbers})

    @property
    def changes(self) -> Changes:
        """What became of the rows since they were read."""
        columns = {name: values for name, values in self.columns.items() if name != NUMBER}
        return Changes(self._source, columns, self.columns[NUMBER])

    def resume(self, kept: Kept | None) -> bool:
        """Continues after the operators of which there is what they left.

        Returns:
            Whether it could be read; else this is still before the first operator.
        """
        columns = None if kept is None else columns_of(kept)
        if kept is None or columns is None:
            return False
        numbers = columns.get(NUMBER, [None])
        known = {*self._source.numbers, *self._source.broken}
        if not known.issuperset([*numbers, *kept.gone]):
            return False
        carried = {
            name: self._source.copy(name, numbers)
            for name in self._source.columns
            if name not in kept.removed
        }
        self.columns = {**carried, **columns}
        self.done, self.steps, self.gone = kept.done, kept.steps, kept.gone
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

    def told(self, changes: Changes) -> dict[str, Any]:
        """Returns what another run has to know of the operators before."""
        gone: dict[str, list[int]] = {}
        for number, name in self.gone.items():
            gone.setdefault(name, []).append(number)
        return {
            "done": self.done,
            "rows_in": self._read,
            "steps": self.steps,
            "gone": gone,
            "removed": changes.gone,
        }

    def write(self, sample: int, columns: Columns) -> dict[str, Any]:
        """Writes the result, and returns what came of the run with some of its rows."""
        self.columns = columns
        changes, numbers = self.changes, self.columns[NUMBER]
        key = text_keys(self._config)[0]
        left = {number: at for at, number in reversed(list(enumerate(numbers)))}

        def shown(number: int, rows: Columns, places: dict[int, int]) -> dict[str, Any]:
            if number in self._source.broken:
                text = self._source.broken[number].text
            else:
                fields = fields_of(key, rows) or []
                text = joined([rows[name][places[number]] for name in fields])
            return {"row": number + 1, "text": text[:_CHARACTERS]}

        answer = {
            "engine": "direct",
            "rows_in": self._read,
            "rows_out": len(numbers),
            "steps": self.steps,
            "kept": [
                shown(number, self.columns, left)
                for number in list(dict.fromkeys(numbers[: sample * 2]))[:sample]
            ],
            "dropped": [
                {
                    **shown(number, self._source.columns, self._source.index),
                    "operator": self.gone[number],
                }
                for number in _spread(self.gone, sample)
            ],
        }
        write(changes, self._config)
        return answer

    def _with_text(self, columns: Columns) -> Columns:
        """The rows that have each of their texts; Data-Juicer reads no others."""
        rows = range(rows_of(columns))
        keep = [True for _row in rows]
        for key in text_keys(self._config):
            fields = fields_of(key, columns)
            if fields is None:
                known = ", ".join(repr(name) for name in columns if name != NUMBER)
                raise RecipeError(
                    f"text_keys: the rows have no field {key!r}; they have {known}.",
                    "Name one of these fields.",
                )
            for row in rows:
                keep[row] = keep[row] and any(columns[name][row] is not None for name in fields)
        if all(keep):
            return columns
        self.steps.append(as_step(NO_TEXT, len(keep), sum(keep)))
        numbers = zip(columns[NUMBER], keep, strict=True)
        self.gone.update((number, NO_TEXT) for number, kept in numbers if not kept)
        return chosen(columns, keep)


def text_keys(config: dict[str, Any]) -> list[str]:
    """Returns the keys under which rows have their texts."""
    keys = config.get("text_keys") or ["text"]
    return [keys] if isinstance(keys, str) else list(keys)


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
