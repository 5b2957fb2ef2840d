"""Builds delegation: the agents we delegate to, and our own delegated identity."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.composition.safety import make_processes, make_sandbox, make_secrets
from server.settings import Settings
from server.settings_error import SettingsError
from storage.library import Library
from tools.agent.agents.agent import TOKEN_VARIABLE, Agent, Reply
from tools.core.toolset import ToolSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.lowlevel import Server

    from server.settings.agents import AgentSettings
    from storage.agent.delegations import Delegation
    from tools.agent.agents.agents import Agents, Place
    from tools.agent.agents.worktrees import Worktree, Worktrees
    from tools.policy.path_rules import DeniedPlace
    from tools.sandbox.files.sandbox import Sandbox
    from tools.sandbox.processes.processes import Processes
    from tools.sandbox.secrets.redaction import Redaction
    from tools.sandbox.secrets.secrets import Secrets

_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
"""Words in the names of variables whose values are redacted."""

_SHORTEST = 8
"""Minimum length of a redacted value; shorter ones could occur anywhere."""


def agents_of(settings: Settings) -> dict[str, Agent]:
    """Returns the enabled agents in the settings by name."""
    return {
        name: _agent(name, each, settings) for name, each in settings.agents.items() if each.enabled
    }


def make_agents(  # noqa: PLR0913, PLR0917  # the composition root hands over every part by name
    settings: Settings,
    agents: Mapping[str, Agent],
    environ: Mapping[str, str],
    library: Library,
    server: Server[Any],
    redaction: Redaction,
    sandbox: Sandbox,
    denied: Callable[[], tuple[DeniedPlace, ...]],
) -> Agents:
    """Builds delegation to the agents.

    Args:
        settings: The settings.
        agents: The agents in the settings.
        environ: The environment of this process.
        library: Stores the delegations.
        server: The MCP server that each agent gets.
        redaction: Redacts their keys.
        sandbox: The files of the root.
        denied: Returns the paths currently denied to programs.
    """
    from storage.agent.delegations import Ceilings
    from tools.agent.agents.agent import installed
    from tools.agent.agents.agents import Agents

    most = settings.delegation
    search_path = environ.get("PATH", os.defpath)
    for agent in agents.values():
        for name in agent.environment:
            value = environ.get(name, "")
            if len(value) >= _SHORTEST and any(word in name.upper() for word in _SECRET):
                redaction.learn(name, value)
    return Agents(
        agents=agents,
        library=library,
        ceilings=Ceilings(depth=most.depth, count=most.count, seconds=most.seconds, cost=most.cost),
        serve=partial(_serve, server),
        processes=partial(
            _processes,
            settings,
            environ,
            partial(make_secrets, settings, environ, redaction),
            sandbox,
            denied,
        ),
        worktrees=partial(_worktrees, settings, search_path, sandbox),
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
    from server.transport.endpoint import serve_one
    from server.transport.middleware import Caller

    caller = Caller(
        f"delegation.{delegation.id}",
        delegation.identity,
        session_id=delegation.session_id,
        tool_set=tools,
    )
    return serve_one(server, caller, token)


def _processes(  # noqa: PLR0913, PLR0917  # what all programs have, and one run's place
    settings: Settings,
    environ: Mapping[str, str],
    secrets: Callable[[], Secrets],
    sandbox: Sandbox,
    denied: Callable[[], tuple[DeniedPlace, ...]],
    place: Place,
) -> Processes:
    """Builds the process launcher of one run, which reaches only its own hosts and Toolcrib."""
    agent, system = place.agent, settings.system
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
    files = sandbox if place.root == settings.root else None
    ruled = place.root / place.prefix
    return make_processes(own, environ, secrets, files, denied, ruled=ruled)


def _worktrees(settings: Settings, search_path: str, sandbox: Sandbox) -> Worktrees:
    from tools.agent.agents.worktrees import Worktrees

    return Worktrees(settings.root, worktrees_of(settings), search_path, sandbox.held)


def worktrees_of(settings: Settings) -> Path:
    """Returns the directory of all worktrees, next to the data directory."""
    return settings.data_dir.with_name(f"{settings.data_dir.name}-worktrees")


async def changes_in(
    settings: Settings, environ: Mapping[str, str], name: str
) -> tuple[Worktrees, Worktree]:
    """Returns the uncommitted content of a worktree, read by a confined git."""
    sandbox = make_sandbox(settings, settings.root)
    made = _worktrees(settings, environ.get("PATH", os.defpath), sandbox)

    def processes(worktree: Worktree) -> Processes:
        system = settings.system.model_copy(
            update={"network": (), "readable": (*settings.system.readable, worktree.common)}
        )
        return make_processes(
            settings.model_copy(update={"root": worktree.path, "system": system}), environ
        )

    return made, await made.changes(name, processes)


def close_lost_delegations(settings: Settings, library: Library) -> None:
    """Closes the delegations of dead processes; blocks."""
    from tools.agent.agents.reports import close_lost

    close_lost(library, worktrees_of(settings))
