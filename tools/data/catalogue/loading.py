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
    """What reads or makes a dataset.

    Attributes:
        name: Its name.
        description: What it does.
        suffixes: Endings of the files that it reads.
        parameters: Its parameters.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Formatter:
        """The formatter that a record is."""
        parameters = tuple(map(Parameter.of, said["parameters"]))
        return cls(said["name"], said["description"], tuple(said["suffixes"]), parameters)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to load data.

    Attributes:
        executor_type: Who loads it: "default" or "ray".
        type: Where it is: "local" or "remote".
        source: What kind of place that is; "*" is any.
        description: What it does.
        required: The keys that it needs.
        optional: Others that it takes.
        is_implemented: Whether the release can do it at all.
    """

    executor_type: str
    type: str
    source: str
    description: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    is_implemented: bool

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Strategy:
        """The strategy that a record is."""
        keys = {key: tuple(said[key]) for key in ("required", "optional")}
        return cls(**{**said, **keys})
