"""The environments that function files run in: made once, kept, and found again.

An environment is a directory that is named by what is in it. It is built in place, because a
virtual environment cannot be moved, and counts as made when the marker is in it, which is written
last. Who builds holds a lock on a file beside it, as does every other server on the data directory.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path

import anyio
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from storage.locks import locked
from tools.functions.installation import Report
from tools.functions.installers import (
    EnvironmentFailedError,
    Installer,
    PipInstaller,
    UvInstaller,
    Wanted,
    find_uv,
    python_of,
)
from tools.functions.pythons import our_own, running_satisfies, version_of
from tools.functions.script import ScriptMetadata

__all__ = ["Environment", "EnvironmentFailedError", "Environments", "find_uv"]

POLL_INTERVAL = 0.1
"""Seconds between two looks at a lock that another server holds; waiting in a thread for it could
not be cancelled."""

_WORKER_NEEDS = frozenset({"anyio", "pydantic", "typing-extensions"})
"""Our own dependencies that the worker imports."""

_MARKER = "toolcrib-made"
"""Holds the version of the interpreter that the packages were installed for."""

_OF_THE_SERVER = frozenset({"PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"})
_ELSEWHERE = frozenset({"PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER"})
"""Variables that would have installers use another interpreter or directory than ours."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a function file runs.

    Attributes:
        python: The interpreter to start its worker with.
        isolated: Whether it is an environment of its own; else it is the server's.
    """

    python: Path
    isolated: bool


class Environments:
    """All environments of a data directory.

    Args:
        directory: What they are kept in; made where it is missing.
        environ: The server's environment variables. Installers get them, for their indexes and
            proxies, without Toolcrib's own and those that mean the server's interpreter.
        uv: The uv to install with, as `find_uv` finds it, or None for venv and pip.
    """

    def __init__(self, directory: Path, *, environ: Mapping[str, str], uv: Path | None) -> None:
        self._directory = directory.absolute()  # installers run in it
        self._environ = {
            name: value
            for name, value in environ.items()
            if not name.startswith("TOOLCRIB_") and name not in _OF_THE_SERVER | _ELSEWHERE
        }
        self._installer: Installer = (
            UvInstaller(uv, self._environ) if uv else PipInstaller(self._environ)
        )

    async def get(self, metadata: ScriptMetadata, report: Report) -> Environment:
        """Finds the environment that a file asks for, or makes it.

        Args:
            metadata: What the file asks for.
            report: Told how far it is, where something has to be made; must not raise.

        Raises:
            EnvironmentFailedError: If it cannot be made. Nothing of it is left, nor is it where
                the call is cancelled.
        """
        python = SpecifierSet(metadata.requires_python) & our_own()
        if not metadata.dependencies and running_satisfies(python):
            return Environment(Path(sys.executable), isolated=False)
        dependencies = tuple(sorted(set(metadata.dependencies)))
        wanted = Wanted(dependencies, _worker_requirements(), python)
        place = self._directory / _key(wanted)
        try:
            if not await self._is_made(place):
                await self._make(place, wanted, report)
        except OSError as error:
            raise EnvironmentFailedError(
                f"The environment with {wanted.names} cannot be made in {self._directory}: {error}."
                " Check the disk and its rights."
            ) from error
        return Environment(python_of(place), isolated=True)

    async def _is_made(self, place: Path) -> bool:
        """Whether it is whole, and its interpreter still the one that its packages are for."""
        made_for = await anyio.to_thread.run_sync(_read_marker, place)
        return made_for is not None and made_for == await self._minor_version(place)

    async def _make(self, place: Path, wanted: Wanted, report: Report) -> None:
        await anyio.Path(self._directory).mkdir(parents=True, exist_ok=True)
        async with _lock(place.with_name(f"{place.name}.lock"), report):
            if await self._is_made(place):
                return  # by whoever held the lock
            await anyio.to_thread.run_sync(_remove, place)
            await report(f"Installing {wanted.names} with {self._installer.name}")
            try:
                await self._installer.install(place, wanted, report)
                await self._mark(place)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(_remove, place)
                raise

    async def _mark(self, place: Path) -> None:
        made_for = await self._minor_version(place)
        if made_for is None:
            raise EnvironmentFailedError(
                f"{self._installer.name} made {place}, but its interpreter does not run."
            )
        await anyio.to_thread.run_sync(_write_marker, place, made_for)

    async def _minor_version(self, place: Path) -> str | None:
        """What packages are built for: "3.11" for 3.11.7; None if the interpreter does not run."""
        version = await version_of(python_of(place), self._environ)
        return version and version.rpartition(".")[0]


@asynccontextmanager
async def _lock(path: Path, report: Report) -> AsyncIterator[None]:
    told = False
    while True:
        with locked(path, wait=False) as held:
            if held:
                yield
                return
        if not told:
            await report("Waiting for the same environment to be made elsewhere")
            told = True
        await anyio.sleep(POLL_INTERVAL)


def _worker_requirements() -> tuple[str, ...]:
    stated = [Requirement(text) for text in requires("toolcrib") or ()]
    return tuple(
        sorted(str(each) for each in stated if canonicalize_name(each.name) in _WORKER_NEEDS)
    )


def _key(wanted: Wanted) -> str:
    """A name for all that an environment depends on; the installer is not part of it."""
    facts = [
        sorted(wanted.requirements),
        str(wanted.python),
        sys.implementation.cache_tag,
        sysconfig.get_platform(),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _read_marker(place: Path) -> str | None:
    try:
        return (place / _MARKER).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None


def _write_marker(place: Path, made_for: str) -> None:
    with (place / _MARKER).open("x", encoding="ascii") as file:
        file.write(made_for)
        file.flush()
        os.fsync(file.fileno())


def _remove(place: Path) -> None:
    """Removes what is there, the marker first: what remains if this is cut short is not whole."""
    (place / _MARKER).unlink(missing_ok=True)
    shutil.rmtree(place, ignore_errors=True)
