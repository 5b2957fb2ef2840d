"""Creates, stores and finds the environments that function files run in.

An environment is a directory named by a hash of its contents. It is built next to its final place
and renamed when complete, under a lock shared with other servers on the data directory.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import sysconfig
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import metadata, requires
from pathlib import Path
from subprocess import DEVNULL

import anyio
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from storage.locks import locked
from tools.functions.installer import (
    EnvironmentFailedError,
    Report,
    Requirements,
    install,
    python_of,
    server_satisfies,
    uv_variables,
)
from tools.functions.script import ScriptMetadata

_WORKER_NEEDS = frozenset({"anyio", "pydantic", "typing-extensions"})
"""Our own dependencies that the worker imports."""

_FIND_PACKAGES = "import sys, importlib.util as u; sys.exit(not u.find_spec('anyio'))"
"""Fails if the interpreter's minor version is not the one the packages were installed for."""


class Environments:
    """All environments of a data directory."""

    def __init__(self, directory: Path, *, environ: Mapping[str, str]) -> None:
        self._directory = directory.absolute()
        self._environ = uv_variables(environ, self._directory.parent)

    async def get(self, script: ScriptMetadata, report: Report) -> Path:
        """Finds or creates the environment that a file needs, and returns its interpreter.

        That is the server's own interpreter if the file needs nothing else.

        Raises:
            EnvironmentFailedError: If it cannot be created. Nothing of it is left then, nor after
                cancellation.
        """
        own_python = SpecifierSet(metadata("toolcrib")["Requires-Python"])
        python = SpecifierSet(script.requires_python) & own_python
        if not script.dependencies and server_satisfies(python):
            return Path(sys.executable)
        dependencies = tuple(sorted(set(script.dependencies)))
        needed = Requirements(dependencies, _worker_requirements(), python, own_python)
        path = self._directory / _key(needed)
        try:
            if not await self._works(path):
                await self._make(path, needed, report)
        except OSError as error:
            raise EnvironmentFailedError(
                f"The environment with {needed.names} cannot be made in {self._directory}: {error}."
                " Check the disk and its permissions."
            ) from error
        return python_of(path)

    async def _works(self, path: Path) -> bool:
        """Returns whether it exists and its interpreter still matches its packages."""
        try:
            ended = await anyio.run_process(
                [python_of(path), "-I", "-c", _FIND_PACKAGES],
                stdin=DEVNULL,
                stderr=DEVNULL,
                check=False,
                env=self._environ,
            )
        except OSError:
            return False
        return ended.returncode == 0

    async def _make(self, path: Path, needed: Requirements, report: Report) -> None:
        async def make(unfinished: Path) -> None:
            await report(f"Installing {needed.names}")
            await install(unfinished, needed, self._environ, report)

        await make_whole(path, make, partial(self._works, path), report)


def _worker_requirements() -> tuple[str, ...]:
    stated = [Requirement(text) for text in requires("toolcrib") or ()]
    return tuple(
        sorted(str(each) for each in stated if canonicalize_name(each.name) in _WORKER_NEEDS)
    )


def _key(needed: Requirements) -> str:
    """Returns a name for everything that an environment depends on."""
    facts = [
        sorted((*needed.dependencies, *needed.ours)),
        str(needed.python),
        sys.implementation.cache_tag,
        sysconfig.get_platform(),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


POLL_INTERVAL = 0.1
"""Seconds between attempts to get a lock; a thread that waits for it could not be cancelled."""


async def make_whole(
    path: Path,
    make: Callable[[Path], Awaitable[None]],
    is_whole: Callable[[], Awaitable[bool]],
    report: Report,
) -> None:
    """Creates or replaces a directory, unless another server has created it meanwhile.

    `make`: creates it at another path; if this fails or is cancelled, nothing is left.
    """
    await anyio.Path(path.parent).mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    async with alone(path, report):
        if await is_whole():
            return  # made by the previous holder of the lock
        try:
            await make(unfinished)
            await anyio.to_thread.run_sync(_replace, path, unfinished)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_remove, unfinished)


@asynccontextmanager
async def alone(path: Path, report: Report) -> AsyncIterator[None]:
    """Waits for and holds the lock of a directory."""
    lock = path.with_name(f"{path.name}.lock")
    reported = False
    while True:
        with locked(lock, wait=False) as held:
            if held:
                yield
                return
        if not reported:
            await report("Waiting for the same environment to be made elsewhere")
            reported = True
        await anyio.sleep(POLL_INTERVAL)


def _replace(path: Path, new: Path) -> None:
    _remove(path)
    new.rename(path)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
