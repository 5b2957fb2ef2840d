"""Registers tools: our own, and those of installed packages, function files and APIs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import anyio

import tools
from server.composition.safety import protected, read_only
from server.mcp.prompts import PROMPTS
from server.mcp.surface import Surface
from server.settings import Settings
from server.settings_error import SettingsError
from storage.outbound import OPT_OUT
from tools.core.browsing.offered import Offered, Spec
from tools.core.collections import Collections
from tools.core.discovery import discover, discover_installed
from tools.core.machine import Machine
from tools.core.registry import ToolRegistry
from tools.functions.files import FunctionFiles
from tools.functions.programs.created import CreatedTools
from tools.sandbox.files.openat import HeldRoot

if TYPE_CHECKING:
    from tools.functions.file import WorkerOptions
    from tools.functions.workers.store import StoreOptions
    from tools.openapi.api import Apis


def make_worker_options(
    settings: Settings, environ: Mapping[str, str], held: HeldRoot | None = None
) -> WorkerOptions:
    """Builds the options of workers when the first one starts.

    Args:
        settings: The settings.
        environ: The environment; workers get all of it except settings.
        held: Pins the root directory; None uses the current one.
    """
    from tools.functions.environment import Environments
    from tools.functions.file import WorkerOptions

    settings.create_directories()
    may_store = [path.resolve() for path in settings.functions.context]
    seen = {name: value for name, value in environ.items() if not name.startswith("TOOLCRIB")}
    seen |= OPT_OUT
    return WorkerOptions(
        environments=Environments(settings.data_dir / "environments", environ=seen),
        variables=seen,
        held=held or HeldRoot(str(settings.root)),
        protected=protected(settings),
        read_only=read_only(settings),
        memory_bytes=settings.functions.memory_mb * 1_000_000,
        starts=anyio.CapacityLimiter(os.cpu_count() or 1),
        stores=dict.fromkeys(may_store, _store_options(settings)) if may_store else {},
    )


def _store_options(settings: Settings) -> StoreOptions:
    from tools.functions.workers.store import StoreOptions

    return StoreOptions(
        directory=settings.data_dir,
        embedder=settings.embedder.options,
        chroma_url=settings.chroma.url,
        private=settings.requests.private,
        proxy=settings.requests.proxy,
        alpha=settings.search.alpha,
        max_document_bytes=settings.limits.max_document_bytes,
    )


def check_surface(
    settings: Settings,
    surface: Surface,
    registry: ToolRegistry,
    created: CreatedTools | None = None,
) -> None:
    """Rejects names in the surface that no tool has, once all tools are known.

    Args:
        settings: The settings, which tell whether more tools come later.
        surface: The surface.
        registry: The tools.
        created: The created tools; None if there are none yet.
    """
    if settings.functions.paths or settings.servers or settings.openapi:
        return
    try:
        surface.check(registry)
    except SettingsError:
        if created is None:
            raise
        created.load()  # loaded last: it is slow and rarely needed
        surface.check(registry.of(settings.identity.user_id))


def discover_tools(collections: Collections) -> ToolRegistry:
    """Registers our own tools and those of installed packages, adapted to the collections."""
    registry = ToolRegistry()
    discover(registry, tools)
    discover_installed(registry)
    registry.customize(collections)
    return registry


def apis_of(settings: Settings, registry: ToolRegistry, machine: Machine) -> Apis | None:
    """Builds the HTTP APIs, which register their tools; None if none are set."""
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
    """Builds the function files, which register their tools while running."""
    options = partial(make_worker_options, settings, environ, held)
    return FunctionFiles(settings.functions.paths, registry, options, Offered(_objection_to))


def _objection_to(spec: Spec) -> str:
    from server.mcp.browsing.objections import objection_to

    return objection_to(PROMPTS, spec)
