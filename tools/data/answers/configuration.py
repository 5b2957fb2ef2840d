"""What can be configured, as tools answer it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tools.core.result import ToolModel
from tools.data.answers.operators import ParameterInfo

if TYPE_CHECKING:  # a start needs no catalogue
    from tools.data.catalogue.loading import Formatter, Strategy
    from tools.data.catalogue.operator import Parameter


class Options(ToolModel):
    """Keys of a system spec.

    Attributes:
        options: The keys; one with a dot is a key within another.
        release: The release of Data-Juicer.
    """

    options: list[ParameterInfo]
    release: str

    @classmethod
    def of(cls, options: Iterable[Parameter], release: str, *, described: bool) -> Options:
        """Keys of the catalogue, with or without what they are for."""
        shown = list(map(ParameterInfo.of, options))
        if not described:
            shown = [each.model_copy(update={"description": ""}) for each in shown]
        return cls(options=shown, release=release)

    def to_text(self) -> str:
        """A line a key."""
        head = f"{len(self.options)} keys of Data-Juicer {self.release}:"
        return "\n".join([head, *(each.to_text() for each in self.options)])


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
    suffixes: list[str]
    parameters: list[ParameterInfo]

    @classmethod
    def of(cls, formatter: Formatter) -> ReadOrMade:
        """A formatter of the catalogue."""
        shown = list(map(ParameterInfo.of, formatter.parameters))
        return cls.from_attributes(formatter, suffixes=list(formatter.suffixes), parameters=shown)

    def to_text(self) -> str:
        """One line."""
        reads = f" | reads {' '.join(self.suffixes)}" if self.suffixes else ""
        takes = ", ".join(each.name for each in self.parameters)
        return f"{self.name}({takes}): {self.description.partition(chr(10))[0]}{reads}"


class Formatters(ToolModel):
    """The formatters.

    Attributes:
        formatters: All of them.
    """

    formatters: list[ReadOrMade]

    def to_text(self) -> str:
        """A line each."""
        return "\n".join(each.to_text() for each in self.formatters)


class WayToLoad(ToolModel):
    """A way to load data, by what an entry of `dataset.configs` says.

    Attributes:
        executor_type: The executor that can; "ray" stands for "ray_partitioned" too.
        type: The `type` of the entry.
        source: Its `source`; "*" is any, or none.
        description: What is loaded.
        required: The keys that the entry needs.
        optional: Others that it takes, beside `weight`.
        is_implemented: Whether this release can do it at all.
    """

    executor_type: str
    type: str
    source: str
    description: str
    required: list[str]
    optional: list[str]
    is_implemented: bool

    @classmethod
    def of(cls, strategy: Strategy) -> WayToLoad:
        """A strategy of the catalogue."""
        keys = {"required": list(strategy.required), "optional": list(strategy.optional)}
        return cls.from_attributes(strategy, **keys)

    def to_text(self) -> str:
        """One line."""
        lacks = "" if self.is_implemented else " | not implemented in this release"
        optional = f"; may have {', '.join(self.optional)}" if self.optional else ""
        needs = ", ".join(self.required) or "nothing"
        return f"{self.executor_type}: {self.type}/{self.source} needs {needs}{optional}{lacks}"


class Strategies(ToolModel):
    """The ways to load data.

    Attributes:
        strategies: All that were asked for.
    """

    strategies: list[WayToLoad]

    def to_text(self) -> str:
        """A line each."""
        return "\n".join(each.to_text() for each in self.strategies)
