"""Agents: their configuration, and how the settings say to start and prompt each one."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.sandbox.processes.models import SandboxMode

TOKEN_VARIABLE = "_TOOLCRIB_DELEGATION"  # noqa: S105  # the name of a variable
"""Environment variable with an agent's token. Set by Toolcrib, so it is not a setting."""

URL_VARIABLE = "_TOOLCRIB_URL"  # environment variable with the address of the agent's Toolcrib
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


def _json(**value: Any) -> str:  # noqa: ANN401  # any JSON value
    return json.dumps(value)


CLAUDE_CODE = Agent(
    name="claude-code",
    description="Claude Code: reads, writes and runs code.",
    capabilities=("write and change code", "review code", "research a repository"),
    argv=(
        *("claude", "-p", "--output-format", "json", "--no-session-persistence"),
        *("--strict-mcp-config", "--mcp-config", "{mcp_config}"),
        *("--allowedTools", "mcp__toolcrib", "--permission-mode", "acceptEdits"),
    ),
    budget=("--max-budget-usd", "{cost}"),
    reply=Reply(answer="result", cost="total_cost_usd", session="session_id"),
    environment=("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
    hosts=("api.anthropic.com:443",),
)

CODEX = Agent(
    name="codex",
    description="Codex: reads, writes and runs code.",
    capabilities=("write and change code", "review code", "research a repository"),
    argv=(
        *("codex", "exec", "--json", "--color", "never", "--ephemeral", "--skip-git-repo-check"),
        *("-c", 'mcp_servers.toolcrib.url="{url}"'),
        *("-c", f'mcp_servers.toolcrib.bearer_token_env_var="{TOKEN_VARIABLE}"'),
    ),
    free=("--sandbox", "workspace-write"),
    confined=("--sandbox", "danger-full-access"),
    reply=Reply(answer="item.text", session="thread_id"),
    environment=("CODEX_API_KEY", "OPENAI_API_KEY"),
    hosts=("api.openai.com:443", "chatgpt.com:443", "auth.openai.com:443"),
)

GEMINI = Agent(
    name="gemini",
    description="Gemini CLI: reads, writes and runs code.",
    capabilities=("write and change code", "review code", "read very long texts"),
    argv=(
        *("gemini", "--output-format", "json", "--approval-mode", "auto_edit", "--skip-trust"),
        *("--allowed-mcp-server-names", "toolcrib"),
    ),
    files={
        ".gemini/settings.json": _json(
            general={"disableAutoUpdate": True, "disableUpdateNag": True},
            mcpServers={
                "toolcrib": {
                    "httpUrl": "{url}",
                    "headers": {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"},
                    "trust": True,
                }
            },
        )
    },
    reply=Reply(answer="response", session="session_id"),
    environment=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    hosts=("generativelanguage.googleapis.com:443",),
)

OPENCODE = Agent(
    name="opencode",
    description="opencode: reads, writes and runs code, with a model of any provider.",
    capabilities=("write and change code", "review code", "research a repository"),
    argv=("opencode", "run", "--format", "json"),
    files={
        ".config/opencode/opencode.json": _json(
            autoupdate=False,
            share="disabled",
            mcp={
                "toolcrib": {
                    "type": "remote",
                    "url": "{url}",
                    "headers": {"Authorization": f"Bearer {{env:{TOKEN_VARIABLE}}}"},
                    "oauth": False,
                    "enabled": True,
                }
            },
        )
    },
    reply=Reply(answer="part.text", cost="part.cost", session="sessionID"),
    environment=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"),
    hosts=(
        *("models.opencode.ai:443", "models.dev:443", "api.anthropic.com:443"),
        *("api.openai.com:443", "openrouter.ai:443"),
    ),
)

PRESETS: Mapping[str, Agent] = {each.name: each for each in (CLAUDE_CODE, CODEX, GEMINI, OPENCODE)}


def installed(search_path: str) -> Iterator[str]:
    """Yields the presets whose programs are installed."""
    for name, preset in PRESETS.items():
        if shutil.which(preset.argv[0], path=search_path):
            yield name
