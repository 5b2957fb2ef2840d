"""Builds the tools that agents write, stored in the record and run in cells."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from storage.library import Library
from tools.core.errors import UnavailableError
from tools.core.machine import Machine
from tools.core.registry import ToolRegistry
from tools.functions.programs.created import CreatedTools

if TYPE_CHECKING:  # loaded where there are some
    from storage.catalog.created_tools import CreatedToolStore
    from tools.functions.programs.warm import WarmTools


def make_created(registry: ToolRegistry, library: Library, machine: Machine) -> CreatedTools:
    """Builds the store and runner of created tools.

    Args:
        registry: The registry for calls.
        library: Stores the tools.
        machine: Provides their processes.
    """
    return CreatedTools(lambda: library.catalog.created, registry, partial(_make_warm, machine))


def list_created(registry: ToolRegistry, store: CreatedToolStore) -> None:
    """Registers created tools for display, not for calls."""
    CreatedTools(lambda: store, registry, _none_warm).load()


def _none_warm() -> WarmTools:
    raise UnavailableError("Created tools cannot be called here.")


def _make_warm(machine: Machine) -> WarmTools:
    from tools.functions.programs.cells import cells_of
    from tools.functions.programs.warm import WarmTools

    return WarmTools(partial(cells_of, machine))
