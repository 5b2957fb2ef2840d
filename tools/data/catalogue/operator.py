"""An operator of Data-Juicer, as its release describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.data.catalogue.kinds import Kind, Runs


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operator, a formatter or a configuration.

    Attributes:
        name: Its name.
        schema: JSON schema of its values; empty takes any.
        description: What it is for.
        type: Its annotation, as it is written.
        default: What it is where nobody gives it.
        computed: The default as it is written, where only running it would tell its value.
        is_required: Whether it has no default.
    """

    name: str
    schema: Mapping[str, Any]
    description: str
    type: str = ""
    default: Any = None
    computed: str = ""
    is_required: bool = False

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Parameter:
        """The parameter that a record is."""
        return cls(**said, is_required=said.keys().isdisjoint({"default", "computed"}))


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator.

    Attributes:
        name: Its name in a recipe.
        type: What kind it is of.
        tags: What it works on, and what it needs.
        modes: The executors that run it.
        description: What it does; the first line says it in short.
        parameters: Its own parameters, without those of all of its kind.
        runs: Which set-up runs it: the default one ("here"), only `--full`, or none ("no").
        why_not: Why the default set-up does not run it; empty if it does.
    """

    name: str
    type: Kind
    tags: tuple[str, ...]
    modes: tuple[str, ...]
    description: str
    parameters: tuple[Parameter, ...]
    runs: Runs = "here"
    why_not: str = ""

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Operator:
        """The operator that a record is."""
        lists = {key: tuple(said[key]) for key in ("tags", "modes")}
        parameters = tuple(map(Parameter.of, said["parameters"]))
        return cls(**{**said, **lists, "parameters": parameters})

    @property
    def summary(self) -> str:
        """What it does, in a line."""
        return self.description.partition("\n")[0]
