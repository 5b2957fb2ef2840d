"""Checks that the data of a recipe can be read, and the result be written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from tools.core.errors import Action, ConflictError, InvalidArgumentsError, ToolError
from tools.data.catalogue.catalogue import ANY, Catalogue, ParameterInfo
from tools.data.checks.findings import Findings, faults
from tools.data.checks.rows import Rows, first_rows, is_directory
from tools.data.recipe import DatasetSource, DatasetSpec, Executor
from tools.data.worker.agreed import AGAIN, media_folder
from tools.data.worker.entries import SEPARATORS, SKIPS_ROWS, form_of, way_out
from tools.data.worker.texts import fields_of
from tools.sandbox.files.sandbox import Sandbox

DEFAULT_TEXT_KEY = "text"

_REMOTE = re.compile(r"(?:s3|hdfs)://", re.IGNORECASE)
_SHARED_KEYS = ("type", "source", "weight")
_PARQUET = b"PAR1"
_PARQUET_ENDS = {_PARQUET, b"PARE"}  # the latter of a file whose description is encrypted
_PARQUET_TAIL = 8  # bytes: the length of the description, and a mark


def check_dataset(
    spec: DatasetSpec, executor: Executor, catalogue: Catalogue, sandbox: Sandbox
) -> Findings:
    """Checks that its data exist and can be read, and that the result can be written."""
    check = _Check(spec, executor, catalogue, sandbox)
    findings = Findings([*check.find_origin_faults(), *check.find_export_faults()])
    known = catalogue.validators
    findings.errors += [
        f"`validators[{place}].type` is {each.get('type')!r}; send {', '.join(known)}."
        for place, each in enumerate(spec.validators or ())
        if each.get("type") not in known
    ]
    if spec.text_keys == []:
        findings.errors.append("`text_keys` is empty; leave it out, or name a key.")
    for path in spec.local_paths:
        findings.add(check.check_file(path))
    return findings


def find_text_keys(spec: DatasetSpec, sandbox: Sandbox) -> tuple[DatasetSpec, list[str]]:
    """Returns the spec with the key of the longest texts, where it names none, and a note."""
    if spec.text_keys is not None:
        return spec, []
    files = (path for path in spec.local_paths if not is_directory(sandbox, path))
    read = [first_rows(sandbox, path) for path in files]
    rows = next((each for each in read if each is not None and each.rows), None)
    if rows is None or DEFAULT_TEXT_KEY in rows.keys or (key := rows.text_key()) is None:
        return spec, []
    why = f"Samples have no key {DEFAULT_TEXT_KEY!r}"
    note = f"{why}; `text_keys` is {key!r}, which has the longest texts."
    return spec.model_copy(update={"text_keys": [key]}), [note]


def find_overlap(sandbox: Sandbox, target: str, sources: Iterable[str]) -> str | None:
    """Returns the source that a target is, or is inside of, however both are spelled; blocks."""
    places = _places(sandbox, target)
    return next((each for each in sources if _places(sandbox, each)[0] in places), None)


def find_self_writes(spec: DatasetSpec, sandbox: Sandbox) -> Iterator[str]:
    """Yields an error for each output of a recipe that would be written into its input; blocks."""
    for target in (spec.export_path, media_folder(spec.export_path)):
        source = find_overlap(sandbox, target, spec.local_paths)
        if source is not None:
            yield (
                f"`export_path` {spec.export_path!r} would write {target!r} into {source!r}, which"
                " is what is read and never replaced; write outside of it."
            )


def check_apart(
    sandbox: Sandbox, targets: Iterable[str], source: str, next_action: str | Action
) -> None:
    """Refuses targets that are what is read, or are inside of it; blocks."""
    for target in targets:
        if find_overlap(sandbox, target, [source]):
            raise ConflictError(
                f"{target} would be written into {source}, which is what is read and never"
                " replaced.",
                next_actions=[next_action],
            )


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
    raise InvalidArgumentsError(
        f"{path} is not a whole Parquet file: {fault}.", next_actions=[AGAIN]
    )


@dataclass(frozen=True, slots=True)
class _Check:
    spec: DatasetSpec
    executor: Executor
    catalogue: Catalogue
    sandbox: Sandbox

    def find_origin_faults(self) -> Iterator[str]:
        ways = ("dataset_path", "dataset", "generated_dataset_config")
        given = [name for name in ways if getattr(self.spec, name)]
        if len(given) != 1:
            yield f"Give one of {', '.join(ways)}; there is {' and '.join(given) or 'none'}."
        if self.spec.dataset is not None:
            sources = self.spec.dataset.configs
            kinds = {each.type for each in sources}
            if len(kinds) > 1:
                yield "`dataset.configs` mixes local and remote data; give one kind."
            if len(sources) > 1 and "remote" in kinds:
                yield "`dataset.configs` has several remote places; give one."
            if len(sources) > 1 and self.executor != "default":
                yield f"`dataset.configs` has several places; {self.executor} reads one."
            for place, source in enumerate(sources):
                yield from self._find_source_faults(f"dataset.configs[{place}]", source)
        if config := self.spec.generated_dataset_config:
            given_values = dict(config)
            name, known = given_values.pop("type", None), self.catalogue.formatters
            if name in known:
                parameters = {each.name: each for each in known[name].parameters}
                yield from faults("generated_dataset_config", given_values, parameters)
            else:
                yield f"`generated_dataset_config.type` is {name!r}; send {', '.join(known)}."

    def _find_source_faults(self, where: str, source: DatasetSource) -> Iterator[str]:
        ways = self.catalogue.strategies_of(self.executor)
        fitting = (
            each
            for each in ways
            if each.type == source.type and each.source in {ANY, source.source}
        )
        strategy = next(fitting, None)
        if strategy is None or not strategy.is_implemented:
            named = source.type if source.source is None else f"{source.type}/{source.source}"
            kinds = sorted({f"{each.type}/{each.source}" for each in ways if each.is_implemented})
            yield f"`{where}`: {self.executor} cannot load {named}; it can {', '.join(kinds)}."
            return
        known = {
            key: ParameterInfo.model_validate(
                {
                    "name": key,
                    "schema": {},
                    "description": "",
                    "is_required": key in strategy.required,
                }
            )
            for key in (*strategy.required, *strategy.optional, *_SHARED_KEYS)
        }
        yield from faults(where, source.model_dump(exclude_none=True), known)
        scheme = f"{source.source}://"
        if source.source in {"s3", "hdfs"} and not (source.path or "").startswith(scheme):
            yield f"`{where}.path` is {source.path!r}; send one with {scheme}."

    def find_export_faults(self) -> Iterator[str]:
        path = self.spec.export_path
        known = self.catalogue.export_types["default" if self.executor == "default" else "ray"]
        kind = self.spec.export_type or PurePath(path).suffix.lower().removeprefix(".")
        if kind not in known:
            key = "export_type" if self.spec.export_type else "export_path"
            yield f"`{key}` asks for {kind!r}; with {self.executor} it may be {', '.join(known)}."
        if _REMOTE.match(path):
            return
        try:
            yield from find_self_writes(self.spec, self.sandbox)
        except ToolError as error:
            yield error.message

    def check_file(self, path: str) -> Findings:
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
        if rows is not None:
            return self._check_rows(path, rows)
        readers = self.catalogue.formatters.values()
        endings = tuple(suffix.lower() for each in readers for suffix in each.suffixes)
        if self.executor != "default" or path.lower().endswith(endings):
            return Findings()
        return Findings([f"No formatter reads {path!r}: see list_dataset_formatters."])

    def _check_rows(self, path: str, rows: Rows) -> Findings:
        findings = Findings()
        if rows.broken and not _skips_broken_rows(path, self.spec):
            findings.errors.append(
                f"{path!r} contains what is not a row ({rows.broken[0]}), so nothing is read."
                f" {way_out(form_of(path))}"
            )
        if not rows.rows:
            findings.errors.append(f"{path!r} has no row that can be read.")
        elif self.executor == "default":
            missing = findings.errors if rows.is_whole else findings.warnings
            shown = ", ".join(rows.keys[:20])
            missing += [
                f"No row of {path!r} has the text key {key!r}; its keys are {shown}."
                for key in self.spec.text_keys or [DEFAULT_TEXT_KEY]
                if fields_of(key, rows.keys) is None
            ]
        return findings


def _skips_broken_rows(path: str, spec: DatasetSpec) -> bool:
    suffix = form_of(path)
    if suffix in SEPARATORS:
        return (spec.load_dataset_kwargs or {}).items() >= SKIPS_ROWS.items()
    return suffix == ".jsonl" and bool(spec.load_jsonl_lenient)
