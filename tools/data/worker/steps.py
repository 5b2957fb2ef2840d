"""Operators, called directly on columns: as Data-Juicer calls them, without its passes over disks.

Each row carries its number, so that it is known which of them an operator dropped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from .failures import MISSING, AllRowsError, MissingPackageError, OperatorError, RecipeError
from .reading import NUMBER, Columns, compress_rows, rows_of, take_rows
from .texts import fields_of, joined, texts_in, with_texts
from .writing import HASHES, array_of

UNREADABLE, NO_TEXT = "(not readable)", "(no text)"
"""Steps of the reader, which leaves out what is not a row, and rows without a text."""

_BY_HASH = (
    "document_deduplicator",
    "document_minhash_deduplicator",
    "document_simhash_deduplicator",
    "image_deduplicator",
    "video_deduplicator",
)
"""Deduplicators that compare nothing but the hashes that they have computed."""

_MOST_ERRORS = 3  # of rows that are quoted of one operator


class Outcome(NamedTuple):
    """The rows that an operator left, and the numbers of those that it dropped."""

    columns: Columns
    step: dict[str, Any]
    dropped: list[int]


def as_step(
    operator: str,
    rows_in: int,
    rows_out: int,
    *,
    seconds: float = 0.0,
    failed: int = 0,
    errors: Sequence[object] = (),
) -> dict[str, Any]:
    """Returns a `StepReport` of an operator or of the reader."""
    return {
        "operator": operator,
        "rows_in": rows_in,
        "rows_out": rows_out,
        "seconds": round(seconds, 3),
        "failed": failed,
        "errors": list(map(str, errors[:_MOST_ERRORS])),
    }


def load_own_operators(paths: Sequence[str]) -> None:
    """Loads operators of the user's own, whose code runs in this process from now on."""
    try:
        from data_juicer.config.config import load_custom_operators

        load_custom_operators(paths)
    except Exception as error:  # Data-Juicer raises another error while it handles the cause
        raise OperatorError("in custom_operator_paths", error.__context__ or error) from error


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

    is_known = isinstance(operator, Mapper | Filter | Selector) or (
        isinstance(operator, Deduplicator) and operator._name in _BY_HASH
    )
    return is_known and operator.index_key is None and not operator.use_cuda()


def run_operator(operator: Any, columns: Columns) -> Outcome:
    """Runs an operator on all rows."""
    from loguru import logger

    started, failed = time.perf_counter(), 0
    missing, errors = list[str](), list[str]()

    def note(message: Any) -> None:
        nonlocal failed
        failed += 1
        if found := MISSING.search(str(message)):
            missing.append(found[1])
        text = str(message).split(" -- ", 1)[0].strip()
        if text not in errors and len(errors) < _MOST_ERRORS:
            errors.append(text)

    name, before = operator._name, list(columns[NUMBER])
    sink = logger.add(note, level="ERROR", format="{message}")
    try:
        left = _run(operator, _Texts(columns, operator.text_key))
    except Exception as error:
        raise OperatorError(name, error) from error
    finally:
        logger.remove(sink)
    # Data-Juicer continues without the rows that failed.
    if missing:
        raise OperatorError(name, MissingPackageError(missing[0]))
    if errors and not rows_of(left):
        raise OperatorError(name, AllRowsError(errors[0]))
    seconds = time.perf_counter() - started
    step = as_step(name, len(before), rows_of(left), seconds=seconds, failed=failed, errors=errors)
    return Outcome(left, step, sorted({*before} - {*left[NUMBER]}))


def _run(operator: Any, texts: _Texts) -> Columns:
    from data_juicer.ops.base_op import Deduplicator, Filter, Selector

    if isinstance(operator, Filter):
        return _filter(operator, texts)
    if isinstance(operator, Deduplicator):
        return _deduplicate(operator, texts)
    return _select(operator, texts) if isinstance(operator, Selector) else texts.map(operator)


class _Texts:
    """Rows as operators see them, which expect one text in each."""

    def __init__(self, columns: Columns, key: str) -> None:
        self.columns = columns
        self._key = key
        self._fields = fields_of(key, columns) or []
        plain = self._fields == [key] and set(map(type, columns[key])) <= {str, type(None)}
        self._is_plain = plain or not self._fields

    def join(self, join: Callable[[Sequence[Any]], str] = joined) -> Columns:
        """Returns the rows with all texts of a row as one."""
        if self._is_plain:
            return self.columns
        values = zip(*(self.columns[name] for name in self._fields), strict=True)
        return {**self.columns, self._key: list(map(join, values))}

    def restore(self, seen: Columns) -> Columns:
        """Returns rows with their own texts, and what was computed of them."""
        computed = {name: values for name, values in seen.items() if name != self._key}
        return seen if self._is_plain else {**self.columns, **computed}

    def map(self, operator: Any) -> Columns:
        """Returns the rows as a mapper leaves them, which sees each text by itself."""
        columns = _with_column(operator, self.columns)
        if self._is_plain:
            return _map(operator.process, operator, columns)
        texts = [
            (row, text)
            for name in self._fields
            for row, value in enumerate(columns[name])
            for text in texts_in(value)
        ]
        owners = [row for row, _text in texts]
        others = {name: each for name, each in columns.items() if name not in self._fields}
        given = {**take_rows(others, owners), self._key: [text for _row, text in texts]}
        mapped = _map(operator.process, operator, given)
        if rows_of(mapped) != len(owners):
            raise ValueError(f"it makes several rows of a text, {self._why_not_several(owners)}")
        if self._key not in mapped:
            raise ValueError("it removes the text, which a row with several texts bars")
        changed = iter(mapped.pop(self._key))
        own = {name: [with_texts(each, changed) for each in columns[name]] for name in self._fields}
        firsts = {row: at for at, row in reversed(list(enumerate(owners)))}
        none = [None] * rows_of(columns)
        for name, values in mapped.items():
            before = enumerate(columns.get(name, none))
            own[name] = [values[firsts[row]] if row in firsts else value for row, value in before]
        return {**columns, **own}

    def _why_not_several(self, owners: list[int]) -> str:
        if len(self._fields) > 1 or len(set(owners)) < len(owners):
            return "which a row with several texts bars"
        kinds = {type(value).__name__ for value in self.columns[self._key]} - {"str", "NoneType"}
        return f"and {self._key!r} holds other values than texts ({', '.join(sorted(kinds))})"


def _with_column(operator: Any, columns: Columns) -> Columns:
    """Returns the columns with the one that an operator writes what it finds into."""
    from data_juicer.ops.base_op import NON_STATS_FILTERS, TAGGING_OPS, Filter
    from data_juicer.utils.constant import Fields

    wanted = []
    if operator._name in TAGGING_OPS.modules:
        wanted.append(Fields.meta)
    if isinstance(operator, Filter) and operator._name not in NON_STATS_FILTERS.modules:
        wanted.append(Fields.stats)
    none = [None] * rows_of(columns)
    return columns | {name: [each or {} for each in columns.get(name, none)] for name in wanted}


def _batches(columns: Columns, operator: Any) -> Iterator[Columns]:
    size = max(operator.batch_size, 1) if operator.is_batched_op() else 1
    for start in range(0, rows_of(columns), size):
        yield {name: values[start : start + size] for name, values in columns.items()}


def _map(function: Any, operator: Any, columns: Columns) -> Columns:
    """Returns the columns as a function of an operator leaves them."""
    made: Columns = {}
    for batch in _batches(columns, operator):
        given = dict(batch)
        changed = function(given)
        if changed is not given:  # else the function may have removed columns
            changed = {**batch, **changed}
        if len({len(values) for values in changed.values()}) > 1:
            raise ValueError("it changed the number of rows in some columns and not in others")
        before, more = rows_of(made), rows_of(changed)
        for name in changed:
            if name not in made:  # skipped rows have no such column
                made[name] = [None] * before
        for name, values in made.items():
            values.extend(changed.get(name) or [None] * more)
    return made or columns


def _filter(operator: Any, texts: _Texts) -> Columns:
    seen = _with_column(operator, texts.join())
    computed = _map(operator.compute_stats, operator, seen)
    keep: list[bool] = []
    for batch in _batches(computed, operator):
        keep.extend(map(bool, operator.process(batch)))
    return compress_rows(texts.restore(computed), keep)


def _deduplicate(operator: Any, texts: _Texts) -> Columns:
    """Compares what it has computed of each row, which Data-Juicer does over a dataset."""
    from data_juicer.utils.constant import HashKeys

    if not rows_of(texts.columns):
        return texts.columns
    # Chats that differ in a call of a tool are not the same, and may have the same texts.
    is_exact = operator._name == "document_deduplicator"
    seen = texts.join(partial(json.dumps, ensure_ascii=False)) if is_exact else texts.join()
    hashed = _map(operator.compute_hash, operator, seen)
    names = [getattr(HashKeys, name) for name in HASHES]
    own = {name: hashed[name] for name in names if name in hashed}
    if is_exact:  # the same, without a pass over a dataset
        firsts = dict(reversed(list(zip(own[HashKeys.hash], range(rows_of(hashed)), strict=True))))
        kept = sorted(firsts.values())
    else:
        kept = _places(operator, own, rows_of(hashed))
    return take_rows(texts.restore(hashed), kept)


def _select(operator: Any, texts: _Texts) -> Columns:
    """Returns the rows that an operator chooses which has to see all rows at once.

    Those of the release are given the fields that their parameters name, whose values are not
    written; those of the user's own all fields.
    """
    seen = texts.join()
    if type(operator).__module__.startswith("data_juicer."):
        texts_given = (value for value in vars(operator).values() if isinstance(value, str))
        named = {value.partition(".")[0] for value in texts_given}
        seen = {name: values for name, values in seen.items() if name in named}
    else:
        seen = {name: array_of(values) for name, values in seen.items()}
    return take_rows(texts.columns, _places(operator, seen, rows_of(texts.columns)))


def _places(operator: Any, columns: Columns, rows: int) -> list[int]:
    """Returns the places of the rows that an operator leaves of a dataset."""
    import datasets
    import pyarrow as pa
    from data_juicer.core.data import NestedDataset

    places = "__toolcrib_place__"
    arrays = {}
    for name, values in {**columns, places: list(range(rows))}.items():
        try:
            arrays[name] = values if isinstance(values, pa.Array) else pa.array(values)
        except (pa.ArrowException, OverflowError) as error:
            raise RecipeError(
                f"{operator._name} cannot compare the values of {name!r}: they must have one type,"
                f" and integers be below 2**63 ({error}).",
                "Leave the operator out, or name another field.",
            ) from error
    dataset = NestedDataset(datasets.Dataset(pa.table(arrays)))
    made = operator.process(dataset)
    left = datasets.Dataset.select_columns(made[0] if isinstance(made, tuple) else made, [places])
    return list(datasets.Dataset.__getitem__(left, slice(0, len(left)))[places])
