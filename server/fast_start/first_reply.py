"""Builds the first reply to a client without the SDK, whose import dominates the startup time.

The reply equals that of the SDK's server; in any doubt there is none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

NAME = "toolcrib"
INSTRUCTIONS = (
    "Toolcrib keeps this user's context and gives you tools on their machine. Before you say that"
    " you do not know something about the user, their files or their work, ask `query`. Keep what"
    " is worth finding again with `remember`, `add_event` or `add_document`. For what no listed"
    " tool does, ask `search_tools`; `describe_tool` shows all that one takes. Files and programs"
    " are inside one root directory. Some calls ask the user first. A failed call says what was"
    " wrong and what to do."
)
"""Every client shows the first 512 characters to its model."""

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol versions that begin with `initialize`, oldest first."""

MODERN = "2026-07-28"
LARGEST_ID = 2**53

_DISCOVERED = {
    "supportedVersions": [MODERN],
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}
_EXTENSIONS: Mapping[str, Mapping[str, bool]] = {
    "io.modelcontextprotocol/tasks": {},
    "io.modelcontextprotocol/skills": {"directoryRead": True},
}
_INFO = {"name", "title", "version", "description", "websiteUrl"}
_PARTS = {"elicitation": {"form", "url"}, "sampling": {"context", "tools"}}
_OPEN = {"experimental", "extensions"}
"""Capabilities whose parts are open-ended."""

_DECIDING = {"profiles", "surface"}
"""Settings that may list tools of other servers."""

_FUNCTIONS = {"TOOLCRIB_FUNCTIONS", "TOOLCRIB_FUNCTIONS__PATHS"}
"""Variables that may name function files."""


class FirstReply(NamedTuple):
    """A reply made ahead of the server: the line, and the id of its request."""

    request: str | int
    line: bytes


def reply_to(line: bytes, version: str, changing: Collection[str]) -> FirstReply | None:
    """Returns the reply to a client's first line; None if only the server can reply.

    `changing` are the lists that change while it runs: of tools, prompts and resources.
    """
    match _decode(line):
        case {"jsonrpc": "2.0", "id": request, "method": method, "params": params, **rest}:
            about = None if rest else _about(method, params, {"name": NAME, "version": version})
            # isinstance() counts booleans as numbers, and some parsers round larger JSON integers.
            is_number = type(request) is int and abs(request) < LARGEST_ID
            if about is not None and (isinstance(request, str) or is_number):
                offered = _capabilities(changing)
                if method == "server/discover":  # the SDK omits them from a handshake
                    offered["extensions"] = _EXTENSIONS
                said = {"capabilities": offered, "instructions": INSTRUCTIONS}
                answer = {"jsonrpc": "2.0", "id": request, "result": {**said, **about}}
                return FirstReply(request, json.dumps(answer).encode() + b"\n")
    return None


def _about(method: object, params: object, this: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Returns the method-specific part of the reply; None unless the request is surely valid."""
    if method == "server/discover" and _is_modern(params):
        return {**_DISCOVERED, "_meta": {"io.modelcontextprotocol/serverInfo": this}}
    wanted = _wanted_version(params) if method == "initialize" else None
    if wanted is None:
        return None
    chosen = wanted if wanted in HANDSHAKES else HANDSHAKES[-1]
    return {"protocolVersion": chosen, "serverInfo": this}


def _decode(line: bytes) -> object:
    if b"\\ud" in line.lower():  # perhaps an unpaired surrogate, which the server rejects
        return None
    try:
        return json.loads(line.decode(), object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Builds a JSON object, rejecting duplicate names."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name appears in it twice")
    return found


def _wanted_version(params: object) -> str | None:
    """Returns the protocol version of a handshake; None unless it is surely valid."""
    match params:
        case {
            "protocolVersion": str(wanted),
            "capabilities": offered,
            "clientInfo": client,
            **rest,
        } if not rest and _are_capabilities(offered) and _is_client(client):
            return wanted
    return None


def _is_modern(params: object) -> bool:
    """Returns whether a request has exactly the modern protocol's envelope, surely valid."""
    match params:
        case {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientInfo": client,
                "io.modelcontextprotocol/clientCapabilities": offered,
                **more,
            },
            **rest,
        }:
            plain = not more and not rest and version == MODERN
            return plain and _are_capabilities(offered) and _is_client(client)
    return False


def _is_client(said: object) -> bool:
    return (
        isinstance(said, dict)
        and {"name", "version"} <= said.keys() <= _INFO
        and all(isinstance(text, str) for text in said.values())
    )


def _are_capabilities(offered: object) -> bool:
    return isinstance(offered, dict) and all(_is_capability(*each) for each in offered.items())


def _is_capability(name: str, parts: object) -> bool:
    if not isinstance(parts, dict):
        return False
    if name == "roots":
        return all(part == "listChanged" and isinstance(parts[part], bool) for part in parts)
    is_known = name in _OPEN or (name in _PARTS and parts.keys() <= _PARTS[name])
    return is_known and all(map(_is_flat, parts.values()))


def _is_flat(value: object) -> bool:
    """Returns whether a value is an object of strings, booleans and lists of strings."""
    return isinstance(value, dict) and all(
        isinstance(each, str | bool)
        or (isinstance(each, list) and all(isinstance(item, str) for item in each))
        for each in value.values()
    )


def _capabilities(changing: Collection[str]) -> dict[str, Any]:
    lists: dict[str, dict[str, bool]] = {
        kind: {"listChanged": kind in changing} for kind in ("prompts", "resources", "tools")
    }
    lists["resources"]["subscribe"] = True
    return {"completions": {}, "logging": {}, **lists}


def changing_lists(
    config: Path | None, environ: Mapping[str, str], *, functions: bool = False
) -> tuple[str, ...] | None:
    """Returns the lists that change in a stdio server, judged by its unvalidated settings.

    The first reply depends on no other settings, and needs none of their models.

    Returns:
        Some of tools, prompts and resources; None if only the full settings can tell.
    """
    settings = _settings(config, environ)
    variables = {name.upper() for name, value in environ.items() if value}
    if settings is None or "TOOLCRIB_SERVERS" in variables:
        return None
    if not functions:
        said = None if _FUNCTIONS & variables else _names_functions(settings.get("functions", {}))
        if said is None:
            return None
        functions = said
    if functions:
        return ("prompts", "resources", "tools")
    if "servers" not in settings:
        return (
            None if "TOOLCRIB_SURFACE" in variables else _surface_lists(settings.get("surface", []))
        )
    unclear = {"_TOOLCRIB_DEPTH", *(f"TOOLCRIB_{key.upper()}" for key in _DECIDING)} & variables
    is_clear = not (unclear or _DECIDING & settings.keys())
    return ("prompts", "resources") if is_clear and _has_enabled(settings["servers"]) else None


def _names_functions(group: object) -> bool | None:
    """Returns whether a group of settings names function files; None if unclear."""
    match group:
        case {"paths": [*paths]}:
            return bool(paths)
        case {"paths": _}:
            return None
        case {}:
            return False
    return None


def _surface_lists(surface: object) -> tuple[str, ...] | None:
    """Returns the lists that change with skills and created tools; None if unclear."""
    if not isinstance(surface, list):
        return None
    return ("resources", "tools") if "full" in surface else ("resources",)


def _settings(named: Path | None, environ: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Reads the settings file without validation; None if it cannot be used."""
    import tomllib  # an author's own server has no settings

    from server.settings_file import settings_path

    path, namer = settings_path(named, environ)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return None if namer else {}
    except (OSError, ValueError, RecursionError):
        return None


def _has_enabled(servers: Any) -> bool:  # noqa: ANN401  # any value in the file
    return isinstance(servers, dict) and any(
        isinstance(each, dict) and each.get("enabled", True) is True for each in servers.values()
    )
