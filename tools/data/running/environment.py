"""The environment of Data-Juicer, whose packages are large and would replace the server's."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from tools.core.errors import UnavailableError
from tools.data.release import VERSION
from tools.functions.environment import (
    CommandFailedError,
    Report,
    alone,
    failure_of,
    make_whole,
    python_of,
    run_command,
    uv_beside,
    uv_variables,
)

PINNED = Path(__file__).with_name("minimal.txt")
"""The packages that operators on text need, with their dependencies."""

WORDS = Path(__file__).with_name("words.txt")
"""Packages whose word lists and models are used, in every environment."""

_FFMPEG = "lib/python*/site-packages/imageio_ffmpeg/binaries/ffmpeg-*"  # operators look for it
_PROOF = "import data_juicer.ops.filter, data_juicer.core.data"  # fails where something is missing
_MARK = "toolcrib.json"  # in a whole environment; it says what it has


class Extent(StrEnum):
    """Which packages of Data-Juicer are installed."""

    MINIMAL = "minimal"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment's packages, the origin of its Python, and the digest of pinned versions."""

    version: str
    extent: Extent
    base: str = sys.base_prefix
    pins: str = ""


class DataEnvironment:
    """The one environment of a data directory; `environ` has uv's index and proxy."""

    def __init__(self, data_dir: Path, *, environ: Mapping[str, str]) -> None:
        self.path = data_dir.resolve() / "data-juicer"
        self._environ = uv_variables(environ, self.path.parent)

    def installed(self) -> Installed | None:
        """Returns what is there, if it is whole."""
        try:
            mark = json.loads((self.path / _MARK).read_bytes())
            extent = Extent(mark["extent"])
            found = Installed(mark["version"], extent, mark["base"], mark.get("pins", ""))
        except (OSError, ValueError, KeyError):
            return None
        return found if python_of(self.path).exists() else None

    def python(self) -> Path:
        """Returns its interpreter, if it is there with the release that recipes need."""
        found = self.installed()
        if found and found.version == VERSION:
            return python_of(self.path)
        release = f"{found.version} is set up here, and recipes need {VERSION}" if found else ""
        raise UnavailableError(
            f"Data-Juicer {release or 'is not set up here'}.",
            next_actions=["Ask the user to run `toolcrib data setup`."],
        )

    def readable(self) -> tuple[Path, ...]:
        """Returns what its processes have to see: itself, and the Python that it was made with."""
        found = self.installed()
        return (self.path,) if found is None else (self.path, Path(found.base))

    async def set_up(self, extent: Extent, report: Report) -> bool:
        """Makes it, unless it is there with at least as much; returns whether it did."""
        pins = hashlib.sha256(PINNED.read_bytes() + WORDS.read_bytes()).hexdigest()
        is_needed = True

        async def is_whole() -> bool:
            nonlocal is_needed
            found = self.installed() or Installed("", extent)
            is_current = (found.version, found.pins) == (VERSION, pins)
            is_needed = not (is_current and found.extent in {extent, Extent.FULL})
            return not is_needed

        install = partial(self._install, Installed(VERSION, extent, pins=pins), report)
        try:
            await make_whole(self.path, install, is_whole, report)
        except CommandFailedError as error:
            raise UnavailableError(
                f"Data-Juicer could not be set up.\n{failure_of(error.args)}",
                next_actions=["Run `toolcrib data setup` again: what was fetched is kept."],
            ) from error
        except OSError as error:
            raise UnavailableError(
                f"Data-Juicer cannot be set up in {self.path}: {error}.",
                next_actions=["Check the disk and its permissions."],
            ) from error
        return is_needed

    async def remove(self, report: Report) -> bool:
        """Removes it; returns whether there was anything."""
        there = await anyio.Path(self.path).exists()
        if there:
            async with alone(self.path, report):
                # What is gone in part must not be taken for whole.
                await anyio.Path(self.path / _MARK).unlink(missing_ok=True)
                await run_sync(shutil.rmtree, self.path)
        return there

    async def _install(self, wanted: Installed, report: Report, directory: Path) -> None:
        uv = uv_beside(directory, self._environ, report)
        python = python_of(directory)
        await report(f"Installing Data-Juicer {VERSION}")
        make = ("venv", "--no-project", "--clear", "--relocatable", "--python", sys.executable)
        await uv((*make, directory))
        add = ("pip", "install", "--python", python)
        exactly = (*add, "--no-deps", "--requirements", WORDS)
        if wanted.extent is Extent.FULL:
            await uv((*add, f"py-data-juicer[all]=={VERSION}"))
            await uv(exactly)
            await run_sync(_link_ffmpeg, directory)
        else:
            await uv((*exactly, "--requirements", PINNED, f"py-data-juicer=={VERSION}"))
        await report("Trying it")
        await run_command(
            (python, "-I", "-c", _PROOF), cwd=directory, environ=self._environ, report=report
        )
        mark = json.dumps(asdict(wanted))
        await anyio.Path(directory / _MARK).write_text(mark, encoding="utf-8")


def _link_ffmpeg(directory: Path) -> None:
    for program in directory.glob(_FFMPEG):
        link = directory / "bin" / "ffmpeg"
        link.symlink_to(Path("..") / program.relative_to(directory))
