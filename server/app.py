"""The composition root: assembles the product from the settings."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.lowlevel import Server

from server.composition.agents import (
    agents_of,
    close_lost_delegations,
    make_agents,
    own_delegation,
    tools_of,
)
from server.composition.catalogue import make_catalogue, view_skills
from server.composition.current import CurrentSettings, checked_policy
from server.composition.following import Following
from server.composition.library import make_fitting, make_sampler, open_library, result_limits
from server.composition.machine import MachineParts, make_history, make_sandbox
from server.composition.policy import let_through, make_approvals
from server.composition.tools import (
    apis_of,
    check_surface,
    discover_tools,
    function_files,
    make_created,
    make_gateway,
)
from server.fast_start.first_reply import INSTRUCTIONS, NAME
from server.hooks.events import store_left
from server.hooks.project import project_of
from server.mcp.browsing.skill_methods import SkillMethods
from server.mcp.profiles import Profiles, check_profiles
from server.mcp.prompts import PromptProvider
from server.mcp.protocol import build_server
from server.mcp.resources import ContextProvider
from server.mcp.sessions import ClientRequests, Sessions
from server.mcp.surface import Surface
from server.mcp.tasks import Tasks
from server.settings import Settings
from server.upstream.late_gateway import LateGateway
from storage.database import RECORD
from storage.library import Library
from storage.locks import made_once
from storage.models import Identity
from tools.core.audit.recording import Audit, Recording
from tools.core.client import Sampler
from tools.core.context import Link, Origin, RequestContext
from tools.core.jobs import PATIENCE, Jobs
from tools.core.machine import Machine
from tools.core.manager import SandboxToolManager
from tools.core.permission import Permissions
from tools.core.registry import ToolRegistry
from tools.core.toolset import ToolSet
from tools.functions.files import FunctionFiles
from tools.functions.programs.created import CreatedTools, created_of
from tools.retrieval.catalogue import Catalogue
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.secrets.redaction import Redaction

if TYPE_CHECKING:
    from server.mcp.browsing.provider import Browsing
    from server.settings.http import HttpSettings
    from storage.agent.delegations import Delegation
    from tools.openapi.api import Apis
    from tools.sandbox.history.history import History


def build(settings: Settings, *, command: str = "toolcrib", patience: float = PATIENCE) -> App:
    """Builds the app with all that serving needs; `App` describes the parameters."""
    app = App(settings, command=command, patience=patience)
    app.check_names()
    _ = app.server
    return app


class App:
    """The assembled product: each part is built on first use, so a command builds what it needs.

    Args:
        settings: The settings.
        command: How the user types `toolcrib`, for advice in error messages.
        patience: Seconds before a long call is answered with a job.
    """

    def __init__(
        self, settings: Settings, *, command: str = "toolcrib", patience: float = PATIENCE
    ) -> None:
        self.settings = settings
        self._command = command
        self._patience = patience
        self._redaction = Redaction()
        self._agents = agents_of(settings)
        self._collections = replace(settings.collections, agents=self._agents)
        self.surface = Surface(
            settings.surface, settings.servers, settings.profiles, result_limits(settings)
        )
        self.current = CurrentSettings(
            settings, lambda now: checked_policy(settings, now, self.registry)
        )

    def check_names(self) -> None:
        """Rejects names in the settings that no tool, token or server has."""
        check_profiles(self.settings)
        created = self.created if (self.settings.data_dir / RECORD).exists() else None
        check_surface(self.settings, self.surface, self.registry, created)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the background work; entered once per process, around all serving."""
        self.library.indexer.start()
        # Thousands of events may wait: storing them must not delay the first answer.
        Thread(target=store_left, args=(self.settings.data_dir,), daemon=True).start()
        try:
            async with AsyncExitStack() as stack:
                for part in (self.machine, self.created, self.functions, self.gateway, self.apis):
                    if part is not None:
                        await stack.enter_async_context(part.running())
                for after in (self.browsing, self.requests.suspended, self.catalogue, self.jobs):
                    await stack.enter_async_context(after.running())
                if self.gateway.upstreams:  # they may offer thousands
                    self.catalogue.notify()
                if self.current.is_followed:
                    following = Following(
                        self.current, self.functions, self.surface, self.gateway, self.browsing
                    )
                    await stack.enter_async_context(following.running())
                yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.close)

    def close(self) -> None:
        """Closes the stored data if it was opened."""
        if "library" in vars(self):
            self.library.close()

    @made_once
    def library(self) -> Library:
        """The stored data."""
        return open_library(self.settings, os.environ)

    @made_once
    def _delegation(self) -> Delegation | None:
        return own_delegation(self.library, os.environ)

    @made_once
    def identity(self) -> Identity:
        """The caller of calls that name none; a delegated agent's own."""
        if self._delegation is not None:
            return self._delegation.identity
        return Identity(**self.settings.identity.model_dump())

    @made_once
    def sessions(self) -> Sessions:
        """Maps calls to sessions."""
        only = self._delegation.session_id if self._delegation else ""
        return Sessions(only=only, hosts=self.settings.attach)

    @made_once
    def tool_set(self) -> ToolSet | None:
        """The tools allowed to the agent that started this process; None allows all."""
        return tools_of(self._delegation)

    @property
    def context(self) -> RequestContext:
        """The context of a call from the command line."""
        origin = Origin(
            self.identity,
            bound=self._delegation is not None,
            session_id=self.sessions.own,
            client="toolcrib",
            tool_set=self.tool_set,
        )
        return RequestContext(origin, Link(sampler=self._sampler))

    @made_once
    def _sampler(self) -> Sampler | None:
        return make_sampler(self.settings, os.environ)

    @made_once
    def registry(self) -> ToolRegistry:
        """The tools."""
        return discover_tools(self._collections)

    @made_once
    def _files(self) -> Sandbox:
        return make_sandbox(self.settings, self.settings.root)

    @made_once
    def parts(self) -> MachineParts:
        """Builds confined access to programs and the web, and transports to servers."""
        denied = self.current.denied_places
        return MachineParts(self.settings, os.environ, self._redaction, self._files, denied)

    @made_once
    def machine(self) -> Machine:
        """Access to processes and the web."""
        return self.parts.machine(
            agents=lambda: make_agents(self.parts, self._agents, self.library, self.server),
            created=lambda: make_created(self.registry, self.library, self.machine),
        )

    @made_once
    def created(self) -> CreatedTools:
        """Tools written by agents, available while the app runs."""
        return created_of(self.machine)

    @made_once
    def functions(self) -> FunctionFiles:
        """The function files, whose tools are available while the app runs."""
        return function_files(self.settings, os.environ, self.registry, self._files.held)

    @made_once
    def apis(self) -> Apis | None:
        """The HTTP APIs, whose tools are available while the app runs; None without APIs."""
        return apis_of(self.settings, self.registry, self.machine)

    @made_once
    def gateway(self) -> LateGateway:
        """The other servers, whose tools are available while the app runs."""
        return make_gateway(
            self.parts,
            registry=self.registry,
            library=self.library,
            sessions=self.sessions,
            requests=self.requests,
            command=self._command,
        )

    @property
    def http(self) -> HttpSettings:
        """The settings of the endpoint, with the current values of its tokens."""
        return self.settings.http.with_values(self.parts.references.secret)

    @made_once
    def catalogue(self) -> Catalogue:
        """Finds tools; indexes them in the background while the app runs."""
        return make_catalogue(self.parts, self.registry, self.library, self.gateway, self.apis)

    @made_once
    def jobs(self) -> Jobs:
        """Long calls, which continue while the app runs."""
        on_lost = partial(close_lost_delegations, self.settings, self.library)
        return Jobs(self.library, self._patience, on_lost)

    @made_once
    def history(self) -> History:
        """The history of file changes."""
        return make_history(self.settings, self.library, self._files)

    @made_once
    def _recording(self) -> Recording | None:
        if not self.settings.memory.record:
            return None
        return Recording(self.library.recorder, str(project_of(self.settings.root).directory))

    @made_once
    def manager(self) -> SandboxToolManager:
        """The call path."""
        settings, audit = self.settings, self.settings.audit
        permissions = Permissions(
            self.current.policy,
            partial(make_approvals, settings, self.library, self._command),
            self.machine,
            lambda spec: let_through(self.current.settings, spec),
        )
        return self._make_manager(
            self._files,
            permissions=permissions,
            history=cache(lambda: self.history) if settings.undo.enabled else None,
            recording=self._recording,
            audit=Audit(settings.audit_file, max_bytes=audit.max_bytes, backups=audit.backups),
            redaction=self._redaction,
            fitting=make_fitting(settings),
        )

    @made_once
    def personal(self) -> SandboxToolManager:
        """The call path of the local user, which may open every file and records nothing."""
        files = make_sandbox(self.settings, Path(self.settings.root.anchor))
        return self._make_manager(files, permissions=None)

    def _make_manager(self, files: Sandbox, **options: Any) -> SandboxToolManager:  # noqa: ANN401  # those that differ
        return SandboxToolManager(
            self.registry,
            sandbox=files,
            library=self.library,
            machine=self.machine,
            collections=self._collections,
            find_more=self._find_tool,
            catalogue=self.catalogue,
            command=self._command,
            jobs=self.jobs,
            **options,
        )

    async def _find_tool(self, name: str) -> None:
        """Looks for a tool that appeared just now."""
        await self.created.refresh()
        await self.functions.refresh()
        await self.gateway.find(name)
        if self.apis is not None:
            await self.apis.find(name)

    @made_once
    def requests(self) -> ClientRequests:
        """Forwards requests of other servers to the clients."""
        delegated = self._delegation is not None
        return ClientRequests(self.sessions, self.identity, is_delegated=delegated)

    @made_once
    def _profiles(self) -> Profiles:
        return Profiles(self.current.profiles, self.tool_set)

    @made_once
    def _contexts(self) -> ContextProvider:
        sources, closes = self._collections.sources, self.current.closes
        return ContextProvider(self.library, self.identity, sources, closes)

    @made_once
    def _prompts(self) -> PromptProvider:
        skills = view_skills(self.catalogue, self.identity, self._profiles)
        recording = self._recording
        return PromptProvider(self._contexts, self.registry, self.sessions, recording, skills)

    @made_once
    def browsing(self) -> Browsing:
        """Resources and prompts for clients, with change notifications."""
        from server.composition.browsing import make_browsing

        return make_browsing(
            self._prompts,
            self._contexts,
            self._profiles,
            functions=self.functions,
            gateway=self.gateway,
            created=self.created,
            requests=self.requests,
            sampler=self._sampler,
            lists_all=self.surface.lists_all,
            lists_others=self._lists_others,
            is_followed=self.current.is_followed,
        )

    def _lists_others(self) -> bool:
        """Returns whether tools of other servers and APIs may be listed."""
        return self.surface.may_list_servers(self.registry)

    async def _ready(self) -> None:
        """Waits until the tools that are listed first are known."""
        await self.functions.loaded()
        await self.gateway.ready(lambda server: self.surface.may_list(server, self.registry))
        if self.apis is not None and self._lists_others():
            await anyio.to_thread.run_sync(self.apis.settle)

    @made_once
    def server(self) -> Server[Any]:
        """The MCP server that every transport runs."""
        settings = self.settings
        may_restrict = settings.profiles or self.current.is_followed
        restricts = may_restrict or self._agents or self._delegation
        return build_server(
            self.registry,
            self.manager,
            name=NAME,
            version=version("toolcrib"),
            instructions=INSTRUCTIONS,
            surface=self.surface,
            browsing=self.browsing,
            requests=self.requests,
            ready=self._ready,
            sampler=self._sampler,
            profiles=self._profiles if restricts else None,
            results=settings.results,
            tasks=Tasks(self.jobs, self.requests),
            skills=SkillMethods(self._prompts.skills),
        )
