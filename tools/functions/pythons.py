"""Which Python interpreters there are, and what each is."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import metadata
from pathlib import Path
from subprocess import DEVNULL

import anyio
from packaging.specifiers import SpecifierSet

__all__ = ["find_python", "our_own", "running_satisfies", "version_of"]

_NAME = re.compile(r"python3(?:\.(\d+))?")
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_PRINT_VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
_RUNNING = "{}.{}.{}".format(*sys.version_info[:3])


def our_own() -> SpecifierSet:
    """The versions that Toolcrib, and so the worker, runs on."""
    return SpecifierSet(metadata("toolcrib")["Requires-Python"])


def running_satisfies(wanted: SpecifierSet) -> bool:
    """Whether the server's own interpreter will do."""
    return wanted.contains(_RUNNING, prereleases=True)


async def version_of(python: Path, environ: Mapping[str, str]) -> str | None:
    """An interpreter's version, such as "3.11.7", or None if it does not run."""
    try:
        ended = await anyio.run_process(
            [python, "-I", "-S", "-c", _PRINT_VERSION],
            stdin=DEVNULL,
            stderr=DEVNULL,
            check=False,
            env=environ,
        )
    except OSError:
        return None
    printed = ended.stdout.decode(errors="replace").strip()
    return printed if ended.returncode == 0 and _VERSION.fullmatch(printed) else None


async def find_python(wanted: SpecifierSet, environ: Mapping[str, str]) -> Path | None:
    """The server's own interpreter if it will do, else the newest on PATH that will.

    Args:
        wanted: The versions that will do.
        environ: The environment that has the PATH, and that candidates are run in: the launchers
            of version managers lie on a PATH whether or not they lead to an interpreter.
    """
    if running_satisfies(wanted):
        return Path(sys.executable)
    for python in await anyio.to_thread.run_sync(_on_path, environ.get("PATH", "")):
        version = await version_of(python, environ)
        if version and wanted.contains(version, prereleases=True):
            return python
    return None


def _on_path(path: str) -> list[Path]:
    """Everything on a PATH that is named as Python 3 is: the newest first, else in its order."""
    found: list[tuple[int, Path]] = []
    for directory in map(Path, filter(None, path.split(os.pathsep))):
        with suppress(OSError):  # many a PATH names what is not there, or not for us
            matches = filter(None, (_NAME.fullmatch(file.name) for file in directory.iterdir()))
            found += [(int(match[1] or 0), directory / match[0]) for match in matches]
    return [python for _, python in sorted(found, key=lambda each: -each[0])]
