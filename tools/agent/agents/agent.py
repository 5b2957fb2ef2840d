"""Agents: what is known of each that the settings name, and how it is told what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.sandbox.processes.models import SandboxMode

TOKEN_VARIABLE = "_TOOLCRIB_DELEGATION"  # noqa: S105  # the name of a variable
"""Holds an agent's token; no setting, as nobody sets it."""

URL_VARIABLE = "_TOOLCRIB_URL"
"""Holds the address of the agent's Toolcrib."""

_PLACEHOLDER = re.compile(r"\{(prompt|url|mcp_config|cost)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Where an agent's answer is in what it prints: names joined by dots, in JSON or JSON lines.

    Attributes:
        answer: The answer; empty where all that it prints is the answer.
        cost: US dollars; empty where it does not tell.
        session: What it calls its own session; empty where it does not tell.
    """

    answer: str = ""
    cost: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent: a program, or a tool of another server.

    In its arguments and files, `{prompt}`, `{url}`, `{mcp_config}` and `{cost}` stand for the task,
    the address of its Toolcrib, a configuration that names it, and what the task may cost.

    Attributes:
        name: What the user calls it.
        description: What it is good at.
        capabilities: Things it can do, in words.
        argv: The program and its arguments; without `{prompt}` the task is its standard input.
        budget: More arguments where the cost of the task is limited.
        free: More arguments where nothing confines it: it has to do so itself.
        confined: More arguments where Toolcrib confines it.
        files: Texts that are in its private home, by their paths.
        reply: Where its answer is.
        server: The server whose tool it is; empty for a program.
        tool: The name of that tool there.
        parameter: The parameter of that tool that takes the task.
        environment: Variables of the server's environment that it is given.
        hosts: Hosts that it may reach, as `host:port`.
        readable: Files and directories outside the root that it may read and run.
        home: Files of the user's home that are copied into its private one.
        sandbox: What to do where it cannot be confined.
        worktree: Whether it works in a git worktree of its own.
        allow: Patterns of the tools that it may call; empty means all that its caller may.
        deny: Patterns of tools that it may not.
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
        """What it is, in a few words."""
        return f"tool {self.tool} of server {self.server}" if self.server else self.argv[0]

    def terms(self) -> str:
        """What a person should know who is asked whether it may have a task."""
        limits = f"at most {self.seconds:g} s" + (f" and ${self.cost:g}" if self.cost else "")
        if self.server:
            return f"Agent {self.name} ({self.how}): {limits}."
        reach = f"reaches {', '.join(self.hosts)}" if self.hosts else "reaches no host"
        place = "works in a git worktree" if self.worktree else "may write beneath the root"
        held = "is not confined" if self.sandbox is SandboxMode.OFF else "is confined"
        return f"Agent {self.name} ({self.how}): {limits}; {held}, {reach}, {place}."


def filled(template: str, values: Mapping[str, str]) -> str:
    """A text with its placeholders filled in; what is filled in is not looked at again."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)
