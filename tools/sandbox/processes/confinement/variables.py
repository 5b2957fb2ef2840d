"""The variables that processes are given: a short list of the server's, and their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

__all__ = ["chosen_variables", "process_variables"]

_PASSED = frozenset({"PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME"})


def chosen_variables(environ: Mapping[str, str], names: Collection[str] = ()) -> dict[str, str]:
    """The variables of the server that processes may have; never one of its own settings.

    Args:
        environ: The environment of the server.
        names: Variables that the settings name beside the usual ones.
    """
    return {
        name: value
        for name, value in environ.items()
        if (name in _PASSED or name.startswith("LC_") or name in names)
        and not name.upper().startswith("TOOLCRIB")
    }


def process_variables(
    chosen: Mapping[str, str],
    given: Mapping[str, str],
    *,
    home: str,
    temporary: str,
    cwd: str,
    sees: Callable[[str], bool],
) -> dict[str, str]:
    """All variables of one process.

    Args:
        chosen: What it has of the server's.
        given: What the call gives; it beats all others.
        home: Its home directory.
        temporary: Its directory for temporary files.
        cwd: Where it starts.
        sees: Whether it can see a directory; others are left out of its PATH.
    """
    own = {
        "HOME": home,
        "TMPDIR": temporary,
        "PWD": cwd,
        "SHELL": "/bin/bash",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
    }
    folders = [*chosen.get("PATH", os.defpath).split(":"), str(Path(sys.executable).parent)]
    seen = [folder for folder in folders if folder.startswith("/") and sees(folder)]
    fixed = {name: own[name] for name in ("HOME", "TMPDIR", "PWD", "SHELL", "TERM")}
    return {**own, **chosen, **fixed, "PATH": ":".join(dict.fromkeys(seen)), **given}
