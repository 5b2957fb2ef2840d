"""Creates virtual environments with uv, and explains failures in plain words."""

from __future__ import annotations

import re
import ssl
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import killpg
from pathlib import Path
from signal import SIGKILL
from subprocess import PIPE, STDOUT
from typing import cast

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.text import TextReceiveStream
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from uv import find_uv_bin

from storage.outbound import OPT_OUT
from tools.functions import guard

Report = Callable[[str], Awaitable[None]]
"""Shows the user one short line; must not raise."""

RunUv = Callable[[Sequence[str | Path]], Awaitable[None]]
"""Runs a uv command to its end."""

_OF_THE_SERVER = frozenset({"PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"})
"""Variables that would make uv and its builds use the server's packages."""

OUTPUT_LINES = 200
"""Lines at the end of uv's output that are kept for an error."""
ERROR_LINES = 12
"""Maximum lines that an error quotes."""
ERROR_CHARACTERS = 2000
LISTED_NAMES = 5
"""Maximum dependencies that are listed by name."""

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
    """The required contents of an environment.

    Attributes:
        own_python: The versions that Toolcrib, and so the worker, supports; included in `python`.
    """

    dependencies: tuple[str, ...]
    ours: tuple[str, ...]
    python: SpecifierSet
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
    environ = {**_certificates(), **environ}

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

    Raises:
        CommandFailedError: If its exit status is not 0.
    """
    process = await anyio.open_process(
        [sys.executable, "-I", "-S", guard.__file__, *map(str, command)],
        stdin=PIPE,
        stderr=STDOUT,
        cwd=cwd,  # outside any project whose settings uv would use
        env=environ,
        start_new_session=True,
    )
    try:
        output = await _read(process, report)
        status = await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):  # it ended by itself just now
                    killpg(process.pid, SIGKILL)
            await process.aclose()
    if status != 0:
        raise CommandFailedError(*output)


async def _read(process: Process, report: Report) -> Iterable[str]:
    """Reports progress lines, and returns the last lines of the output."""
    output: deque[str] = deque(maxlen=OUTPUT_LINES)
    rest = ""
    async for text in TextReceiveStream(
        cast("ByteReceiveStream", process.stdout),  # opened as a pipe
        errors="replace",
    ):
        *lines, rest = (rest + text).split("\n")
        output.extend(filter(str.strip, lines))
        for line in lines:
            if progress := _PROGRESS.match(line):
                await report(progress[1])
    return [*output, rest]


def _certificates() -> Mapping[str, str]:
    """Makes uv trust the system's certificates, since companies have their own authorities.

    Clients start servers with few variables, so the usual variables for this are missing.
    """
    paths = ssl.get_default_verify_paths()
    known = sys.platform == "darwin" or paths.cafile or paths.capath
    return {"UV_NATIVE_TLS": "true", "UV_SYSTEM_CERTS": "true"} if known else {}


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
