"""The two programs that make an environment: uv where there is one, else venv and pip."""

from __future__ import annotations

import re
import shutil
import ssl
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Protocol

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tools.functions.installation import InstallerFailedError, Report, run_installer
from tools.functions.pythons import find_python, our_own, running_satisfies

__all__ = [
    "EnvironmentFailedError",
    "Installer",
    "PipInstaller",
    "UvInstaller",
    "Wanted",
    "find_uv",
    "python_of",
]

TOLD_LINES = 12
"""Lines of the installer's output that an error ends with."""
TOLD_CHARACTERS = 2000
TOLD_NAMES = 5
"""Dependencies that are told by name."""

_UV_SITE = "https://docs.astral.sh/uv/"
_IN_THE_FILE = "in the file's '# /// script' block"

_FIRST_OF_ERROR = re.compile(r"\s*(error\b|\u00d7)", re.IGNORECASE)
_UNREACHABLE = re.compile(
    r"dns error|error sending request|failed to (?:fetch|resolve)|NewConnectionError"
    r"|ConnectTimeout|ReadTimeout|connection broken|network is unreachable",
    re.IGNORECASE,
)


class EnvironmentFailedError(Exception):
    """An environment could not be made.

    Attributes:
        message: What failed, the last lines of the installer, and what to do.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be in an environment.

    Attributes:
        dependencies: The requirements of the function file.
        ours: The requirements of the worker that runs it.
        python: The Python versions that will do.
    """

    dependencies: tuple[str, ...]
    ours: tuple[str, ...]
    python: SpecifierSet

    @property
    def requirements(self) -> tuple[str, ...]:
        """All of them, for the installer to resolve together."""
        return self.dependencies + self.ours

    @property
    def names(self) -> str:
        """What the file's author asked for, in a few words."""
        names = [Requirement(text).name for text in self.dependencies]
        if len(names) > TOLD_NAMES:
            names[TOLD_NAMES:] = [f"{len(names) - TOLD_NAMES} more"]
        return ", ".join(names) or f"Python {self.python}"


class Installer(Protocol):
    """Makes environments.

    Attributes:
        name: What people know it by.
    """

    name: ClassVar[str]

    async def install(self, place: Path, wanted: Wanted, report: Report) -> None:
        """Makes a virtual environment with all requirements, resolved together.

        Args:
            place: Where; nothing is there, and its parent is.
            wanted: What is to be in it.
            report: Told how far it is.

        Raises:
            EnvironmentFailedError: If a Python or a requirement cannot be had.
            OSError: If no process can be started.
        """


def _trust() -> Mapping[str, str]:
    """Lets uv trust whom the machine trusts, as pip does: companies have authorities of their own.

    Clients start servers with few variables, so that those that say it otherwise are missing.
    """
    kept = ssl.get_default_verify_paths()
    known = sys.platform == "darwin" or kept.cafile or kept.capath
    return {"UV_NATIVE_TLS": "true", "UV_SYSTEM_CERTS": "true"} if known else {}


@dataclass(frozen=True, slots=True)
class UvInstaller:
    """Makes environments with uv, which also fetches a Python where none will do."""

    uv: Path
    variables: Mapping[str, str]
    name: ClassVar[str] = "uv"

    async def install(self, place: Path, wanted: Wanted, report: Report) -> None:
        """As `Installer.install`."""
        uv = (self.uv, "--color", "never", "--no-progress")
        python = sys.executable if running_satisfies(wanted.python) else str(wanted.python)
        variables = {**_trust(), **self.variables}
        run = partial(run_installer, environ=variables, cwd=place.parent, report=report)
        try:
            await run((*uv, "venv", "--no-project", "--python", python, place))
        except InstallerFailedError as error:
            raise EnvironmentFailedError(_no_python_by_uv(wanted, error.lines)) from error
        try:
            await run((*uv, "pip", "install", "--python", python_of(place), *wanted.requirements))
        except InstallerFailedError as error:
            raise EnvironmentFailedError(_not_installed(wanted, self.name, error.lines)) from error


@dataclass(frozen=True, slots=True)
class PipInstaller:
    """Makes environments with what each Python brings along: venv and pip."""

    variables: Mapping[str, str]
    name: ClassVar[str] = "pip"

    async def install(self, place: Path, wanted: Wanted, report: Report) -> None:
        """As `Installer.install`."""
        python = await find_python(wanted.python, self.variables)
        if python is None:
            raise EnvironmentFailedError(_no_python_on_path(wanted))
        run = partial(run_installer, environ=self.variables, cwd=place.parent, report=report)
        try:
            await run((python, "-I", "-m", "venv", place))
        except InstallerFailedError as error:
            raise EnvironmentFailedError(
                f"{python} could not make a virtual environment.\n{_end_of(error.lines)}\n"
                "Install its venv module (python3-venv on Debian and Ubuntu), or install uv "
                f"({_UV_SITE}), which needs none."
            ) from error
        pip = (python_of(place), "-I", "-m", "pip", "--no-input", "--disable-pip-version-check")
        try:
            await run((*pip, "install", "--progress-bar", "off", *wanted.requirements))
        except InstallerFailedError as error:
            raise EnvironmentFailedError(_not_installed(wanted, self.name, error.lines)) from error


def find_uv(environ: Mapping[str, str]) -> Path | None:
    """The uv on PATH, else the one that was installed beside the server."""
    found = shutil.which("uv", path=environ.get("PATH", "")) or shutil.which(
        "uv", path=str(Path(sys.executable).parent)
    )
    return Path(found) if found else None


def python_of(place: Path) -> Path:
    """The interpreter of the environment that is there."""
    return place / "bin" / "python"


def _no_python_on_path(wanted: Wanted) -> str:
    return (
        f"{_no_python(wanted)} Install one on PATH, or install uv ({_UV_SITE}), which fetches it, "
        f"or change 'requires-python' {_IN_THE_FILE}."
    )


def _no_python_by_uv(wanted: Wanted, lines: Sequence[str]) -> str:
    network = "Check the network, or install" if _unreachable(lines) else "Install"
    return (
        f"{_no_python(wanted)}\n{_end_of(lines)}\n"
        f"{network} one on PATH, or change 'requires-python' {_IN_THE_FILE}."
    )


def _no_python(wanted: Wanted) -> str:
    return f"There is no Python {wanted.python}, of which {our_own()} is Toolcrib's own condition."


def _not_installed(wanted: Wanted, installer: str, lines: Sequence[str]) -> str:
    """Why the requirements could not be had, and what to do about it."""
    end = _end_of(lines)
    ours = [text for text in wanted.ours if re.search(rf"\b{Requirement(text).name}\b", end)]
    if _unreachable(lines):
        remedy = "Check the network, the proxy and the index that the installer is set to."
    elif ours:
        remedy = (
            f"Toolcrib needs {' and '.join(ours)} in the same environment to run the file: change "
            f"the dependencies {_IN_THE_FILE} so that both can be had."
        )
    else:
        remedy = f"Correct the dependencies {_IN_THE_FILE}."
    return f"{installer} could not install {wanted.names}.\n{end}\n{remedy}"


def _unreachable(lines: Sequence[str]) -> bool:
    return any(map(_UNREACHABLE.search, lines))


def _end_of(lines: Sequence[str]) -> str:
    """What is printed from the first error on, else all, without the middle if it is long."""
    start = next((at for at, line in enumerate(lines) if _FIRST_OF_ERROR.match(line)), 0)
    told = list(lines[start:])
    if len(told) > TOLD_LINES:
        told = [told[0], "…", *told[2 - TOLD_LINES :]]
    return "\n".join(told)[-TOLD_CHARACTERS:]
