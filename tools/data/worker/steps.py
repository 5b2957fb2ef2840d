"""Operators, called directly on columns: as Data-Juicer calls them, without its passes over disks.

Each row carries its number, so that it is known which of them an operator dropped.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .channel import Call, CancelledError
from .failures import MISSING, AllRowsError, MissingPackageError, OperatorError, RecipeError
from .reading import Columns, chosen, rows_of
from .texts import fields_of, joined, texts_in, with_texts

NUMBER = "__toolcrib_row__"
"""The column with the number of each row."""

_BY_HASH = (
    "document_deduplicator",
    "document_minhash_deduplicator",
    "document_simhash_deduplicator",
    "image_deduplicator",
    "video_deduplicator",
)
"""Deduplicators that compare nothing but the hashes that they have computed."""

HASHES = ("hash", "minhash", "simhash", "imagehash", "videohash")
"""Names that Data-Juicer's `HashKeys` has for the columns of hashes."""

MOST_ERRORS = 3
"""Errors of rows that are quoted of one operator."""


class Outcome:
    """What an operator did."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.dropped: list[int] = []
        self.errors: list[str] = []
        self.failed = 0
        self.seconds = 0.0


def as_step(  # all that is told of one
    operator: str,
    rows_in: int,
    rows_out: int,
    *,
    seconds: float = 0.0,
    failed: int = 0,
    errors: Sequence[object] = (),
) -> dict[str, Any]:
    """Returns an operator, or what stands for the reader, as `StepReport` has it."""
    return {
        "operator": operator,
        "rows_in": rows_in,
        "rows_out": rows_out,
        "seconds": round(seconds, 3),
        "failed": failed,
        "errors": list(map(str, errors[:MOST_ERRORS])),
    }


def make_operators(process: list[dict[str, Any]], common: dict[str, Any]) -> list[Any]:
    """Makes the operators of a recipe."""
    from data_juicer.core.preflight import PipelineConfigError, pre_instantiation_check
    from data_juicer.ops.base_op import OPERATORS

    try:
        pre_instantiation_check(process)
    except PipelineConfigError as error:
        raise RecipeError("; ".join(map(str, error.errors))) from error
    operators = []
    for each in process:
        [(name, given)] = each.items()
        try:
            operators.append(OPERATORS.modules[name](**{**common, **(given or {})}))
        except Exception as error:
            raise OperatorError(name, error) from error
    return operators


def can_run(operator: Any) -> bool:
    """Returns whether an operator can be called directly."""
    from data_juicer.ops.base_op import Deduplicator, Filter, Mapper, Selector

    kinds = (Mapper, Filter, Selector)
    is_known = isinstance(operator, kinds) or (
        isinstance(operator, Deduplicator) and operator._name in _BY_HASH
    )
    return is_known and operator.index_key is None and not operator.use_cuda()


def run_operator(operator: Any, columns: Columns, call: Call) -> Outcome:
    """Runs an operator on all rows."""
    from data_juicer.ops.base_op import Deduplicator, Filter, Selector
    from loguru import logger

    started = time.perf_counter()
    outcome = Outcome({})
    before = Counter(columns[NUMBER])

    missing: list[str] = []

    def note(message: Any) -> None:
        outcome.failed += 1
        if found := MISSING.search(str(message)):
            missing.append(found[1])
        text = str(message).split(" -- ", 1)[0].strip()
        if text not in outcome.errors and len(outcome.errors) < MOST_ERRORS:
            outcome.errors.append(text)

    sink = logger.add(note, level="ERROR", format="{message}")
    texts = _Texts(columns, operator.text_key)
    try:
        if isinstance(operator, Filter):
            outcome.columns = _filter(operator, texts, call)
        elif isinstance(operator, Deduplicator):
            outcome.columns = _deduplicate(operator, texts, call)
        elif isinstance(operator, Selector):
            outcome.columns = _select(operator, texts)
        else:
            outcome.columns = texts.map(operator, call)
    except CancelledError:
        raise
    except Exception as error:
        raise OperatorError(operator._name, error) from error
    finally:
        logger.remove(sink)
    # Data-Juicer goes on, without the rows that failed of it.
    if missing:
        raise OperatorError(operator._name, MissingPackageError(missing[0]))
    _check_left(operator, outcome)
    outcome.dropped = sorted(before.keys() - set(outcome.columns[NUMBER]))
    outcome.seconds = time.perf_counter() - started
    return outcome


class _Texts:
    """Rows as operators see them, which expect one text in each."""

    def __init__(self, columns: Columns, key: str) -> None:
        self.columns = columns
        self._key = key
        self._fields = fields_of(key, columns) or []
        plain = self._fields == [key] and set(map(type, columns[key])) <= {str, type(None)}
        self._is_plain = plain or not self._fields

    def seen(self, join: Callable[[Sequence[Any]], str] = joined) -> Columns:
        """Returns the rows with all texts of a row as one."""
        if self._is_plain:
            return self.columns
        values = zip(*(self.columns[name] for name in self._fields), strict=True)
        return {**self.columns, self._key: list(map(join, values))}

    def restored(self, seen: Columns) -> Columns:
        """Returns rows with their own texts, and what was computed of them."""
        computed = {name: values for name, values in seen.items() if name != self._key}
        return seen if self._is_plain else {**self.columns, **computed}

    def map(self, operator: Any, call: Call) -> Columns:
        """Returns the rows as a mapper leaves them, which sees each text by itself."""
        columns = _with_column(operator, self.columns)
        if self._is_plain:
            return _map(operator.process, operator, columns, call)
        rows = range(rows_of(columns))
        texts = [
            [text for name in self._fields for text in texts_in(columns[name][row])] for row in rows
        ]
        owners = [row for row in rows for _text in texts[row]]
        others = {
            name: [values[row] for row in owners]
            for name, values in columns.items()
            if name not in self._fields
        }
        flat = {**others, self._key: [text for each in texts for text in each]}
        mapped = _map(operator.process, operator, flat, call)
        if rows_of(mapped) != len(owners):
            raise ValueError("it makes several rows of a text, which a row with several texts bars")
        changed = iter(mapped.pop(self._key))
        own: Columns = {name: [] for name in self._fields}
        for row in rows:
            for name, values in own.items():
                value = columns[name][row]
                made = with_texts(value, changed)
                values.append(value if made == value else made)
        firsts = {row: at for at, row in reversed(list(enumerate(owners)))}
        for name, values in mapped.items():
            before = columns.get(name, [None] * len(rows))
            own[name] = [values[firsts[row]] if row in firsts else before[row] for row in rows]
        return {**columns, **own}


def _check_left(operator: Any, outcome: Outcome) -> None:
    """Goes on where something is left, or nothing has failed."""
    if outcome.errors and not rows_of(outcome.columns):
        raise OperatorError(operator._name, AllRowsError(outcome.errors[0]))


def _with_column(operator: Any, columns: Columns) -> Columns:
    """The columns with the one that an operator writes what it finds into."""
    from data_juicer.ops.base_op import NON_STATS_FILTERS, TAGGING_OPS, Filter
    from data_juicer.utils.constant import Fields

    name = operator._name
    wanted = []
    if name in TAGGING_OPS.modules:
        wanted.append(Fields.meta)
    if isinstance(operator, Filter) and name not in NON_STATS_FILTERS.modules:
        wanted.append(Fields.stats)
    none = [None] * rows_of(columns)
    return {
        **columns,
        **{name: [value or {} for value in columns.get(name, none)] for name in wanted},
    }


def _batches(columns: Columns, size: int, call: Call) -> Any:
    for start in range(0, rows_of(columns), size):
        call.check()
        yield {name: values[start : start + size] for name, values in columns.items()}


def _map(function: Any, operator: Any, columns: Columns, call: Call) -> Columns:
    """The columns as a function of an operator leaves them."""
    size = max(operator.batch_size, 1) if operator.is_batched_op() else 1
    if size == 1:
        call.check()
    made: Columns = {}
    for number, batch in enumerate(_batches(columns, size, call)):
        changed = {**batch, **function(dict(batch))}
        if len({len(values) for values in changed.values()}) > 1:
            raise ValueError("it changed the number of rows in some columns and not in others")
        if number == 0:
            made = {name: [] for name in changed}
        for name, values in changed.items():
            if name not in made:  # skipped rows had no such column
                made[name] = [None] * rows_of(made)
            made[name].extend(values)
        for name in made.keys() - changed.keys():
            made[name].extend([None] * rows_of(changed))
    return made or columns


def _filter(operator: Any, texts: _Texts, call: Call) -> Columns:
    seen = _with_column(operator, texts.seen())
    computed = _map(operator.compute_stats, operator, seen, call)
    size = max(operator.batch_size, 1) if operator.is_batched_op() else 1
    keep: list[bool] = []
    for batch in _batches(computed, size, call):
        keep.extend(map(bool, operator.process(batch)))
    return chosen(texts.restored(computed), keep)


def _deduplicate(operator: Any, texts: _Texts, call: Call) -> Columns:
    """Compares what it has computed of each row, which Data-Juicer does over a dataset."""
    from data_juicer.utils.constant import HashKeys

    if not rows_of(texts.columns):
        return texts.columns
    # Chats that differ in a call of a tool are not the same, and may have the same texts.
    is_exact = operator._name == "document_deduplicator"
    seen = texts.seen(partial(json.dumps, ensure_ascii=False)) if is_exact else texts.seen()
    hashed = _map(operator.compute_hash, operator, seen, call)
    names = [getattr(HashKeys, name) for name in HASHES]
    own = {name: hashed[name] for name in names if name in hashed}
    if is_exact:  # the same, without a pass over a dataset
        firsts = dict(reversed(list(zip(own[HashKeys.hash], range(rows_of(hashed)), strict=True))))
        kept = sorted(firsts.values())
    else:
        kept = _places(operator.process, own, rows_of(hashed))
    return {
        name: [values[place] for place in kept] for name, values in texts.restored(hashed).items()
    }


def _select(operator: Any, texts: _Texts) -> Columns:
    """Returns the rows that an operator chooses which has to see all rows at once.

    It is given the fields that its parameters name; what they hold is not written.
    """
    named = {value.partition(".")[0] for value in vars(operator).values() if isinstance(value, str)}
    seen = {name: values for name, values in texts.seen().items() if name in named}
    kept = _places(operator.process, seen, rows_of(texts.columns))
    return {name: [values[place] for place in kept] for name, values in texts.columns.items()}


def _places(process: Any, columns: Columns, rows: int) -> list[int]:
    """The places of the rows that an operator leaves of a dataset."""
    import datasets
    from data_juicer.core.data import NestedDataset

    places = "__toolcrib_place__"
    made = process(NestedDataset.from_dict({**columns, places: list(range(rows))}))
    left = datasets.Dataset.select_columns(made[0] if isinstance(made, tuple) else made, [places])
    return list(datasets.Dataset.__getitem__(left, slice(0, len(left)))[places])
