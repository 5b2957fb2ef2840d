"""Builds delegation: the agents we delegate to, and our own delegated identity."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.composition.machine import MachineParts
from server.settings import Settings
from server.settings_file import SettingsError
from storage.library import Library
from tools.agent.agents.agent import TOKEN_VARIABLE, Agent, Reply
from tools.core.toolset import ToolSet

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from server.settings.gateway import AgentSettings
    from storage.agent.delegations import Delegation
    from tools.agent.agents.agents import Agents, Place
    from tools.agent.agents.worktrees import Worktree, Worktrees
    from tools.sandbox.processes.processes import Processes


def agents_of(settings: Settings) -> dict[str, Agent]:
    """Returns the enabled agents in the settings by name."""
    return {
        name: _agent(name, each, settings) for name, each in settings.agents.items() if each.enabled
    }


def make_agents(
    parts: MachineParts, agents: Mapping[str, Agent], library: Library, server: Server[Any]
) -> Agents:
    """Builds delegation to the agents, each of which gets the server."""
    from storage.agent.delegations import Ceilings
    from tools.agent.agents.agent import installed
    from tools.agent.agents.agents import Agents

    settings, most = parts.settings, parts.settings.delegation
    search_path = parts.variables.get("PATH", os.defpath)
    for name in {name for agent in agents.values() for name in agent.environment}:
        parts.references.learn_variable(name, parts.variables.get(name, ""))
    return Agents(
        agents=agents,
        library=library,
        ceilings=Ceilings(depth=most.depth, count=most.count, seconds=most.seconds, cost=most.cost),
        serve=partial(_serve, server),
        processes=partial(_processes, parts),
        worktrees=partial(_worktrees, parts),
        root=settings.root,
        place=worktrees_of(settings),
        installed=lambda: list(installed(search_path)),
    )


def own_delegation(library: Library, environ: Mapping[str, str]) -> Delegation | None:
    """Returns the delegation of this process, if a delegated agent started it; None otherwise."""
    token = environ.get(TOKEN_VARIABLE)
    if token is None:
        return None
    found = library.delegations.of_token(token)
    if found is None:
        raise SettingsError(
            f"{TOKEN_VARIABLE} is not the token of a running agent, so this Toolcrib, which an"
            " agent started, serves nothing."
        )
    return found


def tools_of(delegation: Delegation | None) -> ToolSet | None:
    """Returns the tools that an agent may call; None without a delegation."""
    within: ToolSet | None = None
    for name, allow, deny in () if delegation is None else delegation.tools:
        within = ToolSet(name, allow, deny, within)
    return within


def _agent(name: str, given: AgentSettings, settings: Settings) -> Agent:
    """Builds an agent from the settings, with defaults from its preset."""
    from tools.agent.agents.agent import PRESETS

    base = PRESETS.get(given.preset) or Agent(
        name=name,
        argv=given.command,
        reply=Reply(answer=given.answer, cost=given.cost, session=given.session),
    )
    return replace(
        base,
        name=name,
        description=given.description or base.description,
        capabilities=given.capabilities or base.capabilities,
        argv=(*base.argv, *given.args),
        server=given.server,
        tool=given.tool,
        parameter=given.parameter,
        environment=given.environment or base.environment,
        hosts=given.hosts or base.hosts,
        readable=given.readable,
        home=given.home,
        sandbox=given.sandbox or settings.system.sandbox,
        worktree=given.worktree,
        allow=given.allow,
        deny=given.deny,
        seconds=given.timeout,
        cost=given.max_cost,
    )


def _serve(
    server: Server[Any], delegation: Delegation, token: str, tools: ToolSet
) -> AbstractAsyncContextManager[str]:
    from server.transport.http import serve_one
    from server.transport.middleware import Caller

    caller = Caller(
        f"delegation.{delegation.id}",
        delegation.identity,
        session_id=delegation.session_id,
        tool_set=tools,
    )
    return serve_one(server, caller, token)


def _processes(parts: MachineParts, place: Place) -> Processes:
    """Builds the process launcher of one run, which reaches only its own hosts and Toolcrib."""
    settings, agent, system = parts.settings, place.agent, parts.settings.system
    own = settings.model_copy(
        update={
            "root": place.root,
            "system": system.model_copy(
                update={
                    "sandbox": agent.sandbox,
                    "network": (*agent.hosts, place.address),
                    "environment": (*system.environment, *agent.environment),
                    "readable": (*system.readable, *agent.readable, *place.readable),
                }
            ),
            "requests": settings.requests.model_copy(
                update={"private": (*settings.requests.private, place.address)}
            ),
        }
    )
    files = parts.sandbox if place.root == settings.root else None
    return replace(parts, settings=own, sandbox=files).processes(ruled=place.root / place.prefix)


def _worktrees(parts: MachineParts) -> Worktrees:
    from tools.agent.agents.worktrees import Worktrees

    settings = parts.settings
    search_path = parts.variables.get("PATH", os.defpath)
    return Worktrees(settings.root, worktrees_of(settings), search_path, parts.files.held)


def worktrees_of(settings: Settings) -> Path:
    """Returns the directory of all worktrees, next to the data directory."""
    return settings.data_dir.with_name(f"{settings.data_dir.name}-worktrees")


async def changes_in(parts: MachineParts, name: str) -> tuple[Worktrees, Worktree]:
    """Returns the uncommitted content of a worktree, read by a confined git."""

    def processes(worktree: Worktree) -> Processes:
        settings = parts.settings
        system = settings.system.model_copy(
            update={"network": (), "readable": (*settings.system.readable, worktree.common)}
        )
        own = settings.model_copy(update={"root": worktree.path, "system": system})
        return replace(parts, settings=own).processes()

    worktrees = _worktrees(parts)
    return worktrees, await worktrees.changes(name, processes)


def close_lost_delegations(settings: Settings, library: Library) -> None:
    """Closes the delegations of dead processes; blocks."""
    from tools.agent.agents.reports import close_lost

    close_lost(library, worktrees_of(settings))
