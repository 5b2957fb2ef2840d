"""Writes the rows that are left: what no operator changed is written as it was read."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .entries import SCAN, skip_blank
from .reading import SUFFIX, Columns, Lines, Source, Table
from .steps import HASHES

_AS_IT_STANDS = object()


class Changes:
    """What operators made of the rows of a source."""

    def __init__(self, source: Source, columns: Columns, numbers: Sequence[int]) -> None:
        self.source = source
        self.numbers = numbers
        self.values: Columns = {}
        for name, values in columns.items():
            is_new = name not in source.columns
            if is_new or not all(map(_is_same, values, source.pick(name, numbers))):
                self.values[name] = values
        self.gone = [name for name in source.columns if name not in columns]

    def written(self, name: str) -> list[Any]:
        """Returns the values of a column; cells of a table that are as they were read, as texts."""
        values = self.values.get(name)
        if name not in self.source.columns:
            return values or []
        read = self.source.pick(name, self.numbers)
        cells = self.source.cells.get(name, self.source.columns[name])
        own = [cells[self.source.index[number]] for number in self.numbers]
        if values is None:
            return own
        return [
            cell if _is_same(value, before) else value
            for value, before, cell in zip(values, read, own, strict=True)
        ]

    def of_row(self, at: int) -> dict[str, Any]:
        """Returns the values of a row that are not as they were read."""
        known, index = self.source.columns, self.source.index[self.numbers[at]]
        return {
            name: values[at]
            for name, values in self.values.items()
            if name not in known or not _is_same(values[at], known[name][index])
        }


def write(changes: Changes, config: dict[str, Any]) -> None:
    """Writes the rows to the recipe's `export_path`, without what was computed on the way."""
    from data_juicer.utils.constant import Fields, HashKeys

    computed = {SUFFIX}
    if not config.get("keep_stats_in_res_ds"):
        computed |= {Fields.stats, Fields.meta} - changes.source.columns.keys()
    if not config.get("keep_hashes_in_res_ds"):
        computed |= {getattr(HashKeys, name) for name in HASHES}
    for name in computed & changes.values.keys():
        del changes.values[name]
    path = Path(config["export_path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = config.get("export_type") or path.suffix.lower().removeprefix(".")
    if kind == "parquet":
        _write_parquet(changes, path)
        return
    rows = _lines(changes)
    with path.open("wb") as file:
        if kind == "jsonl":
            file.writelines(row + b"\n" for row in rows)
        else:
            first = next(rows, b"")
            file.write(b"[" + first)
            file.writelines(b",\n" + row for row in rows)
            file.write(b"]\n")


def as_json(value: Any) -> bytes:
    """Returns a value as JSON; dates as ISO 8601, bytes as Base64."""
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a character
        return json.dumps(value, default=_plain).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _lines(changes: Changes) -> Iterator[bytes]:
    """Yields each row as JSON."""
    source, numbers = changes.source, changes.numbers
    if not isinstance(source, Lines):
        names = [name for name in source.columns if name not in {*changes.gone, SUFFIX}]
        for at, number in enumerate(numbers):
            index = source.index[number]
            row = {name: source.columns[name][index] for name in names}
            yield as_json({**row, **changes.of_row(at)})
        return
    for at, content in enumerate(source.contents(numbers)):
        changed = changes.of_row(at) if changes.values else {}
        if changed or changes.gone:
            yield _Rewriter(content.decode()).row(changed, changes.gone).encode()
        else:
            yield content


class _Rewriter:
    """One row of JSON as text, in which values can be changed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def row(self, changed: dict[str, Any], gone: Sequence[str]) -> str:
        """Returns the row with some members changed, added or removed."""
        begin = self._text.index("{")
        old, _end = SCAN(self._text, begin)
        new = {name: changed.get(name, _AS_IT_STANDS) for name in old if name not in gone}
        return self._value(begin, {**new, **changed})

    def _value(self, at: int, new: Any) -> str:
        """Returns the value that begins here, changed where another one differs from it."""
        old, end = SCAN(self._text, at)
        if new is _AS_IT_STANDS or (type(old) is type(new) and repr(old) == repr(new)):
            return self._text[at:end]
        if isinstance(old, dict) and isinstance(new, dict):
            return self._object(at, end, new)
        if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            begins = (begin for _, begin, _ in self._items(at))
            return self._spliced(at, end, zip(begins, new, strict=True))
        return as_json(new).decode()

    def _object(self, at: int, end: int, new: dict[str, Any]) -> str:
        members = list(self._items(at))
        added = [
            f"{json.dumps(name, ensure_ascii=False)}: {as_json(value).decode()}"
            for name, value in new.items()
            if name not in {member[0] for member in members}
        ]
        if any(name not in new for name, _, _ in members):
            kept = [
                f"{json.dumps(name, ensure_ascii=False)}: {self._value(begin, new[name])}"
                for name, begin, _ in members
                if name in new
            ]
            return f"{{{', '.join([*kept, *added])}}}"
        text = self._spliced(at, end, [(begin, new[name]) for name, begin, _ in members])
        if not added:
            return text
        comma = ", " if members else ""
        return f"{text[:-1].rstrip()}{comma}{', '.join(added)}}}"

    def _spliced(self, at: int, end: int, values: Iterable[tuple[int, Any]]) -> str:
        parts = list[str]()
        for begin, new in values:
            _old, after = SCAN(self._text, begin)
            parts += [self._text[at:begin], self._value(begin, new)]
            at = after
        return "".join([*parts, self._text[at:end]])

    def _items(self, at: int) -> Iterator[tuple[str, int, int]]:
        """Yields the members of an object, or the items of a list: name, begin and end."""
        is_object = self._text[at] == "{"
        at = skip_blank(self._text, at + 1)
        while self._text[at] not in "}]":
            name = ""
            if is_object:
                name, after = SCAN(self._text, at)
                at = skip_blank(self._text, skip_blank(self._text, after) + 1)
            _value, end = SCAN(self._text, at)
            yield name, at, end
            at = skip_blank(self._text, end)
            if self._text[at] == ",":
                at = skip_blank(self._text, at + 1)


def _is_same(value: Any, read: Any) -> bool:
    if value is read:
        return True
    if type(value) is not type(read):
        return False
    return value == read if isinstance(value, str) else repr(value) == repr(read)


def _write_parquet(changes: Changes, path: Path) -> None:
    """Writes the rows as Parquet; untouched columns of Parquet keep their types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, numbers = changes.source, changes.numbers
    table = None
    if isinstance(source, Table):
        table = source.table.take([source.index[number] for number in numbers])
    arrays: dict[str, Any] = {}
    for name in dict.fromkeys([*source.columns, *changes.values]):
        if name in changes.gone or name == SUFFIX:
            continue
        if table is None or name not in source.columns:
            arrays[name] = array_of(changes.written(name))
        elif name in changes.values:
            arrays[name] = array_of(changes.values[name], table.schema.field(name).type)
        else:
            arrays[name] = table[name]
    pq.write_table(pa.table(arrays), path)


def array_of(values: Sequence[Any], kind: Any = None) -> Any:
    """Returns values as Arrow has them; values of several types as texts of JSON."""
    import pyarrow as pa

    for each in (kind, None, pa.uint64()):
        with suppress(pa.ArrowException, OverflowError):
            array = pa.array(values, type=each)
            if "struct<>" not in str(array.type):  # which Parquet does not have
                return array
    texts = (None if value is None else as_json(value).decode() for value in values)
    return pa.array(list(texts), type=pa.string())
