"""The MCP clients that we know: their files, the form of a server in them, and their habits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from server.clients.client import Client, Launch, Root
from server.clients.pieces import Format

DESCRIPTION = "Searches your documents, remembers, works on files and runs programs."
"""What clients show of this server."""

_MILLISECOND = 0.001


def _typed(launch: Launch) -> dict[str, Any]:
    return {"type": "stdio", **launch.entry}


def _codex(launch: Launch) -> dict[str, Any]:
    return {**launch.entry, "default_tools_approval_mode": "approve"}


def _copilot(launch: Launch) -> dict[str, Any]:
    return {"type": "stdio", **launch.entry, "tools": ["*"]}


def _zed(launch: Launch) -> dict[str, Any]:
    return {"source": "custom", **launch.entry}


def _opencode(launch: Launch) -> dict[str, Any]:
    return {"type": "local", "command": launch.words, "enabled": True}


def _goose(launch: Launch) -> dict[str, Any]:
    said = {"name": "toolcrib", "description": DESCRIPTION, "type": "stdio", "enabled": True}
    return {**said, "cmd": launch.command, "args": list(launch.args), "envs": {}, "timeout": 300}


def _cline(launch: Launch) -> dict[str, Any]:
    return {**launch.entry, "disabled": False}


def _kimi(launch: Launch) -> dict[str, Any]:
    return {"transport": "stdio", **launch.entry}


_EDITIONS = ("Code", "Code - Insiders", "VSCodium")
_CLINE = "{support}/Code/User/globalStorage/saoudrizwan.claude-dev"
_CODEX_REASON = (
    "Codex refuses calls that its own policy would have to ask about. With this line they",
    "reach Toolcrib, whose policy then asks: toolcrib policy",
)
_TRUST = "{title} uses servers only in folders that you trust; until then it shows them disabled."

CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-desktop",
            "Claude Desktop",
            user=("{support}/Claude/claude_desktop_config.json",),
            markers=("{support}/Claude",),
            reports=("claude-ai",),
            root=Root.DOCUMENTS,
            hint="Restart Claude Desktop.",
        ),
        Client(
            "claude-code",
            "Claude Code",
            user=("{claude}/.claude.json",),
            project=(".mcp.json",),
            shape=_typed,
            markers=("{claude}/.claude.json", "~/.claude"),
            reports=("claude-code",),
            project_hint="{title} asks once whether to use the servers of a project's .mcp.json.",
            aliases=("claude",),
            timeout_unit=_MILLISECOND,
        ),
        Client(
            "vscode",
            "VS Code",
            user=tuple(
                f"{{support}}/{edition}/User/{file}"
                for edition in _EDITIONS
                for file in ("mcp.json", "profiles/*/mcp.json", "settings.json")
            ),
            project=(".vscode/mcp.json", ".vscode/settings.json"),
            written=(
                *(f"{{support}}/{edition}/User/mcp.json" for edition in _EDITIONS),
                ".vscode/mcp.json",
            ),
            tables=(("servers",), ("mcp", "servers")),
            shape=_typed,
            markers=tuple(f"{{support}}/{edition}" for edition in _EDITIONS),
            reports=("visual studio code*", "vscode*", "vscodium*"),
            aliases=("code", "vs-code"),
            root=Root.WORKSPACE,
        ),
        Client(
            "cursor",
            "Cursor",
            user=("~/.cursor/mcp.json",),
            project=(".cursor/mcp.json",),
            shape=_typed,
            markers=("~/.cursor",),
            reports=("cursor*",),
            root=Root.WORKSPACE,
        ),
        Client(
            "codex",
            "Codex",
            user=("{codex}/config.toml",),
            project=(".codex/config.toml",),
            tables=(("mcp_servers",),),
            kind=Format.TOML,
            shape=_codex,
            markers=("{codex}",),
            reports=("codex*",),
            comments=_CODEX_REASON,
            hook_hint="Codex runs the hooks that fill the memory once you trust them: type /hooks.",
        ),
        Client(
            "windsurf",
            "Windsurf",
            user=("~/.codeium/windsurf/mcp_config.json", "~/.codeium/mcp_config.json"),
            markers=("~/.codeium/windsurf", "~/.codeium/mcp_config.json"),
            reports=("windsurf*",),
        ),
        Client(
            "gemini",
            "Gemini CLI",
            user=("~/.gemini/settings.json",),
            project=(".gemini/settings.json",),
            markers=("~/.gemini/settings.json", "~/.gemini/tmp", "~/.gemini/installation_id"),
            reports=("gemini*",),
            aliases=("gemini-cli",),
            hint=_TRUST,
            timeout_unit=_MILLISECOND,
            bare_variables=True,
        ),
        Client(
            "zed",
            "Zed",
            user=("{zed}/settings.json",),
            project=(".zed/settings.json",),
            tables=(("context_servers",),),
            shape=_zed,
            markers=("{zed}",),
            reports=("zed",),
            timeout_unit=1,
        ),
        Client(
            "copilot",
            "Copilot CLI",
            user=("~/.copilot/mcp-config.json",),
            project=(".mcp.json", ".github/mcp.json"),
            shape=_copilot,
            markers=("~/.copilot",),
            reports=("github-copilot*", "copilot*"),
            aliases=("copilot-cli", "github-copilot-cli"),
            project_hint=_TRUST,
        ),
        Client(
            "opencode",
            "opencode",
            user=("{opencode}/opencode.json", "{opencode}/opencode.jsonc"),
            project=(
                "opencode.json",
                "opencode.jsonc",
                ".opencode/opencode.json",
                ".opencode/opencode.jsonc",
            ),
            tables=(("mcp",), ("mcp", "servers")),
            shape=_opencode,
            markers=("{opencode}", "~/.local/share/opencode"),
            reports=("opencode",),
            timeout_unit=_MILLISECOND,
        ),
        Client(
            "goose",
            "goose",
            user=("{config}/goose/config.yaml",),
            project=(),
            tables=(("extensions",),),
            kind=Format.YAML,
            shape=_goose,
            markers=("{config}/goose",),
            reports=("goose*",),
            timeout_unit=1,
        ),
        Client(
            "cline",
            "Cline in VS Code",
            user=(f"{_CLINE}/settings/cline_mcp_settings.json",),
            shape=_cline,
            markers=(_CLINE,),
            reports=("cline",),
            timeout_unit=1,
        ),
        Client(
            "cline-cli",
            "Cline CLI",
            user=("{cline}/data/settings/cline_mcp_settings.json",),
            shape=_cline,
            markers=("{cline}/data",),
            timeout_unit=1,
        ),
        Client(
            "antigravity",
            "Antigravity",
            user=("~/.gemini/config/mcp_config.json",),
            markers=("~/.gemini/config",),
            reports=("antigravity*",),
        ),
        Client(
            "kiro",
            "Kiro",
            user=("~/.kiro/settings/mcp.json",),
            project=(".kiro/settings/mcp.json",),
            markers=("~/.kiro",),
            reports=("kiro*",),
            aliases=("kiro-cli",),
        ),
        Client(
            "kilo",
            "Kilo Code",
            user=("{config}/kilo/kilo.json", "{config}/kilo/kilo.jsonc"),
            project=(
                "kilo.json",
                "kilo.jsonc",
                *(f"{each}/kilo.json{end}" for each in (".kilo", ".kilocode") for end in ("", "c")),
            ),
            tables=(("mcp",),),
            shape=_opencode,
            markers=("{config}/kilo",),
            reports=("kilo*",),
            aliases=("kilo-code",),
            timeout_unit=_MILLISECOND,
        ),
        Client(
            "grok",
            "Grok Build",
            user=("{grok}/config.toml",),
            project=(".grok/config.toml",),
            tables=(("mcp_servers",),),
            kind=Format.TOML,
            markers=("{grok}",),
            reports=("grok*",),
            aliases=("grok-build",),
        ),
        Client(
            "kimi",
            "Kimi Code",
            user=("{kimi}/mcp.json",),
            project=(".kimi-code/mcp.json",),
            shape=_kimi,
            markers=("{kimi}",),
            reports=("kimi*",),
            aliases=("kimi-code",),
            project_hint=_TRUST,
        ),
        Client(
            "mastracode",
            "Mastra Code",
            user=("~/.mastracode/mcp.json",),
            project=(".mastracode/mcp.json",),
            markers=("~/.mastracode",),
            reports=("mastra*",),
        ),
        Client(
            "mcporter",
            "MCPorter",
            user=("~/.mcporter/mcporter.json", "~/.mcporter/mcporter.jsonc"),
            project=("config/mcporter.json",),
            markers=("~/.mcporter",),
            reports=("mcporter*",),
        ),
    )
}
"""The clients by the names that commands take."""

ANY = Client(
    "",
    "the client",
    tables=tuple(dict.fromkeys(keys for client in CLIENTS.values() for keys in client.tables)),
)
"""A file that matches no client."""


def client_named(name: str) -> Client | None:
    """Returns a client by its name or another one that it goes by."""
    wanted = name.casefold()
    for client in CLIENTS.values():
        if wanted in {client.name, client.title.casefold(), *client.aliases}:
            return client
    return None


def found_clients(environ: Mapping[str, str]) -> Iterator[Client]:
    """Yields the clients that were used on this machine."""
    return (client for client in CLIENTS.values() if client.is_found(environ))
