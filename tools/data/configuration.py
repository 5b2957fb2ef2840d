"""What a recipe can say beside its operators: keys of the system, and ways to load data."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tools.core.spec import Effect, ToolScope, tool
from tools.data.answers.configuration import (
    Formatters,
    Options,
    ReadOrMade,
    Strategies,
    WayToLoad,
)
from tools.data.catalogue.bundle import bundled
from tools.data.recipe import Executor


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
    chosen = (each for each in found if each.name.startswith(prefix))
    return Options.of(chosen, bundled().version, described=include_descriptions)


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    idempotent=True,
    tags=("data", "recipes"),
    capabilities=("see which formats of datasets can be read, or made",),
)
def list_dataset_formatters() -> Formatters:
    """Lists the formatters: which files each reads, or what dataset it makes."""
    return Formatters(formatters=list(map(ReadOrMade.of, bundled().formatters.values())))


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
    return Strategies(strategies=list(map(WayToLoad.of, found)))
