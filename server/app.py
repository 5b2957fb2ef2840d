"""The composition root: reads the settings and assembles the product."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.lowlevel import Server

from server.chat import ChatSampler
from server.composition.agents import (
    agents_of,
    close_lost_delegations,
    make_agents,
    own_delegation,
    tools_of,
)
from server.composition.browsing import make_browsing
from server.composition.catalogue import make_catalogue
from server.composition.created import make_created
from server.composition.current_policy import CurrentPolicy
from server.composition.gateway import make_gateway
from server.composition.registered import (
    apis_of,
    check_surface,
    discover_tools,
    function_files,
)
from server.composition.safety import (
    endpoint_client,
    let_through,
    make_approvals,
    make_audit,
    make_history,
    make_machine,
    make_policy,
    make_sandbox,
)
from server.composition.skills import view_skills
from server.mcp.asking.client_requests import ClientRequests
from server.mcp.browsing.skill_methods import SkillMethods
from server.mcp.browsing.skill_resources import SkillResources
from server.mcp.profiles import Profiles, check_profiles
from server.mcp.prompts import Prompts
from server.mcp.protocol import build_server
from server.mcp.resources import ContextResources
from server.mcp.sessions import Sessions
from server.mcp.surface import Surface
from server.mcp.tasks.long_calls import LongCalls
from server.mcp.tasks.tasks import Tasks
from server.opening.first_reply import INSTRUCTIONS, NAME
from server.settings import Settings
from server.settings.collections import collections_of
from server.upstream.no_gateway import NoGateway
from storage.database import RECORD
from storage.index.embedders.making import find_embedder, make_embedder
from storage.library import Library
from storage.models import Identity
from storage.outbound import opt_out, remove_telemetry_files
from tools.core.audit.recording import Recording
from tools.core.client import Sampler
from tools.core.context import Link, Origin, RequestContext
from tools.core.jobs.jobs import PATIENCE, Jobs
from tools.core.machine import Machine
from tools.core.manager import SandboxToolManager
from tools.core.permission import Permissions
from tools.core.registry import ToolRegistry
from tools.core.toolset import ToolSet
from tools.functions.files import FunctionFiles
from tools.functions.programs.created import CreatedTools, created_of
from tools.retrieval.catalogue import Catalogue
from tools.sandbox.secrets.redaction import Redaction

if TYPE_CHECKING:
    from server.mcp.browsing.browsing import Browsing
    from server.upstream.gateway import Gateway
    from storage.agent.delegations import Delegation
    from tools.openapi.api import Apis
    from tools.sandbox.history.history import History


@dataclass(frozen=True, slots=True)
class App:
    """The assembled product.

    Attributes:
        settings: The settings it was built from.
        library: The stored data.
        registry: The tools.
        manager: The call path.
        personal: The call path of the local user, which may open every file and records nothing.
        machine: Access to processes and the web.
        created: Tools written by agents, available while the app runs.
        history: Returns the file history; builds it on the first call.
        functions: The function files, whose tools are available while the app runs.
        gateway: The other servers, whose tools are available while the app runs.
        apis: The HTTP APIs, whose tools are available while the app runs; None without APIs.
        catalogue: Finds tools; indexes them in the background while the app runs.
        browsing: Resources and prompts for clients, with change notifications.
        requests: Forwards requests of other servers to the clients.
        jobs: Long calls, which continue while the app runs.
        identity: The caller of calls that name none.
        tool_set: The tools allowed to the agent that started this process; None allows all.
        sessions: Maps calls to sessions.
        server: The MCP server that every transport runs.
    """

    settings: Settings
    library: Library
    registry: ToolRegistry
    manager: SandboxToolManager
    personal: SandboxToolManager
    machine: Machine
    created: CreatedTools
    history: Callable[[], History]
    functions: FunctionFiles
    gateway: Gateway | NoGateway
    apis: Apis | None
    catalogue: Catalogue
    browsing: Browsing
    requests: ClientRequests
    jobs: Jobs
    identity: Identity
    tool_set: ToolSet | None
    sessions: Sessions
    server: Server[Any]

    @property
    def context(self) -> RequestContext:
        """The context of a call from the command line."""
        return RequestContext(
            Origin(
                self.identity,
                bound=self.requests.is_delegated,
                session_id=self.sessions.own,
                client="toolcrib",
                tool_set=self.tool_set,
            ),
            Link(sampler=_sampler(self.settings)),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the background work; entered once per process, around all serving."""
        self.library.indexer.start()
        try:
            async with AsyncExitStack() as stack:
                parts = (self.machine, self.created, self.functions, self.gateway, self.apis)
                for part in parts:
                    if part is not None:
                        await stack.enter_async_context(part.running())
                for after in (self.browsing, self.requests.suspended, self.catalogue, self.jobs):
                    await stack.enter_async_context(after.running())
                if self.gateway.upstreams:  # they may offer thousands
                    self.catalogue.notify()
                yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.library.close)


def build(settings: Settings, *, command: str = "toolcrib", patience: float = PATIENCE) -> App:
    """Builds the app.

    Args:
        settings: The settings.
        command: How the user types `toolcrib`, for advice in error messages.
        patience: Seconds before a long call is answered with a job.
    """
    collections = collections_of(
        settings.sources, settings.directories, settings.root, settings.secrets
    )
    check_profiles(settings)
    agents = agents_of(settings)
    registry = discover_tools(replace(collections, agents=agents))
    surface = Surface(settings.surface, settings.servers)
    if not (settings.data_dir / RECORD).exists():  # so no tool was created yet
        check_surface(settings, surface, registry)
    library = _open_library(settings)
    delegation = own_delegation(library, os.environ)
    profiles = Profiles(settings.profiles, tools_of(delegation))
    recording = Recording(library.recorder) if settings.memory.record else None
    redaction = Redaction()
    sandbox = make_sandbox(settings, settings.root)
    functions = function_files(settings, os.environ, registry, sandbox.held)
    policy = CurrentPolicy(settings, partial(make_policy, settings, registry))
    machine = make_machine(
        settings,
        os.environ,
        redaction,
        sandbox,
        policy.denied_places,
        agents=lambda: make_agents(
            settings,
            agents,
            os.environ,
            library,
            server,
            redaction,
            sandbox,
            policy.denied_places,
        ),
        created=lambda: make_created(registry, library, machine),
    )
    created = created_of(machine)
    check_surface(settings, surface, registry, created)
    identity, sessions = _whose(settings, delegation)
    requests = ClientRequests(sessions, identity, is_delegated=delegation is not None)
    gateway = make_gateway(
        settings,
        os.environ,
        registry=registry,
        library=library,
        sessions=sessions,
        requests=requests,
        command=command,
    )
    apis = apis_of(settings, registry, machine)
    jobs = Jobs(library, patience, partial(close_lost_delegations, settings, library))
    catalogue = make_catalogue(
        settings,
        os.environ,
        sandbox,
        registry=registry,
        library=library,
        gateway=gateway,
        apis=apis,
    )

    async def find(name: str) -> None:
        await created.refresh()
        await functions.refresh()
        await gateway.find(name)
        if apis is not None:
            await apis.find(name)

    make_manager = partial(
        SandboxToolManager,
        registry,
        library=library,
        text_budget=settings.limits.text_budget,
        collections=collections,
        find_more=find,
        catalogue=catalogue,
        command=command,
        jobs=jobs,
    )
    history = cache(partial(make_history, settings, library, sandbox))
    manager = make_manager(
        sandbox=sandbox,
        history=history if settings.undo.enabled else None,
        permissions=Permissions(
            policy,
            partial(make_approvals, settings, library, command),
            machine,
            partial(let_through, settings),
        ),
        machine=machine,
        recording=recording,
        audit=make_audit(settings),
        redaction=redaction,
    )
    personal = make_manager(
        sandbox=make_sandbox(settings, Path(settings.root.anchor)),
        permissions=None,
        machine=machine,
    )

    lists_others = partial(
        surface.may_list_servers,
        registry,
        [name for profile in settings.profiles.values() for name in profile.pinned],
    )

    async def ready() -> None:
        await functions.loaded()
        await gateway.ready()
        if apis is not None and lists_others():
            await anyio.to_thread.run_sync(apis.settle)  # they may be listed

    resources = ContextResources(library, identity, collections.sources, policy.closes)
    prompts = Prompts(
        resources, registry, sessions, recording, view_skills(catalogue, identity, profiles)
    )
    sampler = _sampler(settings)
    browsing = make_browsing(
        settings,
        gateway,
        functions,
        resources=SkillResources(resources, prompts.skills),
        prompts=prompts,
        requests=requests,
        profiles=profiles,
        sampler=sampler,
        tools_change=lists_others,
        created=created,
        lists_created=surface.lists_all,
    )
    server = build_server(
        registry,
        manager,
        name=NAME,
        version=version("toolcrib"),
        instructions=INSTRUCTIONS,
        surface=surface,
        resources=browsing.resources,
        prompts=browsing.prompts,
        requests=requests,
        ready=ready,
        sampler=sampler,
        profiles=profiles if settings.profiles or agents or delegation else None,
        results=settings.results,
        subscriptions=browsing.subscriptions,
        tasks=Tasks(LongCalls(jobs), requests),
        skills=SkillMethods(prompts.skills),
    )
    return App(
        settings=settings,
        library=library,
        registry=registry,
        manager=manager,
        personal=personal,
        machine=machine,
        created=created,
        history=history,
        functions=functions,
        gateway=gateway,
        apis=apis,
        catalogue=catalogue,
        browsing=browsing,
        requests=requests,
        jobs=jobs,
        identity=identity,
        tool_set=tools_of(delegation),
        sessions=sessions,
        server=server,
    )


def _whose(settings: Settings, delegation: Delegation | None) -> tuple[Identity, Sessions]:
    """Returns the caller of this process's calls, and its sessions."""
    if delegation is not None:  # record an agent's calls as its own
        return delegation.identity, Sessions(only=delegation.session_id)
    return Identity(**settings.identity.model_dump()), Sessions()


def _open_library(settings: Settings) -> Library:
    opt_out()
    settings.create_directories()
    client = partial(endpoint_client, settings)
    embedder = settings.embedder.options
    library = Library(
        settings.data_dir,
        make_embedder(embedder, client=client),
        make=partial(find_embedder, embedder, client=client),
        chroma_url=settings.chroma.url,
        client=client,
        alpha=settings.search.alpha,
        max_document_bytes=settings.limits.max_document_bytes,
        consolidate=settings.memory.consolidate,
        change_mb=settings.undo.keep_mb,
        change_days=settings.undo.keep_days,
    )
    remove_telemetry_files(library.database)
    return library


def _sampler(settings: Settings) -> Sampler | None:
    named = settings.summaries
    if not named.url:
        return None
    key = named.api_key.get_secret_value()
    return ChatSampler(
        named.url,
        named.model,
        api_key=key,
        timeout=named.timeout,
        client=partial(endpoint_client, settings),
    )
