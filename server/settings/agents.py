"""What can be set of agents that work is given to: `[agents.NAME]` and `[delegation]`."""

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
        preset: claude-code, codex, gemini or opencode: its command, and what it needs.
        command: The program and its arguments. {prompt} stands for the task, which is else its
            standard input; {url} and {mcp_config} for its Toolcrib, {cost} for what it may cost.
        args: More arguments, for a preset.
        answer: Where the answer is in the JSON or JSON lines that it prints, such as result or
            item.text; empty where all that it prints is the answer.
        cost: The same of its cost in US dollars.
        session: The same of what it calls its session.
        server: Name of a server in [servers.NAME], instead of a command.
        tool: The tool of that server that takes the task.
        parameter: The parameter of that tool.
        description: What it is good at, for whoever chooses one.
        capabilities: Things it can do, in words.
        timeout: Seconds that one task may take.
        max_cost: US dollars that one task may cost, where it tells them; 0 sets no limit.
        environment: Variables of the server's environment that it is given, such as its key.
        hosts: Hosts that it may reach, as host:port or *.host:port.
        readable: Files and directories outside the root that it may read and run.
        home: Files of your home that are copied into its private one, such as ~/.codex/auth.json.
        sandbox: As system.sandbox, for this agent; None takes that.
        worktree: Whether it works in a git worktree of its own, not in the root.
        allow: Tools of Toolcrib that it may call, as in a profile; empty means all that its caller
            may.
        deny: Tools that it may not, whatever is allowed.
        enabled: Whether it is there at all.
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
    """What delegations that lead to one another may come to together, in all processes."""

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
    """Sees that the servers of agents are there.

    Raises:
        ValueError: If one is not.
    """
    for name, each in agents.items():
        if each.server and each.server not in servers:
            raise ValueError(
                f"{name!r} names the server {each.server!r}, but there is no"
                f" [servers.{each.server}]"
            )
