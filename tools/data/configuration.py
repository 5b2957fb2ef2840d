"""Lists what a recipe can say besides its operators: keys of the system, and ways to load data."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tools.core.result import ToolModel
from tools.core.spec import Effect, ToolScope, tool
from tools.data.answers.operators import ParameterInfo
from tools.data.catalogue.bundle import bundled
from tools.data.recipe import Executor


class Options(ToolModel):
    """Keys of a system spec.

    Attributes:
        options: The keys; one with a dot is a key within another.
        release: The release of Data-Juicer.
    """

    options: list[ParameterInfo]
    release: str

    def to_text(self) -> str:
        """A line for each key."""
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
        """A line for each."""
        return "\n".join(each.to_text() for each in self.formatters)


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
    required: list[str]
    optional: list[str]
    is_implemented: bool

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
        """A line for each."""
        return "\n".join(each.to_text() for each in self.strategies)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "recipes"),
    capabilities=("see what can be configured of running a recipe",),
)
def list_system_config(
    prefix: Annotated[
        str, Field(max_length=64, description="Only keys that begin so, such as partition.")
    ] = "",
    include_descriptions: Annotated[bool, Field(description="Say what each is for")] = False,
) -> Options:
    """Lists what a system spec may say, with types and defaults."""
    found = bundled().system_options.values()
    shown = [ParameterInfo.of(each) for each in found if each.name.startswith(prefix)]
    if not include_descriptions:
        shown = [each.model_copy(update={"description": ""}) for each in shown]
    return Options(options=shown, release=bundled().version)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "recipes"),
    capabilities=("see which formats of datasets can be read, or made",),
)
def list_dataset_formatters() -> Formatters:
    """Lists the formatters: which files each reads, or what dataset it makes."""
    found = [
        ReadOrMade.from_attributes(each, parameters=list(map(ParameterInfo.of, each.parameters)))
        for each in bundled().formatters.values()
    ]
    return Formatters(formatters=found)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "recipes"),
    capabilities=("see from where datasets can be loaded",),
)
def list_dataset_load_strategies(
    executor_type: Annotated[
        Executor | None, Field(description="Only those of this executor")
    ] = None,
) -> Strategies:
    """Lists where data can be loaded from, and which keys an entry of dataset.configs needs."""
    found = bundled().strategies
    if executor_type is not None:
        found = bundled().strategies_of(executor_type)
    return Strategies(strategies=list(map(WayToLoad.from_attributes, found)))
