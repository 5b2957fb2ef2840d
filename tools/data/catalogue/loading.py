"""How a release loads data: its formatters, and its strategies by place and executor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.data.catalogue.operator import Parameter

ANY = "*"
"""The source of a strategy that goes for all."""


@dataclass(frozen=True, slots=True)
class Formatter:
    """What reads or makes a dataset, and the endings of the files that it reads."""

    name: str
    description: str
    suffixes: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Formatter:
        """Returns the formatter that a record describes."""
        parameters = tuple(map(Parameter.of, said["parameters"]))
        return cls(said["name"], said["description"], tuple(said["suffixes"]), parameters)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to load data: by "default" or "ray", from a "local" or "remote" place."""

    executor_type: str
    type: str
    source: str
    description: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    is_implemented: bool

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Strategy:
        """Returns the strategy that a record describes."""
        keys = {key: tuple(said[key]) for key in ("required", "optional")}
        return cls(**{**said, **keys})
