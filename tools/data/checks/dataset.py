"""Checks that the data of a recipe can be read, and the result be written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from tools.core.errors import InvalidArgumentsError, ToolError
from tools.data.catalogue.catalogue import ANY, Catalogue, WayToLoad
from tools.data.checks.findings import Findings, faults
from tools.data.checks.rows import first_rows, is_directory
from tools.data.recipe import DatasetSource, DatasetSpec, Executor
from tools.data.worker.agreed import AGAIN, media_folder
from tools.data.worker.entries import ROW_FORMS, SEPARATORS, SKIPS_ROWS, form_of, way_out
from tools.data.worker.texts import fields_of
from tools.sandbox.files.sandbox import Sandbox

TEXT_KEY = "text"
"""Where a sample has its text unless `text_keys` says otherwise."""

_REMOTE = re.compile(r"(?:s3|hdfs)://", re.IGNORECASE)

_SHARED = ("type", "source", "weight")
"""Keys that every place of a mixture may have."""

_PARQUET = b"PAR1"
_PARQUET_ENDS = {_PARQUET, b"PARE"}
"""The latter marks a file whose description is encrypted."""

_PARQUET_TAIL = 8
"""Bytes at the end of a Parquet file: the length of its description, and a mark."""


def check_dataset(
    spec: DatasetSpec, executor: Executor, catalogue: Catalogue, sandbox: Sandbox
) -> Findings:
    """Checks that its data exist and can be read, and that the result can be written."""
    check = _Check(executor, catalogue, sandbox)
    findings = Findings([*check.origin(spec), *check.export(spec)])
    known = catalogue.validators
    for place, each in enumerate(spec.validators or ()):
        if (given := each.get("type")) not in known:
            fault = f"`validators[{place}].type` is {given!r}; send {', '.join(known)}."
            findings.errors.append(fault)
    if spec.text_keys == []:
        findings.errors.append("`text_keys` is empty; leave it out, or name a key.")
    for path in spec.local_paths:
        findings.add(check.local(path, spec))
    return findings


def find_text_keys(spec: DatasetSpec, sandbox: Sandbox) -> tuple[DatasetSpec, list[str]]:
    """Returns the spec with the key of the longest texts, where it names none, and a note."""
    if spec.text_keys is not None:
        return spec, []
    files = (path for path in spec.local_paths if not is_directory(sandbox, path))
    read = [first_rows(sandbox, path) for path in files]
    rows = next((each for each in read if each is not None and each.rows), None)
    if rows is None or TEXT_KEY in rows.keys or (key := rows.text_key()) is None:
        return spec, []
    note = f"Samples have no key {TEXT_KEY!r}; `text_keys` is {key!r}, which has the longest texts."
    return spec.model_copy(update={"text_keys": [key]}), [note]


def find_overlap(sandbox: Sandbox, target: str, sources: Iterable[str]) -> str | None:
    """Returns the source that a target is, or is inside of, however both are spelled; blocks."""
    places = _places(sandbox, target)
    return next((each for each in sources if _places(sandbox, each)[0] in places), None)


def _places(sandbox: Sandbox, path: str) -> list[object]:
    """Identifies a path and each directory that it is in: by inode, or by name if it is new."""
    sandbox.relative(path)
    real = Path(os.path.realpath(sandbox.root / path))
    found: list[object] = []
    for each in (real, *filter(Path.is_dir, real.parents)):
        try:
            status = each.stat()
        except OSError:
            found.append(each)
        else:
            found.append((status.st_dev, status.st_ino))
    return found


def check_parquet(sandbox: Sandbox, path: str) -> None:
    """Checks that a file begins and ends as Parquet does; blocks."""
    with sandbox.open_read(path) as file:
        begin = file.read(len(_PARQUET))
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _PARQUET_TAIL, 0))
        tail = file.read(_PARQUET_TAIL)
    length, end = int.from_bytes(tail[:4], "little"), tail[4:]
    if begin not in _PARQUET_ENDS:
        fault = f"it begins with {begin!r}, not {_PARQUET!r}" if size else "it is empty"
    elif end not in _PARQUET_ENDS or length > size - _PARQUET_TAIL - len(_PARQUET):
        fault = f"its end is missing, so it was cut off or is still being written ({size} bytes)"
    else:
        return
    raise InvalidArgumentsError(f"{path} is no whole Parquet file: {fault}.", next_actions=[AGAIN])


@dataclass(frozen=True, slots=True)
class _Check:
    executor: Executor
    catalogue: Catalogue
    sandbox: Sandbox

    def origin(self, spec: DatasetSpec) -> Iterator[str]:
        ways = ("dataset_path", "dataset", "generated_dataset_config")
        given = [name for name in ways if getattr(spec, name)]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            yield f"Give one of {', '.join(ways)}; there is {found}."
        if spec.dataset is not None:
            yield from self._mixture(spec.dataset.configs)
        if spec.generated_dataset_config:
            yield from self._generated(spec.generated_dataset_config)

    def export(self, spec: DatasetSpec) -> Iterator[str]:
        family = "default" if self.executor == "default" else "ray"
        known = self.catalogue.export_types[family]
        kind = spec.export_type or PurePath(spec.export_path).suffix.lower().removeprefix(".")
        if kind not in known:
            what = "export_type" if spec.export_type else "export_path"
            yield f"`{what}` asks for {kind!r}; with {self.executor} it may be {', '.join(known)}."
        if _REMOTE.match(spec.export_path):
            return
        try:
            yield from find_self_writes(spec, self.sandbox)
        except ToolError as error:
            yield error.message

    def local(self, path: str, spec: DatasetSpec) -> Findings:
        try:
            if is_directory(self.sandbox, path):
                return Findings()
            rows = first_rows(self.sandbox, path)
            if PurePath(path).suffix.lower() == ".parquet":
                check_parquet(self.sandbox, path)
            elif rows is None:  # another form, of which nothing is checked but that it opens
                self.sandbox.open_read(path).close()
        except ToolError as error:
            return Findings([error.message])
        findings = Findings(list(self._form(path)))
        if rows is None:
            return findings
        if rows.broken and not _leaves_out(path, spec):
            findings.errors.append(
                f"{path!r} contains what is not a row ({rows.broken[0]}), so nothing is read."
                f" {way_out(form_of(path))}"
            )
        if not rows.rows:
            findings.errors.append(f"{path!r} has no row that can be read.")
            return findings
        for key in (spec.text_keys or [TEXT_KEY]) if self.executor == "default" else ():
            if fields_of(key, rows.keys) is not None:
                continue
            shown = ", ".join(rows.keys[:20])
            fault = f"No row of {path!r} has the text key {key!r}; its keys are {shown}."
            (findings.errors if rows.is_whole else findings.warnings).append(fault)
        return findings

    def _mixture(self, sources: list[DatasetSource]) -> Iterator[str]:
        kinds = {each.type for each in sources}
        if len(kinds) > 1:
            yield "`dataset.configs` mixes local and remote data; give one kind."
        if len(sources) > 1 and "remote" in kinds:
            yield "`dataset.configs` has several remote places; give one."
        if len(sources) > 1 and self.executor != "default":
            yield f"`dataset.configs` has several places; {self.executor} reads one."
        for place, source in enumerate(sources):
            yield from self._source(f"dataset.configs[{place}]", source)

    def _source(self, where: str, source: DatasetSource) -> Iterator[str]:
        strategy = self._strategy(source)
        if strategy is None or not strategy.is_implemented:
            named = source.type if source.source is None else f"{source.type}/{source.source}"
            kinds = sorted(
                {
                    f"{each.type}/{each.source}"
                    for each in self.catalogue.strategies_of(self.executor)
                    if each.is_implemented
                }
            )
            yield f"`{where}`: {self.executor} cannot load {named}; it can {', '.join(kinds)}."
            return
        given = source.model_dump(exclude_none=True)
        for key in strategy.required:
            if key not in given:
                yield f"`{where}.{key}` is missing."
        takes = {*strategy.required, *strategy.optional, *_SHARED}
        for key in given.keys() - takes:
            yield f"`{where}.{key}` is unknown; {source.type} data take {', '.join(sorted(takes))}."
        if source.source in {"s3", "hdfs"} and not (source.path or "").startswith(
            f"{source.source}://"
        ):
            yield f"`{where}.path` is {source.path!r}; send one with {source.source}://."

    def _strategy(self, source: DatasetSource) -> WayToLoad | None:
        ways = self.catalogue.strategies_of(self.executor)
        fitting = [each for each in ways if each.type == source.type]
        return next((each for each in fitting if each.source in {ANY, source.source}), None)

    def _generated(self, config: dict[str, Any]) -> Iterator[str]:
        name = config.get("type")
        known = self.catalogue.formatters
        if name not in known:
            yield f"`generated_dataset_config.type` is {name!r}; send {', '.join(known)}."
            return
        parameters = {each.name: each for each in known[name].parameters}
        given = {key: value for key, value in config.items() if key != "type"}
        yield from faults("generated_dataset_config", given, parameters)

    def _form(self, path: str) -> Iterator[str]:
        if self.executor != "default":
            return
        known = {suffix for each in self.catalogue.formatters.values() for suffix in each.suffixes}
        if form_of(path) not in ROW_FORMS and not any(
            path.lower().endswith(suffix.lower()) for suffix in known
        ):
            yield f"No formatter reads {path!r}: see list_dataset_formatters."


def find_self_writes(spec: DatasetSpec, sandbox: Sandbox) -> Iterator[str]:
    """Says which output of a recipe would be written into what it reads; blocks."""
    for target in (spec.export_path, media_folder(spec.export_path)):
        source = find_overlap(sandbox, target, spec.local_paths)
        if source is not None:
            yield (
                f"`export_path` {spec.export_path!r} would write {target!r} into {source!r}, which"
                " is what is read and never replaced; write outside of it."
            )


def _leaves_out(path: str, spec: DatasetSpec) -> bool:
    """Whether the reader skips what is not a row, in a file of this form."""
    suffix = form_of(path)
    if suffix in SEPARATORS:
        return (spec.load_dataset_kwargs or {}).items() >= SKIPS_ROWS.items()
    return suffix == ".jsonl" and bool(spec.load_jsonl_lenient)
