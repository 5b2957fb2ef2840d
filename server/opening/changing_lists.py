"""Which lists will change while the server runs, by its environment and settings file alone.

It is all of the settings that the first reply depends on, and needs neither their models nor the
tools.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from server.settings_path import settings_path

__all__ = ["changing_lists"]

_DECIDING = {"profiles", "surface"}
"""Settings by which tools of other servers may be listed."""


def changing_lists(config: Path | None, environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """The lists of the server over stdio that change: of tools, prompts and resources.

    Args:
        config: The settings file that the command line names, if it names one.
        environ: The environment.

    Returns:
        The lists; None where only the whole of the settings tells.
    """
    settings = _settings(config, environ)
    variables = {name.upper() for name, value in environ.items() if value}
    if settings is None or "TOOLCRIB_SERVERS" in variables:
        return None
    if "servers" not in settings:
        return ()
    unclear = {"_TOOLCRIB_DEPTH", *(f"TOOLCRIB_{key.upper()}" for key in _DECIDING)} & variables
    is_clear = not (unclear or _DECIDING & settings.keys())
    return ("prompts", "resources") if is_clear and _has_enabled(settings["servers"]) else None


def _settings(named: Path | None, environ: Mapping[str, str]) -> Mapping[str, Any] | None:
    """What the settings file has, unchecked; None where it cannot be used."""
    path, namer = settings_path(named, environ)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return None if namer else {}
    except (OSError, ValueError, RecursionError):
        return None


def _has_enabled(servers: Any) -> bool:  # noqa: ANN401  # whatever the file has
    return isinstance(servers, dict) and any(
        isinstance(each, dict) and each.get("enabled", True) is True for each in servers.values()
    )
