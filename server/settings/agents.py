"""Settings of agents that we delegate to: `[agents.NAME]` and `[delegation]`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from server.settings.gateway import Patterns
from server.settings.group import Names, SettingsGroup, expand
from server.settings.safety import HostsPort
from tools.sandbox.processes.models import SandboxMode


def _check_home(path: Path) -> Path:
    found = expand(path)
    if not found.is_relative_to(Path.home()):
        raise ValueError(f"names {str(path)!r}, which is not in the home directory")
    return found


_Words = Annotated[tuple[str, ...], Field(max_length=100)]


class AgentSettings(SettingsGroup):
    """An agent: a preset, a command, or a tool of another server.

    Attributes:
        preset: claude-code, codex, gemini or opencode: predefined command and requirements.
        command: The program and its arguments. {prompt} is replaced by the task, which is
         otherwise its standard input; {url} and {mcp_config} by its Toolcrib, {cost} by its budget.
        args: More arguments, for a preset.
        answer: The path of the answer in its JSON or JSON lines output, such as result or
         item.text; empty if the whole output is the answer.
        cost: The path of its cost in US dollars, likewise.
        session: The path of its session id, likewise.
        server: Name of a server in [servers.NAME], instead of a command.
        tool: The tool of that server that takes the task.
        parameter: The parameter of that tool.
        description: What it is good at, for choosing an agent.
        capabilities: Its capabilities, in words.
        timeout: Seconds for one task.
        max_cost: US dollars for one task, if the agent reports its cost; 0 sets no limit.
        environment: Environment variables of the server to pass on, such as its key.
        hosts: Hosts that it may reach, as host:port or *.host:port.
        readable: Files and directories outside the root that it may read and run.
        home: Files of your home to copy into its private one, such as ~/.codex/auth.json.
        sandbox: Overrides system.sandbox for this agent; None keeps it.
        worktree: Whether it works in its own git worktree instead of the root.
        allow: Tools of Toolcrib that it may call, as in a profile; empty allows all tools of its
         caller.
        deny: Tools that it may not call, even if allowed.
        enabled: Whether it is enabled.
    """

    preset: Literal["", "claude-code", "codex", "gemini", "opencode"] = ""
    command: _Words = ()
    args: _Words = ()
    answer: str = ""
    cost: str = ""
    session: str = ""
    server: str = ""
    tool: str = ""
    parameter: str = "prompt"
    description: str = ""
    capabilities: tuple[str, ...] = ()
    timeout: float = Field(600.0, ge=1, le=3_600)
    max_cost: float = Field(0.0, ge=0, le=10_000)
    environment: Names = ()
    hosts: tuple[HostsPort, ...] = ()
    readable: tuple[Annotated[Path, AfterValidator(expand)], ...] = ()
    home: tuple[Annotated[Path, AfterValidator(_check_home)], ...] = ()
    sandbox: SandboxMode | None = None
    worktree: bool = False
    allow: Patterns = ()
    deny: Patterns = ()
    enabled: bool = True

    @model_validator(mode="after")
    def _is_one_kind(self) -> AgentSettings:
        if (bool(self.preset) + bool(self.command) + bool(self.server)) != 1:
            raise ValueError("needs one of preset, command and server")
        if bool(self.server) != bool(self.tool):
            raise ValueError("needs tool with server, and server with tool")
        if self.args and not self.preset:
            raise ValueError("has args without a preset; write them into command")
        return self


class DelegationSettings(SettingsGroup):
    """Limits on a chain of delegations, across all processes."""

    depth: int = Field(
        2,
        ge=1,
        le=8,
        description="Agents that may stand one behind the other: with 1 no agent can delegate.",
    )
    count: int = Field(
        20, ge=1, le=1_000, description="Delegations that one may lead to, itself included."
    )
    seconds: float = Field(
        3_600.0,
        ge=1,
        le=86_400,
        description="Seconds that they may take together, side by side or not.",
    )
    cost: float = Field(
        10.0,
        ge=0,
        le=100_000,
        description="US dollars that they may cost together, where the agents tell their cost; 0 "
        "sets no limit.",
    )


def check_agents(agents: Mapping[str, AgentSettings], servers: Mapping[str, object]) -> None:
    """Checks that the servers of agents exist.

    Raises:
        ValueError: If one does not.
    """
    for name, each in agents.items():
        if each.server and each.server not in servers:
            raise ValueError(
                f"{name!r} names the server {each.server!r}, but there is no"
                f" [servers.{each.server}]"
            )
