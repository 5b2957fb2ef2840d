"""Which lists will change while the server runs, told by the command line and the file alone.

It is all of the settings that the first reply depends on, and needs neither their models nor the
tools.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from server.settings_path import settings_path

__all__ = ["changing_lists"]

_OPTIONS = {"--config", "--data-dir", "--functions", "--root", "--transport"}
"""Those of `toolcrib serve`, each with a value, that change nothing of stdio's being served."""

_DECIDING = {"profiles", "surface"}
"""Settings by which tools of other servers may be listed."""


def changing_lists(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """The lists of the server over stdio that change: of tools, prompts and resources.

    Args:
        arguments: What the command was started with, without its own name.
        environ: The environment.

    Returns:
        The lists; None where stdio is not what is served, or only the whole of the settings tells.
    """
    options = _options(arguments[1:]) if arguments[:1] == ["serve"] else None
    if options is None or options.get("--transport", "stdio") != "stdio":
        return None
    settings = _settings(options.get("--config"), environ)
    variables = {name.upper() for name, value in environ.items() if value}
    if settings is None or "TOOLCRIB_SERVERS" in variables:
        return None
    if "servers" not in settings:
        return ()
    unclear = {"_TOOLCRIB_DEPTH", *(f"TOOLCRIB_{key.upper()}" for key in _DECIDING)} & variables
    is_clear = not (unclear or _DECIDING & settings.keys())
    return ("prompts", "resources") if is_clear and _has_enabled(settings["servers"]) else None


def _settings(named: str | None, environ: Mapping[str, str]) -> Mapping[str, Any] | None:
    """What the settings file has, unchecked; None where it cannot be used."""
    path, namer = settings_path(None if named is None else Path(named), environ)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return None if namer else {}
    except (OSError, ValueError, RecursionError):
        return None


def _options(words: Sequence[str]) -> dict[str, str] | None:
    """The options by name; None if there is one that is not known here, or has no value."""
    options: dict[str, str] = {}
    left = iter(words)
    for word in left:
        if word.startswith("-"):
            name, has_value, value = word.partition("=")
            given = value if has_value else next(left, None)
            if name not in _OPTIONS or given is None:
                return None
            options[name] = given
    return options


def _has_enabled(servers: Any) -> bool:  # noqa: ANN401  # whatever the file has
    return isinstance(servers, dict) and any(
        isinstance(each, dict) and each.get("enabled", True) is True for each in servers.values()
    )
