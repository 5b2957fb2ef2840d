"""The catalogue: what the release offers, and how an operator's name may be written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from tools.core.errors import NotFoundError
from tools.data.catalogue.kinds import How, Kind
from tools.data.catalogue.loading import Formatter, Strategy
from tools.data.catalogue.operator import Operator, Parameter
from tools.data.recipe import DatasetSpec, Executor, ProcessSpec

CERTAIN = 88.0
"""Likeness, of 100, from which a name can only be a mistyped one."""

LIKELY = 60.0
"""Likeness from which a name is suggested."""

SUGGESTED = 3


@dataclass(frozen=True, slots=True)
class Resolved:
    """An operator that was named, and how its name was understood."""

    operator: Operator
    how: How


class Catalogue:
    """What a release offers: its operators, each a line of JSON, and the rest as JSON."""

    def __init__(self, operators: Iterable[str], release: str) -> None:
        read = (Operator.of(json.loads(each)) for each in operators)
        self.operators = {each.name: each for each in read}
        self._release: Mapping[str, Any] = json.loads(release)

    @property
    def version(self) -> str:
        """The release."""
        return str(self._release["version"])

    @cached_property
    def options(self) -> dict[str, Parameter]:
        """The keys of a configuration; one with a dot is a key within another."""
        return _named(self._release["options"])

    @cached_property
    def formatters(self) -> dict[str, Formatter]:
        """What reads or makes a dataset, by name."""
        return {each["name"]: Formatter.of(each) for each in self._release["formatters"]}

    @cached_property
    def strategies(self) -> tuple[Strategy, ...]:
        """How data is loaded."""
        return tuple(map(Strategy.of, self._release["strategies"]))

    @property
    def export_types(self) -> Mapping[str, Sequence[str]]:
        """The formats that results can be written in: with "default", and on "ray"."""
        return cast("Mapping[str, Sequence[str]]", self._release["export_types"])

    @property
    def validators(self) -> Sequence[str]:
        """The checks that data can be put to when they are read."""
        return cast("Sequence[str]", self._release["validators"])

    @cached_property
    def system_options(self) -> dict[str, Parameter]:
        """The keys of its part that says how a recipe is run."""
        others = {*DatasetSpec.model_fields, *ProcessSpec.model_fields, "process"}
        return {name: each for name, each in self.options.items() if name not in others}

    def strategies_of(self, executor: Executor) -> tuple[Strategy, ...]:
        """How an executor loads data: both that are on Ray do the same."""
        loader = "ray" if executor == "ray_partitioned" else executor
        return tuple(each for each in self.strategies if each.executor_type == loader)

    def common(self, kind: Kind) -> dict[str, Parameter]:
        """The parameters that every operator of a kind takes beside its own."""
        shared = self._release["common"]
        return _named([*shared["op"], *shared.get(kind, ())])

    def chosen(self, op_type: Kind | None = None, tags: Iterable[str] = ()) -> Iterator[Operator]:
        """The operators of a kind that have all of the tags, by name."""
        wanted = {each.casefold() for each in tags}
        for each in self.operators.values():
            if op_type in {None, each.type} and wanted <= set(each.tags):
                yield each

    def resolve(self, name: str) -> Resolved:
        """The operator of a name, in any case and with any separators, or mistyped a little."""
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


def _named(said: Iterable[Mapping[str, Any]]) -> dict[str, Parameter]:
    return {each["name"]: Parameter.of(each) for each in said}


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
