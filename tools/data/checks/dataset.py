"""Whether the data of a recipe can be read, and the result be written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from tools.core.errors import ToolError
from tools.data.catalogue.catalogue import Catalogue
from tools.data.catalogue.loading import ANY, Strategy
from tools.data.checks.findings import Findings
from tools.data.checks.parquet import check_parquet
from tools.data.checks.rows import first_rows, is_directory
from tools.data.checks.values import faults
from tools.data.recipe import DatasetSource, DatasetSpec, Executor
from tools.data.worker.entries import SEPARATORS, SKIPS_ROWS, way_out
from tools.sandbox.files.sandbox import Sandbox

TEXT_KEY = "text"
"""Where a sample has its text unless `text_keys` says otherwise."""

_REMOTE = re.compile(r"(?:s3|hdfs)://", re.IGNORECASE)

_SHARED = ("type", "source", "weight")
"""Keys that every place of a mixture may have."""


def check_dataset(
    spec: DatasetSpec, executor: Executor, catalogue: Catalogue, sandbox: Sandbox
) -> Findings:
    """Whether its data are there and can be read, and what comes of them be written."""
    check = _Check(executor, catalogue, sandbox)
    findings = Findings(list(check.origin(spec)))
    findings.errors += check.export(spec)
    findings.errors += check.validators(spec)
    if spec.text_keys == []:
        findings.errors.append("`text_keys` is empty; leave it out, or name a key.")
    for path in _local_paths(spec):
        findings.add(check.local(path, spec))
    return findings


def with_text_keys(spec: DatasetSpec, sandbox: Sandbox) -> tuple[DatasetSpec, Findings]:
    """The spec with the key of the longest texts, where none is named and samples have no "text".

    Raises:
        ToolError: If a file of its cannot be opened.
    """
    if spec.text_keys is not None:
        return spec, Findings()
    files = (path for path in _local_paths(spec) if not is_directory(sandbox, path))
    read = [first_rows(sandbox, path) for path in files]
    rows = next((each for each in read if each is not None and each.rows), None)
    if rows is None or TEXT_KEY in rows.keys or (key := rows.text_key()) is None:
        return spec, Findings()
    said = f"Samples have no key {TEXT_KEY!r}; `text_keys` is {key!r}, which has the longest texts."
    return spec.model_copy(update={"text_keys": [key]}), Findings(warnings=[said])


@dataclass(frozen=True, slots=True)
class _Check:
    """What a dataset spec is held against."""

    executor: Executor
    catalogue: Catalogue
    sandbox: Sandbox

    def origin(self, spec: DatasetSpec) -> Iterator[str]:
        """Whether there is one, and the release can load it."""
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
        """Whether the result can be written where it is to go."""
        family = "default" if self.executor == "default" else "ray"
        known = self.catalogue.export_types[family]
        kind = spec.export_type or PurePath(spec.export_path).suffix.lower().removeprefix(".")
        if kind not in known:
            what = "export_type" if spec.export_type else "export_path"
            yield f"`{what}` asks for {kind!r}; with {self.executor} it may be {', '.join(known)}."
        if _REMOTE.match(spec.export_path):
            return
        try:
            target = self.sandbox.relative(spec.export_path)
            read = {self.sandbox.relative(path) for path in _local_paths(spec)}
        except ToolError as error:
            yield error.message
            return
        if target in read:
            yield f"`export_path` {spec.export_path!r} is what is read; write to another file."

    def validators(self, spec: DatasetSpec) -> Iterator[str]:
        """Whether the checks of the data are there."""
        known = self.catalogue.validators
        for place, each in enumerate(spec.validators or ()):
            if each.get("type") not in known:
                given = each.get("type")
                yield f"`validators[{place}].type` is {given!r}; send {', '.join(known)}."

    def local(self, path: str, spec: DatasetSpec) -> Findings:
        """Whether a file or a directory can be read, and its samples have their texts."""
        try:
            if is_directory(self.sandbox, path):
                return Findings()
            rows = first_rows(self.sandbox, path)
            if PurePath(path).suffix.lower() == ".parquet":
                check_parquet(self.sandbox, path)
            elif rows is None:  # of another form: that it can be opened is all that is told here
                self.sandbox.open_read(path).close()
        except ToolError as error:
            return Findings([error.message])
        findings = Findings(list(self._form(path)))
        if rows is None:
            return findings
        if rows.broken and not _leaves_out(path, spec):
            findings.errors.append(
                f"{path!r} has what holds no row, for which none is read ({rows.broken[0]})."
                f" {way_out(PurePath(path).suffix.lower())}"
            )
        if not rows.rows:
            findings.errors.append(f"{path!r} has no row that can be read.")
            return findings
        for key in (spec.text_keys or [TEXT_KEY]) if self.executor == "default" else ():
            if key in rows.keys:
                continue
            shown = ", ".join(rows.keys[:20])
            said = f"No row of {path!r} has the text key {key!r}; its keys are {shown}."
            (findings.errors if rows.is_whole else findings.warnings).append(said)
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

    def _strategy(self, source: DatasetSource) -> Strategy | None:
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
        if not any(path.lower().endswith(suffix.lower()) for suffix in known):
            yield f"No formatter reads {path!r}: see list_dataset_formatters."


def _leaves_out(path: str, spec: DatasetSpec) -> bool:
    """Whether what holds no row is left out, of a file of this form."""
    suffix = PurePath(path).suffix.lower()
    if suffix in SEPARATORS:
        return (spec.load_dataset_kwargs or {}).items() >= SKIPS_ROWS.items()
    return suffix == ".jsonl" and bool(spec.load_jsonl_lenient)


def _local_paths(spec: DatasetSpec) -> list[str]:
    if spec.dataset_path:
        return [spec.dataset_path]
    sources = spec.dataset.configs if spec.dataset else ()
    return [each.path for each in sources if each.type == "local" and each.path]
