"""Lists what a recipe can say besides its operators: keys of the system, and ways to load data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from tools.core.result import ToolModel
from tools.core.spec import tool
from tools.data.catalogue.catalogue import bundled
from tools.data.catalogue.operator import ParameterInfo, ReadOrMade, WayToLoad
from tools.data.recipe import Executor
from tools.data.specs import READS


class Options(ToolModel):
    """Keys of a system spec.

    Attributes:
        options: The keys; one with a dot is a key within another.
        release: The release of Data-Juicer.
    """

    options: list[ParameterInfo]
    release: str

    def to_text(self) -> str:
        """Returns a line for each key."""
        head = f"{len(self.options)} keys of Data-Juicer {self.release}:"
        return "\n".join([head, *(each.to_text() for each in self.options)])


class Formatters(ToolModel):
    """The formatters.

    Attributes:
        formatters: All of them.
    """

    formatters: list[ReadOrMade]

    def to_text(self) -> str:
        """Returns a line for each."""
        return "\n".join(each.to_text() for each in self.formatters)


class Strategies(ToolModel):
    """The ways to load data.

    Attributes:
        strategies: All that were asked for.
    """

    strategies: Sequence[WayToLoad]

    def to_text(self) -> str:
        """Returns a line for each."""
        return "\n".join(each.to_text() for each in self.strategies)


@tool(**READS, capabilities=("see what can be configured of running a recipe",))
def list_system_config(
    prefix: Annotated[
        str, Field(max_length=64, description="Only keys that begin so, such as partition.")
    ] = "",
    include_descriptions: Annotated[bool, Field(description="Say what each is for")] = False,
) -> Options:
    """Lists what a system spec may say, with types and defaults."""
    known = bundled().system_options.values()
    options = [each for each in known if each.name.startswith(prefix)]
    if not include_descriptions:
        options = [each.model_copy(update={"description": ""}) for each in options]
    return Options(options=options, release=bundled().version)


@tool(**READS, capabilities=("see which formats of datasets can be read, or made",))
def list_dataset_formatters() -> Formatters:
    """Lists the formatters: which files each reads, or what dataset it makes."""
    return Formatters(formatters=list(bundled().formatters.values()))


@tool(**READS, capabilities=("see from where datasets can be loaded",))
def list_dataset_load_strategies(
    executor_type: Annotated[
        Executor | None, Field(description="Only those of this executor")
    ] = None,
) -> Strategies:
    """Lists where data can be loaded from, and which keys an entry of dataset.configs needs."""
    every = bundled().strategies
    return Strategies(strategies=bundled().strategies_of(executor_type) if executor_type else every)
