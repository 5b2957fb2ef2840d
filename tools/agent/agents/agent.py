"""Agents: their configuration, and how the settings say to start and prompt each one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.sandbox.processes.models import SandboxMode

TOKEN_VARIABLE = "_TOOLCRIB_DELEGATION"  # noqa: S105  # the name of a variable
"""Environment variable with an agent's token. Set by Toolcrib, so it is not a setting."""

URL_VARIABLE = "_TOOLCRIB_URL"
"""Environment variable with the address of the agent's Toolcrib."""

_PLACEHOLDER = re.compile(r"\{(prompt|url|mcp_config|cost)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Where to find an agent's answer in its output: dotted paths into JSON or JSON lines.

    Attributes:
        answer: Path of the answer; empty if the whole output is the answer.
        cost: Path of the cost in US dollars; empty if the agent does not report it.
        session: Path of the agent's own session ID; empty if it does not report one.
    """

    answer: str = ""
    cost: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent: a program, or a tool of another server.

    The placeholders `{prompt}`, `{url}`, `{mcp_config}` and `{cost}` in its arguments and files are
    replaced by the task, the address of its Toolcrib, an MCP configuration and the cost limit.

    Attributes:
        name: Its name in the settings.
        description: What it is good at.
        capabilities: Things it can do, in plain words.
        argv: The program and its arguments; without `{prompt}` the task goes to standard input.
        budget: Extra arguments if the cost of the task is limited.
        free: Extra arguments without a Toolcrib sandbox, so that the agent confines itself.
        confined: Extra arguments inside a Toolcrib sandbox.
        files: Texts placed in its private home, by path.
        reply: Where to find its answer.
        server: The server whose tool it is; empty for a program.
        tool: The name of that tool.
        parameter: The parameter of that tool that takes the task.
        environment: Variables of the server's environment that it receives.
        hosts: Hosts that it may reach, as `host:port`.
        readable: Files and directories outside the root that it may read and run.
        home: Files of the user's home that are copied into its private home.
        sandbox: What to do if it cannot be confined.
        worktree: Whether it works in its own git worktree.
        allow: Patterns of the tools it may call; empty means all that its caller may.
        deny: Patterns of tools it may not call.
        seconds: How long one task may take.
        cost: US dollars that one task may cost; 0 sets no limit.
    """

    name: str
    description: str = ""
    capabilities: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    budget: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    confined: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    reply: Reply = field(default_factory=Reply)
    server: str = ""
    tool: str = ""
    parameter: str = "prompt"
    environment: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    readable: tuple[Path, ...] = ()
    home: tuple[Path, ...] = ()
    sandbox: SandboxMode = SandboxMode.PREFERRED
    worktree: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    seconds: float = 600.0
    cost: float = 0.0

    @property
    def how(self) -> str:
        """A short description of what it runs."""
        return f"tool {self.tool} of server {self.server}" if self.server else self.argv[0]

    def terms(self) -> str:
        """Describes its limits and reach, for the user who approves a task."""
        limits = f"at most {self.seconds:g} s" + (f" and ${self.cost:g}" if self.cost else "")
        if self.server:
            return f"Agent {self.name} ({self.how}): {limits}."
        reach = f"reaches {', '.join(self.hosts)}" if self.hosts else "reaches no host"
        place = "works in a git worktree" if self.worktree else "may write inside the root"
        held = "is not confined" if self.sandbox is SandboxMode.OFF else "is confined"
        return f"Agent {self.name} ({self.how}): {limits}; {held}, {reach}, {place}."


def fill(template: str, values: Mapping[str, str]) -> str:
    """Fills in the placeholders of a template once; inserted values are not expanded again."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)
