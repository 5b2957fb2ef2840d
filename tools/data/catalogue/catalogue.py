"""The catalogue: what the release offers, and how an operator's name may be written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from tools.core.errors import NotFoundError
from tools.data.catalogue.operator import (
    How,
    Kind,
    Operator,
    ParameterInfo,
    ReadOrMade,
    WayToLoad,
)
from tools.data.recipe import DatasetSpec, Executor, ProcessSpec

CERTAIN = 88.0
"""Likeness, of 100, from which a name can only be a mistyped one."""

LIKELY = 60.0
"""Likeness from which a name is suggested."""

SUGGESTED = 3


class Resolved(NamedTuple):
    """An operator that was named, and how its name was understood."""

    operator: Operator
    how: How


class Catalogue:
    """What a release offers: its operators, each a line of JSON, and the rest as JSON.

    `options` are the keys of a configuration, one with a dot within another; `system_options` those
    of them that say how a recipe is run. `export_types` are the formats of results, with "default"
    and on "ray"; `validators` the checks that data can be put to when they are read; `reads_files`
    the parameters of operators that name a file or directory to read.
    """

    def __init__(self, operators: Iterable[str], release: str) -> None:
        record = json.loads(release)
        read = map(Operator.model_validate_json, operators)
        self.operators = {each.name: each for each in read}
        self.version: str = record["version"]
        self.options = _read_parameters(record["options"])
        self.formatters = {
            each["name"]: ReadOrMade.model_validate(each) for each in record["formatters"]
        }
        self.strategies = tuple(map(WayToLoad.model_validate, record["strategies"]))
        self.export_types: Mapping[str, Sequence[str]] = record["export_types"]
        self.validators: Sequence[str] = record["validators"]
        others = {*DatasetSpec.model_fields, *ProcessSpec.model_fields, "process"}
        self.system_options = {
            name: each for name, each in self.options.items() if name not in others
        }
        self.reads_files: Mapping[str, Sequence[str]] = record["reads_files"]
        self._common = {kind: _read_parameters(each) for kind, each in record["common"].items()}

    def strategies_of(self, executor: Executor | None) -> tuple[WayToLoad, ...]:
        """Returns how an executor, or any, loads data: both that are on Ray do the same."""
        loader = "ray" if executor == "ray_partitioned" else executor
        return tuple(each for each in self.strategies if loader in {None, each.executor_type})

    def common(self, kind: Kind) -> dict[str, ParameterInfo]:
        """Returns the parameters that every operator of a kind takes besides its own."""
        return {**self._common["op"], **self._common.get(kind, {})}

    def select(self, op_type: Kind | None, tags: Iterable[str] | None) -> list[Operator]:
        """Returns the operators of a kind that have all of the tags, by name."""
        wanted = {each.casefold() for each in tags or ()}
        return [
            each
            for each in self.operators.values()
            if op_type in {None, each.type} and wanted <= set(each.tags)
        ]

    def resolve(self, name: str) -> Resolved:
        """Finds an operator by its name, in any case, with any separators, or slightly mistyped."""
        if name in self.operators:
            return Resolved(self.operators[name], "exact")
        ways: tuple[How, How] = ("case", "alphanumeric")
        for how, fold in zip(ways, (str.casefold, _bare), strict=True):
            wanted = fold(name)
            found = [each for each in self.operators if fold(each) == wanted]
            if wanted and len(found) == 1:
                return Resolved(self.operators[found[0]], how)

        from rapidfuzz import fuzz, process

        ranked = process.extract(
            name, list(self.operators), scorer=fuzz.ratio, processor=_bare, limit=SUGGESTED
        )
        near = [(each, likeness) for each, likeness, _ in ranked if likeness >= LIKELY]
        first, second, *_ = *(likeness for _, likeness in near), 0, 0
        if first >= CERTAIN and first > second:
            return Resolved(self.operators[near[0][0]], "fuzzy")
        raise NotFoundError(
            f"Data-Juicer {self.version} has no operator {name[:100]!r}.",
            suggestions=[each for each, _ in near],
            next_actions=["Find one by what it does: retrieve_operators."],
        )


def _read_parameters(records: Iterable[Mapping[str, Any]]) -> dict[str, ParameterInfo]:
    return {each["name"]: ParameterInfo.model_validate(each) for each in records}


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def read_bundled(name: str) -> str:
    """Returns the text of a file of the catalogue that comes with the product."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def bundled() -> Catalogue:
    """Returns the catalogue of the pinned release."""
    return Catalogue(read_bundled("operators.jsonl").splitlines(), read_bundled("release.json"))


def file_parameters(name: str, params: Mapping[str, Any]) -> list[str]:
    """Returns which of an operator's given parameters name a file or directory to read."""
    known = bundled().reads_files.get(name, ())
    return [each for each in known if isinstance(params.get(each), str)]
