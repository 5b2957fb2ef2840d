"""What a release of Data-Juicer offers, as its catalogue has it and as tools show it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from tools.core.result import AnyJson, OmitNone, ToolModel

Kind = Literal["mapper", "filter", "deduplicator", "selector", "grouper", "aggregator", "pipeline"]
"""What an operator does to a data set."""

How = Literal["exact", "case", "alphanumeric", "fuzzy"]
"""How a name was understood; each way is tried after the one before."""

Runs = Literal["here", "full", "no"]
"""Which set-up of Data-Juicer runs an operator."""

ANY = "*"
"""The source of a way to load data that holds for every source."""

DEFAULT_CHARACTERS = 80
"""Of a default in a line."""


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
        given = "required" if self.is_required else f"= {cut(default, DEFAULT_CHARACTERS)}"
        choices = " or ".join(map(repr, self.value_schema.get("enum", ())))
        typed = f": {choices or self.type}" if choices or self.type else ""
        purpose = f" | {self.description}" if self.description else ""
        return f"{self.name}{typed} {given}{purpose}"


class AnyOperator(ToolModel):
    """What the catalogue and every answer have of an operator.

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


def cut(text: str, length: int) -> str:
    """Returns a text that is no longer, with an ellipsis where it was."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
