"""Writes the rows that are left: what no operator changed is written as it was read."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .entries import SCAN, skip_blank
from .reading import SUFFIX, Columns, Source

HASHES = ("hash", "minhash", "simhash", "imagehash", "videohash")
"""Names that Data-Juicer's `HashKeys` has for the columns of hashes."""

_AS_IT_STANDS = object()


class Changes:
    """The differences that operators made to the rows of a source."""

    def __init__(self, source: Source, columns: Columns, numbers: Sequence[int]) -> None:
        self.source = source
        self.numbers = numbers
        self.values: Columns = {}
        for name, values in columns.items():
            is_new = name not in source.columns
            if is_new or not all(map(_is_same, values, source.pick(name, numbers))):
                self.values[name] = values
        self.gone = [name for name in source.columns if name not in columns]

    def column(self, name: str) -> list[Any]:
        """Returns the values of a column; cells of a table that are as they were read, as texts."""
        if name not in self.source.columns:
            return self.values[name]
        cells = self.source.cells.get(name, self.source.columns[name])
        own = [cells[self.source.index[number]] for number in self.numbers]
        if name not in self.values:
            return own
        read = self.source.pick(name, self.numbers)
        return [
            cell if _is_same(value, before) else value
            for value, before, cell in zip(self.values[name], read, own, strict=True)
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
        computed |= {Fields.stats, *({Fields.meta} - changes.source.columns.keys())}
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
            file.write(b"[" + next(rows, b""))
            file.writelines(b",\n" + row for row in rows)
            file.write(b"]\n")


def as_json(value: Any) -> bytes:
    """Returns a value as JSON: dates as ISO 8601, bytes as Base64, NaN and infinity as null."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=_json_value, allow_nan=False)
    except ValueError:
        plain = json.loads(
            json.dumps(value, default=_json_value), parse_constant=lambda _name: None
        )
        text = json.dumps(plain, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a character
        return json.dumps(json.loads(text)).encode()


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _lines(changes: Changes) -> Iterator[bytes]:
    """Yields each row as JSON."""
    source, numbers = changes.source, changes.numbers
    if source.table is not None:
        names = [name for name in source.columns if name not in {*changes.gone, SUFFIX}]
        for at, number in enumerate(numbers):
            index = source.index[number]
            row = {name: source.columns[name][index] for name in names}
            yield as_json({**row, **changes.of_row(at)})
        return
    for at, content in enumerate(source.lines(numbers)):
        changed = changes.of_row(at) if changes.values else {}
        if changed or changes.gone:
            yield _rewrite_row(content.decode(), changed, changes.gone).encode()
        else:
            yield content


def _rewrite_row(text: str, changed: dict[str, Any], gone: Sequence[str]) -> str:
    """Returns a row of JSON with some members changed, added or removed."""
    begin = text.index("{")
    old, _end = SCAN(text, begin)
    left = {name: _AS_IT_STANDS for name in old if name not in gone}
    return _rewrite(text, begin, {**left, **changed})


def _rewrite(text: str, at: int, new: Any) -> str:
    """Returns the value that begins here, changed where another one differs from it."""
    old, end = SCAN(text, at)
    if new is _AS_IT_STANDS or (type(old) is type(new) and repr(old) == repr(new)):
        return text[at:end]
    if isinstance(old, dict) and isinstance(new, dict):
        return _rewrite_object(text, at, end, new)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        items = zip(_items(text, at), new, strict=True)
        return _splice(text, at, end, ((begin, after, each) for (_, begin, after), each in items))
    return as_json(new).decode()


def _rewrite_object(text: str, at: int, end: int, new: dict[str, Any]) -> str:
    members = {name: (begin, after) for name, begin, after in _items(text, at)}
    added = [
        f"{as_json(name).decode()}: {as_json(value).decode()}"
        for name, value in new.items()
        if name not in members
    ]
    if members.keys() <= new.keys():
        kept = _splice(text, at, end, ((*members[name], new[name]) for name in members))
        comma = ", " if members else ""
        return f"{kept[:-1].rstrip()}{comma}{', '.join(added)}}}" if added else kept
    left = [
        f"{as_json(name).decode()}: {_rewrite(text, begin, new[name])}"
        for name, (begin, _after) in members.items()
        if name in new
    ]
    return f"{{{', '.join([*left, *added])}}}"


def _splice(text: str, at: int, end: int, changes: Iterable[tuple[int, int, Any]]) -> str:
    """Returns a part of a text in which values have changed: where each is, and the new one."""
    parts = list[str]()
    for begin, after, new in changes:
        parts += [text[at:begin], _rewrite(text, begin, new)]
        at = after
    return "".join([*parts, text[at:end]])


def _items(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yields the members of an object, or the items of a list: name, begin and end."""
    is_object = text[at] == "{"
    at = skip_blank(text, at + 1)
    while text[at] not in "}]":
        name = ""
        if is_object:
            name, after = SCAN(text, at)
            at = skip_blank(text, skip_blank(text, after) + 1)
        _value, end = SCAN(text, at)
        yield name, at, end
        at = skip_blank(text, end)
        if text[at] == ",":
            at = skip_blank(text, at + 1)


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

    source = changes.source
    table = None
    if source.table is not None:
        table = source.table.take([source.index[number] for number in changes.numbers])
    arrays: dict[str, Any] = {}
    for name in dict.fromkeys([*source.columns, *changes.values]):
        if name in changes.gone or name == SUFFIX:
            continue
        if table is None or name not in source.columns:
            arrays[name] = array_of(changes.column(name))
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
            is_whole = each is None or array.to_pylist() == values  # a given type drops new keys
            if is_whole and "struct<>" not in str(array.type):  # which Parquet does not have
                return array
    texts = (None if value is None else as_json(value).decode() for value in values)
    return pa.array(list(texts), type=pa.string())
