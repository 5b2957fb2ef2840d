"""Programs started for real, and the processes that are left of them."""

import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.models import (
    Command,
    LandlockRules,
    Level,
    Limits,
    Prepared,
    SandboxMode,
)
from tools.sandbox.processes.processes import Processes, inherited_variables
from tools.sandbox.web.guard import AddressGuard

SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", sys.prefix, sys.base_prefix)
PYTHON = (str(Path(sys.executable).resolve()), "-I", "-S", "-c")


@dataclass(frozen=True)
class Outcome:
    stdout: str
    stderr: str
    exit_code: int


class Place:
    """A root that programs may write to, in a directory that they may not."""

    def __init__(self, path: Path) -> None:
        path.chmod(0o755)  # pytest's own are 700
        self.outside = path / "outside"
        self.readable = path / "readable"
        self.root = path / "root"
        for folder in (self.outside, self.readable, self.root):
            folder.mkdir()
        self.rules = LandlockRules(
            readable=(*SYSTEM, str(self.readable)), writable=(str(self.root),)
        )
        self.marker = uuid.uuid4().hex

    def bash(self, script: str, **more: Any) -> Prepared:
        return self.prepared(("/bin/bash", "-c", script), **more)

    def python(self, script: str, **more: Any) -> Prepared:
        return self.prepared((*PYTHON, script), **more)

    def prepared(self, argv: tuple[str, ...], *, confined: bool = False, **more: Any) -> Prepared:
        settings: dict[str, Any] = {
            "cwd": str(self.root),
            "environment": {"PATH": "/usr/bin:/bin", "MARKER": self.marker},
            "landlock": self.rules if confined else None,
        }
        return Prepared(argv=argv, **(settings | more))

    def survivors(self) -> list[int]:
        """The processes that have this place's marker in their environment."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if self.marker.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except (OSError, ValueError):
                continue
        return found


async def drain(fd: int) -> bytes:
    """All that comes until the end of a pipe."""
    content = b""
    while True:
        await anyio.wait_readable(fd)
        data = os.read(fd, 1 << 16)
        if not data:
            return content
        content += data


def make_processes(root: Path, **named: Any) -> Processes:
    """Starts programs in a root, without anything that is not named."""
    given: dict[str, Any] = {
        "protected": [],
        "read_only": [],
        "mode": SandboxMode.REQUIRED,
        "limits": Limits(),
        "environment": inherited_variables(os.environ),
        "readable": [],
        "network": [],
        "sandbox": Sandbox(root, protected=named.get("protected", ())),
        "git_config": bytes,
        "data_dir": root.parent / "data",
        "guard": AddressGuard,
    }
    return Processes(root=root, **(given | named))


def use_only(processes: Processes, level: Level) -> None:
    """Leaves one level, which has to work."""
    known = processes.levels._confinements
    processes.levels._confinements = {each: known[each] for each in known if each is level}


@asynccontextmanager
async def opened(root: Path, level: Level, **named: Any) -> AsyncIterator[Processes]:
    """Processes at one level, which has to work."""
    mode = SandboxMode.OFF if level is Level.NONE else SandboxMode.REQUIRED
    processes = make_processes(root, mode=mode, **named)
    use_only(processes, level)
    try:
        yield processes
    finally:
        await processes.aclose()


async def run_script(processes: Processes, script: str, **command: Any) -> tuple[int, str, str]:
    """A script's exit code, what it printed, and what there is to say of it."""
    program = await processes.start(Command(argv=("bash", "-c", script), **command))
    try:
        code = await program.wait()
        output = b"".join(os.read(fd, 1 << 16) for fd in (program.stdout, program.stderr))
        return code, output.decode(errors="replace"), "\n".join(program.notes)
    finally:
        await program.aclose()


def lives(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Runner:
    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher

    async def __call__(self, prepared: Prepared) -> Outcome:
        running = await self.launcher.start(prepared)
        try:
            taken: dict[int, bytes] = {}

            async def take(fd: int) -> None:
                taken[fd] = await drain(fd)

            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    group.start_soon(take, running.stdout)
                    group.start_soon(take, running.stderr)
                code = await running.wait()
            output, error = (taken[fd].decode() for fd in (running.stdout, running.stderr))
            return Outcome(output, error, code)
        finally:
            await running.aclose()


@pytest.fixture
async def launcher(anyio_backend: str) -> AsyncIterator[Launcher]:
    launcher = Launcher()
    yield launcher
    await launcher.aclose()


@pytest.fixture
def run(launcher: Launcher) -> Runner:
    return Runner(launcher)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    assert not place.survivors()


@pytest.fixture(params=[Level.BUBBLEWRAP, Level.LANDLOCK])
async def confined(
    anyio_backend: str, request: pytest.FixtureRequest, open_crib: Callable[..., Any]
) -> AsyncIterator[Any]:
    """The product and a client that may run everything, at one level, which has to work."""
    if sys.platform != "linux":
        pytest.skip("its levels are Linux's")
    async with open_crib(policy__allow=("scope:system",)) as crib:
        use_only(crib.app.machine.processes, request.param)
        yield crib
