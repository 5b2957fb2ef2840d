"""Builds the plugins of the clients that have them; a plugin is an alternative to an entry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from server.clients.client import Launch
from server.clients.pieces import Piece

NAME = "toolcrib"
SUMMARY = "Search, memory, files, programs and your other MCP servers: local-first, in one server."
AUTHOR = {"name": "The Toolcrib authors"}
_IN_MARKET = f"{NAME}@{NAME}"


@dataclass(frozen=True, slots=True)
class Plugin:
    """How a client adds and removes a plugin: `{}` is the folder with what `plugin_files` names."""

    kind: str
    program: str
    add: Sequence[Sequence[str]]
    remove: Sequence[Sequence[str]]

    def commands(self, folder: Path, *, adds: bool) -> list[list[str]]:
        """Returns the commands that add or remove it."""
        lines = self.add if adds else self.remove
        return [[self.program, *(word.format(folder) for word in line)] for line in lines]


_MARKET = (("plugin", "marketplace", "add", "{}"), ("plugin", "marketplace", "remove", NAME))

PLUGINS: Mapping[str, Plugin] = {
    "claude-code": Plugin(
        "claude",
        "claude",
        (_MARKET[0], ("plugin", "install", _IN_MARKET)),
        (("plugin", "uninstall", _IN_MARKET), _MARKET[1]),
    ),
    "codex": Plugin(
        "codex",
        "codex",
        (_MARKET[0], ("plugin", "add", _IN_MARKET)),
        (("plugin", "remove", _IN_MARKET), _MARKET[1]),
    ),
    "gemini": Plugin(
        "gemini",
        "gemini",
        (("extensions", "install", "--consent", "{}/plugins/gemini"),),
        (("extensions", "uninstall", NAME),),
    ),
}
"""The plugins by the names of their clients."""


def plugin_files(
    client: str, about: Mapping[str, Any], launch: Launch, hooks: Iterable[Piece]
) -> dict[str, str]:
    """Returns the text of each file of a client's plugin, by its path in the folder."""
    base = f"plugins/{PLUGINS[client].kind}"
    files = {f"{base}/skills/{NAME}/SKILL.md": skill()}
    return files | {path: as_json(each) for path, each in _manifests(client, about, launch, hooks)}


def skill() -> str:
    """Returns the skill that explains our tools to a model."""
    return resources.files("server.clients").joinpath("SKILL.md").read_text(encoding="utf-8")


def as_json(value: Mapping[str, Any]) -> str:
    """Returns the text of a manifest."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _manifests(
    client: str, about: Mapping[str, Any], launch: Launch, hooks: Iterable[Piece]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    base = f"plugins/{PLUGINS[client].kind}"
    servers: dict[str, Any] = {"mcpServers": {NAME: launch.entry}}
    listed = {"name": NAME, "source": f"./{base}", "description": SUMMARY}
    match client:
        case "claude-code":
            yield f"{base}/.claude-plugin/plugin.json", about
            yield f"{base}/.mcp.json", servers
            market = {"name": NAME, "description": SUMMARY, "owner": AUTHOR, "plugins": [listed]}
            yield ".claude-plugin/marketplace.json", market
        case "codex":
            own = {"mcpServers": "./.mcp.json", "skills": "./skills/"}
            yield f"{base}/.codex-plugin/plugin.json", {**about, **own}
            # Codex refuses calls that its own policy would have to ask about: ours asks instead.
            servers["mcpServers"][NAME]["default_tools_approval_mode"] = "approve"
            yield f"{base}/.mcp.json", servers
            entry = {
                "name": NAME,
                "source": {"source": "local", "path": f"./{base}"},
                "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                "category": "Productivity",
            }
            market = {"name": NAME, "interface": {"displayName": "Toolcrib"}, "plugins": [entry]}
            yield ".agents/plugins/marketplace.json", market
        case _:
            known = {key: about[key] for key in ("name", "version", "description")}
            yield f"{base}/gemini-extension.json", {**known, **servers}
    events: dict[str, list[Any]] = {}
    for piece in hooks:
        events.setdefault(piece.keys[1], []).append(piece.value)
    if events:
        yield f"{base}/hooks/hooks.json", {"hooks": events}
