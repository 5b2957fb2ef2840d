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
    """Where to find an agent's answer in its output: dotted paths into JSON or JSON lines."""

    answer: str = ""  # path of the answer; empty if the whole output is the answer
    cost: str = ""  # path of the cost in US dollars; empty if the agent does not report it
    session: str = ""  # path of the agent's own session ID; empty if it does not report one


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent: a program, or a tool of another server.

    The placeholders `{prompt}`, `{url}`, `{mcp_config}` and `{cost}` in its arguments and files are
    replaced by the task, the address of its Toolcrib, an MCP configuration and the cost limit.
    """

    name: str
    description: str = ""  # what it is good at
    capabilities: tuple[str, ...] = ()  # things it can do, in plain words
    # The program and its arguments; without `{prompt}` the task goes to standard input.
    argv: tuple[str, ...] = ()
    budget: tuple[str, ...] = ()  # extra arguments if the cost of the task is limited
    # Extra arguments without a Toolcrib sandbox, so that the agent confines itself.
    free: tuple[str, ...] = ()
    confined: tuple[str, ...] = ()  # extra arguments inside a Toolcrib sandbox
    # Texts placed in its private home, by path
    files: Mapping[str, str] = field(default_factory=dict)
    reply: Reply = field(default_factory=Reply)  # where to find its answer
    server: str = ""  # the server whose tool it is; empty for a program
    tool: str = ""  # the name of that tool
    parameter: str = "prompt"  # the parameter of that tool that takes the task
    environment: tuple[str, ...] = ()  # variables of the server's environment that it receives
    hosts: tuple[str, ...] = ()  # hosts that it may reach, as `host:port`
    # Files and directories outside the root that it may read and run.
    readable: tuple[Path, ...] = ()
    home: tuple[Path, ...] = ()  # files of the user's home that are copied into its private home
    sandbox: SandboxMode = SandboxMode.PREFERRED  # what to do if it cannot be confined
    worktree: bool = False  # whether it works in its own git worktree
    # Patterns of the tools it may call; empty means all that its caller may.
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()  # patterns of tools it may not call
    seconds: float = 600.0  # how long one task may take
    cost: float = 0.0  # US dollars that one task may cost; 0 sets no limit

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
