"""The tools that agents write, kept in the record and run in cells."""

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
    """Makes what keeps created tools and has them run.

    Args:
        registry: Where they are called.
        library: What they are kept in.
        machine: Gives the processes that they run in.
    """
    return CreatedTools(lambda: library.catalog.created, registry, partial(_make_warm, machine))


def list_created(registry: ToolRegistry, store: CreatedToolStore) -> None:
    """Puts created tools into a registry, to be looked at, not called."""
    CreatedTools(lambda: store, registry, _none_warm).load()


def _none_warm() -> WarmTools:
    raise UnavailableError("Nothing is called here.")


def _make_warm(machine: Machine) -> WarmTools:
    from tools.functions.programs.cells import cells_of
    from tools.functions.programs.warm import WarmTools

    return WarmTools(partial(cells_of, machine))
