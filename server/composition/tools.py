"""Builds what offers tools: ours, packages, function files, APIs, agents and other servers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import anyio

import tools
from server.composition.machine import MachineParts, protected, proxy_of, read_only, references_of
from server.mcp.prompts import PROMPTS
from server.mcp.sessions import ClientRequests, Sessions
from server.mcp.surface import Surface
from server.settings import Settings
from server.settings_file import SettingsError
from server.upstream.connections.environment import allowed_servers
from server.upstream.late_gateway import LateGateway
from storage.library import Library
from storage.outbound import OPT_OUT
from tools.core.collections import Collections
from tools.core.discovery import discover, discover_installed
from tools.core.machine import Machine
from tools.core.offered import Offered, Spec
from tools.core.registry import ToolRegistry
from tools.functions.files import FunctionFiles
from tools.functions.programs.created import CreatedTools
from tools.sandbox.files.openat import HeldRoot

if TYPE_CHECKING:
    from server.settings.gateway import ServerSettings
    from server.upstream.gateway import Gateway
    from tools.functions.file import WorkerOptions
    from tools.functions.programs.worker_pool import WarmTools
    from tools.openapi.api import Apis


def _worker_options(
    settings: Settings, environ: Mapping[str, str], held: HeldRoot | None = None
) -> WorkerOptions:
    """Builds the options of workers when the first one starts."""
    from tools.functions.environment import Environments
    from tools.functions.file import WorkerOptions
    from tools.functions.workers.store import StoreOptions

    settings.create_directories()
    store = StoreOptions(
        directory=settings.data_dir,
        embedder=settings.embedder.options,
        chroma_url=settings.chroma.url,
        private=settings.requests.private,
        proxy=proxy_of(settings, references_of(settings, environ)),
        alpha=settings.search.alpha,
        max_document_bytes=settings.limits.max_document_bytes,
    )
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
        stores={path.resolve(): store for path in settings.functions.context},
    )


def check_surface(
    settings: Settings,
    surface: Surface,
    registry: ToolRegistry,
    created: CreatedTools | None = None,
) -> None:
    """Rejects names in the surface that no tool has, once all tools are known."""
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

    def objection_to(spec: Spec) -> str:
        from server.mcp.browsing import objections

        return objections.objection_to(PROMPTS, spec)

    options = partial(_worker_options, settings, environ, held)
    return FunctionFiles(settings.functions.paths, registry, options, Offered(objection_to))


def make_created(registry: ToolRegistry, library: Library, machine: Machine) -> CreatedTools:
    """Builds the tools that agents write, stored in the record and run in code workers."""

    def make_warm() -> WarmTools:
        from tools.functions.programs.code_workers import code_workers_of
        from tools.functions.programs.worker_pool import WarmTools

        return WarmTools(partial(code_workers_of, machine))

    return CreatedTools(lambda: library.catalog.created, registry, make_warm)


def make_gateway(  # noqa: PLR0913  # the composition root hands over every part by name
    parts: MachineParts,
    *,
    registry: ToolRegistry,
    library: Library,
    sessions: Sessions,
    requests: ClientRequests,
    command: str,
) -> LateGateway:
    """Builds the gateway; without servers, it loads nothing."""
    settings = parts.settings

    def make(servers: Mapping[str, ServerSettings]) -> Gateway:
        from server.upstream.calling.exchange import questions_of
        from server.upstream.connections.listing import Cached
        from server.upstream.gateway import Gateway
        from server.upstream.held_skills import HeldSkills
        from server.upstream.safety.admission import Admission

        return Gateway(
            servers,
            registry,
            sessions.own,
            shared_home=sessions.shared,
            admission=Admission(registry, library.catalog.pins, servers),
            transports=parts.transports(),
            cached=Cached(library.catalog.listings),
            skills=HeldSkills(library.catalog.pins),
            make_callbacks=partial(questions_of, requests),
            before_home=partial(requests.clients.wait_for, sessions.own),
            command=command,
        )

    gateway = LateGateway(settings.servers, partial(allowed_servers, environ=parts.variables), make)
    requests.ended = gateway.end
    return gateway
