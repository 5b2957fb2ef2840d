"""The tools that there are: our own, those of installed packages, of function files and of APIs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import tools
from server.composition.function_workers import make_worker_options
from server.mcp.prompts import PROMPTS
from server.mcp.surface import Surface
from server.settings import Settings
from server.settings_error import SettingsError
from tools.core.browsing.offered import Offered, Spec
from tools.core.collections import Collections
from tools.core.discovery import discover, discover_installed
from tools.core.machine import Machine
from tools.core.registry import ToolRegistry
from tools.functions.files import FunctionFiles
from tools.functions.programs.created import CreatedTools

if TYPE_CHECKING:
    from tools.openapi.apis import Apis
    from tools.sandbox.files.openat import HeldRoot


def check_surface(
    settings: Settings,
    surface: Surface,
    registry: ToolRegistry,
    created: CreatedTools | None = None,
) -> None:
    """Refuses names in the surface that no tool has, where all tools are known by now.

    Args:
        settings: Which tools come later.
        surface: The surface.
        registry: The tools.
        created: The created ones; None where there are none.

    Raises:
        SettingsError: If there are some.
    """
    if settings.functions.paths or settings.servers or settings.openapi:
        return
    try:
        surface.check(registry)
    except SettingsError:
        if created is None:
            raise
        created.load()  # which takes time, and few name one of these
        surface.check(registry.of(settings.identity.user_id))


def discover_tools(collections: Collections) -> ToolRegistry:
    """Every tool, the project's own and those of installed packages, fitted to the collections."""
    registry = ToolRegistry()
    discover(registry, tools)
    discover_installed(registry)
    registry.customize(collections)
    return registry


def apis_of(settings: Settings, registry: ToolRegistry, machine: Machine) -> Apis | None:
    """The HTTP APIs of the settings, which put their tools into a registry; None without any."""
    if not settings.openapi:
        return None
    from server.composition.apis import make_apis

    return make_apis(settings, registry, machine)


def function_files(
    settings: Settings,
    environ: Mapping[str, str],
    registry: ToolRegistry,
    held: HeldRoot | None = None,
) -> FunctionFiles:
    """The function files of the settings, which put their tools into a registry while running."""
    options = partial(make_worker_options, settings, environ, held)
    return FunctionFiles(settings.functions.paths, registry, options, Offered(_objection_to))


def _objection_to(spec: Spec) -> str:
    from server.mcp.browsing.objections import objection_to

    return objection_to(PROMPTS, spec)
