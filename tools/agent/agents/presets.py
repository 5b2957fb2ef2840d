"""Presets: how to run well-known agents without an interactive user.

The task always goes to standard input, so that it is never parsed as an option. Agents find
Toolcrib through a configuration without the token, which they read from their environment. The
flags are those of Claude Code 2.1.331, Codex 0.169.0, Gemini CLI 0.61.0 and opencode 1.18.33;
`benchmarks/agent_presets.py` checks them against the installed programs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from tools.agent.agents.agent import TOKEN_VARIABLE, Agent, Reply


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
