"""The catalogue: what the release offers, and how an operator's name may be written.

Its parameters, formatters and ways to load data are also what tools answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from tools.core.errors import NotFoundError
from tools.core.result import AnyJson, OmitNone, ToolModel
from tools.data.recipe import DatasetSpec, Executor, ProcessSpec

Kind = Literal["mapper", "filter", "deduplicator", "selector", "grouper", "aggregator", "pipeline"]
How = Literal["exact", "case", "alphanumeric", "fuzzy"]  # how a name was understood
Runs = Literal["here", "full", "no"]  # which set-up of Data-Juicer runs an operator

ANY = "*"  # the source of a way to load data that holds for every source
CERTAIN = 88.0  # likeness, of 100, from which a name can only be a mistyped one
LIKELY = 60.0  # likeness from which a name is suggested


class ParameterInfo(ToolModel):
    """A parameter.

    Attributes:
        name: Its name.
        type: Its type as the release writes it; empty where it says none.
        value_schema: JSON Schema of its values; an empty one takes any.
        description: What it is for.
        is_required: Whether it has to be given.
        default: What it is else; null of a required one.
        computed: How the default is written, where only running it would tell its value.
    """

    name: str
    type: str
    value_schema: dict[str, Any] = Field(validation_alias="schema")
    description: str
    is_required: bool
    default: AnyJson = None
    computed: OmitNone[str] = None
    why_not: str = Field("", exclude=True)  # why the default set-up cannot do it

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        is_required = record.keys().isdisjoint({"default", "computed"})
        return {"type": "", "is_required": is_required, **record}

    def to_text(self) -> str:
        """Returns one line."""
        default = self.computed or json.dumps(self.default, ensure_ascii=False)
        given = "required" if self.is_required else f"= {cut(default, 80)}"
        choices = " or ".join(map(repr, self.value_schema.get("enum", ())))
        typed = f": {choices or self.type}" if choices or self.type else ""
        purpose = f" | {self.description}" if self.description else ""
        return f"{self.name}{typed} {given}{purpose}"


class AnyOperator(ToolModel):
    """The fields that the catalogue and every answer share.

    `runs` is the set-up that runs it: the default ("here"), only `--full`, or none.
    """

    name: str
    type: Kind
    tags: tuple[str, ...]
    runs: Runs
    why_not: OmitNone[str] = None

    def head(self, score: str = "", *more: str) -> str:
        """Returns its name with what it works on, and which set-up it needs or why none runs it."""
        needs = {"full": "needs --full", "no": f"cannot run here: {self.why_not}".rstrip(".")}
        limits = f" ({needs[self.runs]})" if self.runs in needs else ""
        return f"{self.name}{score} ({', '.join((*more, *self.tags))}){limits}"


class Operator(AnyOperator):
    """An operator; `modes` are the executors that run it, `parameters` those of its own."""

    runs: Runs = "here"
    modes: tuple[str, ...]
    description: str
    parameters: tuple[ParameterInfo, ...]

    @property
    def summary(self) -> str:
        """What it does, in a line."""
        return self.description.partition("\n")[0]


class ReadOrMade(ToolModel):
    """A formatter: it reads files, or makes a dataset.

    Attributes:
        name: Its name; the `type` of a generated dataset.
        description: What it does.
        suffixes: Endings of the files that it reads; empty of one that makes a dataset.
        parameters: Its parameters.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    parameters: tuple[ParameterInfo, ...]

    def to_text(self) -> str:
        """Returns one line."""
        reads = f" | reads {' '.join(self.suffixes)}" if self.suffixes else ""
        takes = ", ".join(each.name for each in self.parameters)
        return f"{self.name}({takes}): {self.description.partition(chr(10))[0]}{reads}"


class WayToLoad(ToolModel):
    """A way to load data, by what an entry of `dataset.configs` says.

    Attributes:
        executor_type: The executor that can; "ray" stands for "ray_partitioned" too.
        type: The `type` of the entry.
        source: Its `source`; "*" is any, or none.
        description: What is loaded.
        required: The keys that the entry needs.
        optional: Others that it takes, besides `weight`.
        is_implemented: Whether this release can do it at all.
    """

    executor_type: str
    type: str
    source: str
    description: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    is_implemented: bool

    def to_text(self) -> str:
        """Returns one line."""
        lacks = "" if self.is_implemented else " | not implemented in this release"
        optional = f"; may have {', '.join(self.optional)}" if self.optional else ""
        needs = ", ".join(self.required) or "nothing"
        return f"{self.executor_type}: {self.type}/{self.source} needs {needs}{optional}{lacks}"


class Resolved(NamedTuple):
    """An operator that was named, and how its name was understood."""

    operator: Operator
    how: How


class Catalogue:
    """A release's operators, each a line of JSON, and the rest as JSON.

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
            name, list(self.operators), scorer=fuzz.ratio, processor=_bare, limit=3
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


def cut(text: str, length: int) -> str:
    """Returns a text that is no longer, with an ellipsis where it was."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
