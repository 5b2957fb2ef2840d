"""Creates, stores and finds the environments that function files run in.

An environment is a directory named by a hash of its contents. It is built next to its final place
and renamed when complete, under a lock shared with other servers on the data directory.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import ssl
import sys
import sysconfig
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import metadata, requires
from pathlib import Path
from subprocess import DEVNULL

import anyio
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from uv import find_uv_bin

from storage.locks import locked
from storage.outbound import OPT_OUT
from tools.functions.script import ScriptMetadata
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.models import Prepared
from tools.sandbox.processes.output import communicate

Report = Callable[[str], Awaitable[None]]  # shows the user one short line; must not raise
RunUv = Callable[[Sequence[str | Path]], Awaitable[None]]  # runs a uv command to its end

_OF_THE_SERVER = frozenset({"PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"})
"""Variables that would make uv and its builds use the server's packages."""

OUTPUT_LINES = 200  # lines at the end of uv's output that are kept for an error
ERROR_LINES = 12  # maximum lines that an error quotes
ERROR_CHARACTERS = 2000
LISTED_NAMES = 5  # maximum dependencies that are listed by name

_PROGRESS = re.compile(r"\s*((?:Downloading|Building|Resolved|Install(?:ing|ed)) .*)")
_FIRST_OF_ERROR = re.compile(r"\s*(error\b|\u00d7)", re.IGNORECASE)
_UNREACHABLE = re.compile(
    r"dns error|error sending request|failed to (?:fetch|resolve)|network is unreachable",
    re.IGNORECASE,
)
_CHECK_NETWORK = "Check the network, the proxy and the index that uv is set to (UV_DEFAULT_INDEX)."
_IN_THE_FILE = "in the file's '# /// script' block"


class EnvironmentFailedError(Exception):
    """An environment could not be created; the text says what failed, and what to do."""


class CommandFailedError(Exception):
    """A command failed; the exception's arguments are the last lines it printed."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """The required contents of an environment."""

    dependencies: tuple[str, ...]
    ours: tuple[str, ...]
    python: SpecifierSet
    # The versions that Toolcrib, and so the worker, supports; included in `python`.
    own_python: SpecifierSet

    @property
    def names(self) -> str:
        """Summarizes what the file's author asked for."""
        names = [Requirement(text).name for text in self.dependencies]
        if len(names) > LISTED_NAMES:
            names[LISTED_NAMES:] = [f"{len(names) - LISTED_NAMES} more"]
        return ", ".join(names) or f"Python {self.python}"


def server_satisfies(python: SpecifierSet) -> bool:
    """Returns whether the server's own interpreter is one of these versions."""
    return python.contains("{}.{}.{}".format(*sys.version_info[:3]), prereleases=True)


def python_of(directory: Path) -> Path:
    """Returns the interpreter of a virtual environment."""
    return directory / "bin" / "python"


async def install(
    directory: Path, needed: Requirements, environ: Mapping[str, str], report: Report
) -> None:
    """Creates a virtual environment with all requirements, resolved together.

    The contents of the directory are replaced, and it can be moved afterwards. uv downloads a
    Python if the machine has no suitable one.

    Raises:
        EnvironmentFailedError: If a Python or a requirement is not available.
    """
    await report(f"Installing {needed.names}")
    run = uv_beside(directory, environ, report)
    python = sys.executable if server_satisfies(needed.python) else str(needed.python)
    make = ("venv", "--no-project", "--clear", "--relocatable", "--python", python, directory)
    add = ("pip", "install", "--python", python_of(directory))
    packages = (*needed.dependencies, *needed.ours)
    try:
        await run(make)
    except CommandFailedError as error:
        raise EnvironmentFailedError(_no_python(needed, error.args)) from error
    try:
        await run((*add, *packages))
    except CommandFailedError as error:
        raise EnvironmentFailedError(_not_installed(needed, error.args)) from error


def uv_variables(environ: Mapping[str, str], data_dir: Path) -> dict[str, str]:
    """Returns the environment variables of uv and its builds.

    The server's index and proxy are kept, but not Toolcrib's own variables nor those for the
    server's interpreter. uv's downloads stay in the data directory unless the user chose another.
    """
    kept = data_dir.absolute() / "uv"
    places = {"UV_CACHE_DIR": str(kept / "cache"), "UV_PYTHON_INSTALL_DIR": str(kept / "python")}
    inherited = {
        name: value
        for name, value in environ.items()
        if not name.startswith("TOOLCRIB_") and name not in _OF_THE_SERVER
    }
    return {**places, **inherited, **OPT_OUT}


def uv_beside(directory: Path, environ: Mapping[str, str], report: Report) -> RunUv:
    """Returns a runner of uv commands for an environment; it raises as `run_command` does."""
    uv = (find_uv_bin(), "--color", "never", "--no-progress")
    # Companies have their own authorities, and clients start servers with few variables.
    paths = ssl.get_default_verify_paths()
    if sys.platform == "darwin" or paths.cafile or paths.capath:
        environ = {"UV_NATIVE_TLS": "true", "UV_SYSTEM_CERTS": "true", **environ}

    async def run(command: Sequence[str | Path]) -> None:
        await run_command((*uv, *command), cwd=directory.parent, environ=environ, report=report)

    return run


def failure_of(output: Sequence[str]) -> str:
    """Returns uv's error output, with advice if the network is the cause."""
    if not _is_unreachable(output):
        return _quote(output)
    return f"{_quote(output)}\n{_CHECK_NETWORK}"


async def run_command(
    command: Sequence[str | Path], *, cwd: Path, environ: Mapping[str, str], report: Report
) -> None:
    """Runs a command to its end; no process is left if it is cancelled or the server dies.

    `cwd`: outside any project whose settings uv would use.

    Raises:
        CommandFailedError: If its exit status is not 0.
    """
    output: deque[str] = deque(maxlen=OUTPUT_LINES)
    rest = bytearray()

    def read(data: bytes) -> None:
        *ended, last = (bytes(rest) + data).split(b"\n")
        rest[:] = last
        for line in (each.decode(errors="replace") for each in ended):
            output.extend(filter(str.strip, [line]))
            if found := _PROGRESS.match(line):
                progress.send_nowait(found[1])

    async def show() -> None:
        async for line in reported:
            await report(line)

    launcher = Launcher(privileged=True)  # for git and its helpers that are set-user-ID or snaps
    argv = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *map(str, command))
    try:
        running = await launcher.start(Prepared(argv=argv, cwd=str(cwd), environment=environ))
        progress, reported = anyio.create_memory_object_stream[str](math.inf)
        with reported:
            async with anyio.create_task_group() as group:
                group.start_soon(show)
                with progress:
                    ended = await communicate(running, read, read, seconds=math.inf)
    finally:
        await launcher.aclose()
    if ended.exit_code != 0:
        raise CommandFailedError(*output, rest.decode(errors="replace"))


def _no_python(needed: Requirements, output: Sequence[str]) -> str:
    network = "Check the network, or install" if _is_unreachable(output) else "Install"
    return (
        f"No Python {needed.python} is available (Toolcrib itself needs {needed.own_python})."
        f"\n{_quote(output)}\n"
        f"{network} one on PATH, or change 'requires-python' {_IN_THE_FILE}."
    )


def _not_installed(needed: Requirements, output: Sequence[str]) -> str:
    quoted = _quote(output)
    ours = [text for text in needed.ours if re.search(rf"\b{Requirement(text).name}\b", quoted)]
    if _is_unreachable(output):
        remedy = _CHECK_NETWORK
    elif ours:
        remedy = (
            f"Toolcrib needs {' and '.join(ours)} in the same environment to run the file: change "
            f"the dependencies {_IN_THE_FILE} so that both can be installed."
        )
    else:
        remedy = f"Correct the dependencies {_IN_THE_FILE}."
    return f"uv could not install {needed.names}.\n{quoted}\n{remedy}"


def _is_unreachable(output: Sequence[str]) -> bool:
    return any(map(_UNREACHABLE.search, output))


def _quote(output: Sequence[str]) -> str:
    """Returns the output from the first error on, or all of it, with a long middle cut."""
    start = next((at for at, line in enumerate(output) if _FIRST_OF_ERROR.match(line)), 0)
    quoted = [line.rstrip() for line in output[start:] if line.strip()]
    if len(quoted) > ERROR_LINES:
        quoted = [quoted[0], "…", *quoted[2 - ERROR_LINES :]]
    return "\n".join(quoted)[-ERROR_CHARACTERS:]


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
                make = partial(install, needed=needed, environ=self._environ, report=report)
                await make_whole(path, make, partial(self._works, path), report)
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


def _worker_requirements() -> tuple[str, ...]:
    stated = [Requirement(text) for text in requires("toolcrib") or ()]
    return tuple(
        sorted(str(each) for each in stated if canonicalize_name(each.name) in _WORKER_NEEDS)
    )


def _key(needed: Requirements) -> str:
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
                await anyio.to_thread.run_sync(
                    partial(shutil.rmtree, ignore_errors=True), unfinished
                )


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
    shutil.rmtree(path, ignore_errors=True)
    new.rename(path)
