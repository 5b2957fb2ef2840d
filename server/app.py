"""The composition root: the only place where settings are read and parts are put together."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.lowlevel import Server

import tools
from server.collection_settings import holdings_of
from server.embedders import find_embedder, make_embedder
from server.prompts import Prompts
from server.protocol import build_server
from server.resources import ContextResources
from server.sessions import Sessions
from server.settings import DEFAULT_SOURCE, Settings
from server.surface import Surface
from storage.library import Library
from storage.models import Identity
from tools.core.audit import Audit
from tools.core.chat import ChatSampler
from tools.core.context import RequestContext
from tools.core.functions.files import FunctionFiles
from tools.core.holdings import Holdings
from tools.core.machine import Machine
from tools.core.manager import SandboxToolManager
from tools.core.permission import Permissions
from tools.core.processes.models import Limits
from tools.core.recording import Recording
from tools.core.registry import ToolRegistry
from tools.core.sampling import Sampler
from tools.core.sandbox import Sandbox

if TYPE_CHECKING:
    import httpx2

    from server.approvals import StoredApprovals
    from tools.core.functions.file import Workshop
    from tools.core.policy.policy import Policy
    from tools.core.processes.processes import Processes
    from tools.core.web.client import WebClient
    from tools.core.web.guard import AddressGuard
    from tools.core.web.search import WebSearch

__all__ = ["App", "build", "discover_tools", "function_files"]

INSTRUCTIONS = (
    "Toolcrib keeps this user's context and gives you tools on their machine. Before you say that"
    " you do not know something about the user, their files or their work, ask `query`. Keep what"
    " is worth finding again with `remember`, `add_event` or `add_document`. For what no listed"
    " tool does, ask `search_tools`; `describe_tool` shows all that one takes. Files and programs"
    " are beneath one root directory. Some calls ask the user first. A failed call says what was"
    " wrong and what to do."
)
"""The first 512 characters are what every client shows to its model."""


@dataclass(frozen=True, slots=True)
class App:
    """The assembled product.

    Attributes:
        settings: What it was built from.
        library: What is stored.
        registry: The tools.
        manager: The call path.
        personal: The call path of the person at the keyboard, to whom every file is open; what it
            does is not recorded.
        machine: Processes and the web.
        functions: The function files, whose tools are there while it is running.
        identity: Whose calls these are when a call does not say.
        sessions: Which conversation a call belongs to.
        server: The MCP server that every transport runs.
    """

    settings: Settings
    library: Library
    registry: ToolRegistry
    manager: SandboxToolManager
    personal: SandboxToolManager
    machine: Machine
    functions: FunctionFiles
    identity: Identity
    sessions: Sessions
    server: Server[Any]

    @property
    def context(self) -> RequestContext:
        """The context of a call from the command line."""
        return RequestContext(
            self.identity,
            sampler=_sampler(self.settings),
            session_id=self.sessions.own,
            client="toolcrib",
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the background work; entered once a process, around everything that is served."""
        self.library.indexer.start()
        try:
            async with self.machine.running(), self.functions.running():
                yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.library.close)


def build(settings: Settings) -> App:
    """Puts the product together.

    Raises:
        SettingsError: If a directory of the settings cannot be made, or the surface names a tool
            that there is not.
        StorageError: If the data directory cannot be used.
    """
    holdings = holdings_of(settings)
    registry = discover_tools(holdings)
    surface = Surface(settings.surface)
    if not settings.functions.paths:  # whose tools are known when they are loaded
        surface.check(registry)
    library = _open_library(settings)
    functions = function_files(settings, registry)
    recording = Recording(library.recorder) if settings.memory.record else None
    sandbox = _sandbox(settings, settings.root)
    machine = _machine(settings)
    manager = SandboxToolManager(
        registry,
        sandbox=sandbox,
        library=library,
        permissions=Permissions(
            partial(make_policy, settings, registry),
            partial(_approvals, settings, library),
            machine,
        ),
        machine=machine,
        text_budget=settings.limits.text_budget,
        holdings=holdings,
        recording=recording,
        audit=_audit(settings),
        find_more=functions.refresh,
    )
    personal = SandboxToolManager(
        registry,
        sandbox=_sandbox(settings, Path(settings.root.anchor)),
        library=library,
        permissions=None,
        text_budget=settings.limits.text_budget,
        holdings=holdings,
        find_more=functions.refresh,
    )
    identity = Identity(**settings.identity.model_dump())
    sessions = Sessions()
    resources = ContextResources(library, identity, holdings.sources)
    server = build_server(
        registry,
        manager,
        name="toolcrib",
        version=version("toolcrib"),
        instructions=INSTRUCTIONS,
        identity=identity,
        surface=surface,
        resources=resources,
        prompts=Prompts(resources, registry, sessions, recording),
        sessions=sessions,
        ready=functions.loaded,
        sampler=_sampler(settings),
    )
    return App(
        settings=settings,
        library=library,
        registry=registry,
        manager=manager,
        personal=personal,
        machine=machine,
        functions=functions,
        identity=identity,
        sessions=sessions,
        server=server,
    )


def discover_tools(holdings: Holdings) -> ToolRegistry:
    """Every tool, the project's own and those of installed packages, fitted to the holdings."""
    registry = ToolRegistry()
    registry.discover(tools)
    registry.discover_installed()
    registry.tailor(holdings)
    return registry


def make_policy(settings: Settings, registry: ToolRegistry) -> Policy:
    """The rules of the settings and of their profile, about the tools that there are."""
    from tools.core.policy.policy import Policy  # noqa: PLC0415  # imported on first use

    rules = settings.policy
    return Policy(
        rules.profile,
        allow=rules.allow,
        ask=rules.ask,
        deny=rules.deny,
        root=settings.root,
        find=registry.get,
    )


def make_processes(settings: Settings) -> Processes:
    """What starts programs, confined as the settings require."""
    from tools.core.processes.processes import Processes  # noqa: PLC0415  # imported on first use
    from tools.core.processes.variables import chosen_variables  # noqa: PLC0415  # the same

    wanted = settings.system
    return Processes(
        root=settings.root,
        protected=_protected(settings),
        read_only=_read_only(settings),
        mode=wanted.sandbox,
        limits=Limits(
            cpu_seconds=wanted.cpu_seconds,
            memory_bytes=wanted.memory_mb * 1_000_000,
            processes=wanted.processes,
            file_bytes=wanted.file_mb * 1_000_000,
        ),
        environment=chosen_variables(os.environ, wanted.environment),
        readable=wanted.readable,
        network=wanted.network,
        sandbox=_sandbox(settings, settings.root),
        data_dir=settings.data_dir,
        guard=partial(_guard, settings),
    )


def function_files(settings: Settings, registry: ToolRegistry) -> FunctionFiles:
    """The function files of the settings, which put their tools into a registry while running."""
    return FunctionFiles(settings.functions.paths, registry, partial(_workshop, settings))


def _workshop(settings: Settings) -> Workshop:
    from tools.core.functions.environment import Environments  # noqa: PLC0415  # on first use
    from tools.core.functions.file import Workshop  # noqa: PLC0415  # the same
    from tools.core.functions.installers import find_uv  # noqa: PLC0415  # the same

    environ = {name: value for name, value in os.environ.items() if not name.startswith("TOOLCRIB")}
    return Workshop(
        environments=Environments(
            settings.data_dir / "environments", environ=environ, uv=find_uv(environ)
        ),
        variables=environ,
        root=settings.root,
        protected=_protected(settings),
        read_only=_read_only(settings),
        memory_bytes=settings.functions.memory_mb * 1_000_000,
        starts=anyio.CapacityLimiter(os.cpu_count() or 1),
    )


def _open_library(settings: Settings) -> Library:
    settings.create_directories()
    client = partial(_endpoint_client, settings)
    return Library(
        settings.data_dir,
        make_embedder(settings.embedder, client=client),
        make=partial(find_embedder, settings.embedder, client=client),
        chroma_url=settings.chroma.url,
        client=client,
        alpha=settings.search.alpha,
        max_document_bytes=settings.limits.max_document_bytes,
        consolidate=settings.memory.consolidate,
    )


def _sampler(settings: Settings) -> Sampler | None:
    """The way to the model that the settings name."""
    named = settings.summaries
    if not named.url:
        return None
    key = named.api_key.get_secret_value()
    return ChatSampler(
        named.url,
        named.model,
        api_key=key,
        timeout=named.timeout,
        client=partial(_endpoint_client, settings),
    )


def _endpoint_client(settings: Settings, url: str) -> httpx2.Client:
    """What asks an endpoint that the settings name."""
    from tools.core.web.blocking import endpoint_client  # noqa: PLC0415  # imported on first use

    wanted = settings.requests
    return endpoint_client(url, private=wanted.private, proxy=wanted.proxy)


def _sandbox(settings: Settings, root: Path) -> Sandbox:
    return Sandbox(root, protected=_protected(settings), read_only=_read_only(settings))


def _machine(settings: Settings) -> Machine:
    return Machine(
        processes=partial(make_processes, settings),
        web=partial(_web, settings),
        search=partial(_search, settings),
    )


def _search(settings: Settings) -> WebSearch:
    from tools.core.web.search import make_search  # noqa: PLC0415  # imported on first use

    wanted = settings.web_search
    return make_search(
        provider=wanted.provider,
        engines=wanted.engines,
        url=wanted.url,
        api_key=wanted.api_key.get_secret_value(),
        per_minute=wanted.per_minute,
        private=settings.requests.private,
        proxy=settings.requests.proxy,
    )


def _web(settings: Settings) -> WebClient:
    from tools.core.web.client import WebClient  # noqa: PLC0415  # imported on first use

    wanted = settings.requests
    return WebClient(
        _guard(settings),
        proxy=wanted.proxy,
        timeout=wanted.timeout,
        max_bytes=wanted.max_mb * 1_000_000,
    )


def _guard(settings: Settings) -> AddressGuard:
    from tools.core.web.guard import AddressGuard  # noqa: PLC0415  # imported on first use

    return AddressGuard(settings.requests.private)


def _approvals(settings: Settings, library: Library) -> StoredApprovals:
    from server.approvals import StoredApprovals  # noqa: PLC0415  # imported on first use
    from storage.approvals import ApprovalStore  # noqa: PLC0415  # the same

    wanted = settings.approvals
    elsewhere = settings.source_of("data_dir") != DEFAULT_SOURCE
    command = "toolcrib approvals"
    if elsewhere:
        command += f" --data-dir {shlex.quote(str(settings.data_dir))}"
    return StoredApprovals(
        ApprovalStore(library.database),
        root=str(settings.root),
        command=command,
        wait=wanted.wait_seconds,
        expire=wanted.expire_seconds,
        grant=wanted.grant_seconds,
    )


def _audit(settings: Settings) -> Audit:
    wanted = settings.audit
    return Audit(settings.audit_file, max_bytes=wanted.max_bytes, backups=wanted.backups)


def _protected(settings: Settings) -> tuple[Path, ...]:
    """What no tool may touch, wherever the root lies."""
    own = (settings.data_dir, settings.log_file, settings.config_file)
    return tuple(path for path in own if path is not None)


def _read_only(settings: Settings) -> tuple[Path, ...]:
    """What the server runs: itself, the function files, and the directories that they import from.

    One in the root itself is closed alone: the root is what agents write to.
    """
    paths = settings.functions.paths
    folders = [path if path.is_dir() else path.parent for path in paths]
    own = {Path(prefix).resolve() for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix)}
    inside = sorted(each for each in own if each.is_relative_to(settings.root.resolve()))
    return *paths, *(
        each for each in (*folders, *inside) if not settings.root.resolve().is_relative_to(each)
    )
