from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from tools.functions.environment import (
    OUTPUT_LINES,
    CommandFailedError,
    EnvironmentFailedError,
    Environments,
    _worker_requirements,
    run_command,
)
from tools.functions.script import ScriptMetadata

pytestmark = pytest.mark.slow

SIX = ScriptMetadata(("six",))
MISSING = "toolcrib-has-no-such-package"

SERVER = """
import json, os, sys
from pathlib import Path
import anyio
from tools.functions.environment import Environments
from tools.functions.script import ScriptMetadata

async def report(line):
    print(line, flush=True)

async def main(directory, *dependencies):
    environments = Environments(Path(directory), environ=os.environ)
    print(await environments.get(ScriptMetadata(dependencies), report))

anyio.run(main, *sys.argv[1:])
"""
"""Another server on the same directory: prints what it is told, then the interpreter."""

BACKEND = """
import json, os, zipfile

def build_wheel(directory, *_):
    started = open("started", "w")
    started.write(json.dumps(dict(os.environ)) + "\\n")
    started.flush()
    open("go").readline()
    name = "gated-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("gated.py", "")
        wheel.writestr("gated-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: gated\\nVersion: 1.0\\n")
        wheel.writestr("gated-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("gated-1.0.dist-info/RECORD", "")
    return name
"""  # noqa: E501  # files of a wheel


class Told(list[str]):
    """Keeps what is reported, and tells when there is something."""

    def __init__(self) -> None:
        super().__init__()
        self.something = anyio.Event()

    async def __call__(self, line: str) -> None:
        self.append(line)
        self.something.set()


class Gated:
    """A package whose build says that it has begun, and waits until it may go on."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        (directory / "pyproject.toml").write_text(
            "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
            "[project]\nname = 'gated'\ndynamic = ['version']\n"
        )
        (directory / "backend.py").write_text(BACKEND)
        os.mkfifo(directory / "started")
        os.mkfifo(directory / "go")
        self._started = os.open(directory / "started", os.O_RDONLY | os.O_NONBLOCK)
        self._go = os.open(directory / "go", os.O_RDWR)
        self.metadata = ScriptMetadata((f"gated @ {directory.as_uri()}",))

    async def started(self) -> dict[str, str]:
        """Waits for the build to begin; its environment variables."""
        line = b""
        while not line.endswith(b"\n"):
            line += await self._read()
        variables: dict[str, str] = json.loads(line)
        return variables

    async def ended(self) -> None:
        """Waits for the process that builds to be gone, which alone holds the pipe open."""
        assert await self._read() == b""

    async def go_on(self) -> None:
        os.write(self._go, b"go\n")
        await self.ended()

    def close(self) -> None:
        os.close(self._started)
        os.close(self._go)

    async def _read(self) -> bytes:
        while True:
            await anyio.wait_readable(self._started)
            with suppress(BlockingIOError):  # it was opened for writing between the two
                return os.read(self._started, 1 << 16)


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Gated]:
    gated = Gated(tmp_path / "gated")
    yield gated
    gated.close()


def environments(tmp_path: Path, **variables: str) -> Environments:
    return Environments(tmp_path / "kept", environ={**os.environ, **variables})


def left(tmp_path: Path) -> list[str]:
    """What lies in the directory besides locks."""
    return [path.name for path in (tmp_path / "kept").iterdir() if path.suffix != ".lock"]


def run(python: Path, program: str) -> str:
    return subprocess.run(
        [python, "-I", "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def serve(tmp_path: Path, dependencies: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path / "kept"), *dependencies],
        stdout=subprocess.PIPE,
        text=True,
    )


async def failure(asked: Environments, metadata: ScriptMetadata) -> str:
    with pytest.raises(EnvironmentFailedError) as caught:
        await asked.get(metadata, Told())
    return str(caught.value)


@pytest.mark.parametrize("requires_python", ["", ">=3.11"])
async def test_who_needs_nothing_runs_in_the_interpreter_of_the_server(
    tmp_path: Path, requires_python: str
) -> None:
    told = Told()
    found = await environments(tmp_path).get(ScriptMetadata((), requires_python), told)
    assert (found, told) == (Path(sys.executable), [])
    assert not (tmp_path / "kept").exists()


@pytest.mark.slow
async def test_dependencies_are_installed_beside_what_the_worker_needs(tmp_path: Path) -> None:
    told = Told()
    metadata = ScriptMetadata(("six", "iniconfig>=2"))
    made = await environments(tmp_path).get(metadata, told)
    assert run(made, "import anyio, iniconfig, pydantic, six, typing_extensions") == ""
    assert "None" in run(made, "import importlib.util as u; print(u.find_spec('mcp'))")
    assert told[0] == "Installing iniconfig, six"
    assert told[-1].startswith("Install")

    told.clear()
    again = ScriptMetadata(("iniconfig>=2", "six", "six"))
    assert await environments(tmp_path).get(again, told) == made
    assert told == []


def test_the_worker_needs_what_the_distribution_states() -> None:
    names = [text.partition(">")[0] for text in _worker_requirements()]
    assert names == ["anyio", "pydantic", "typing-extensions"]


async def test_a_conflict_with_what_the_worker_needs_is_named(tmp_path: Path) -> None:
    message = await failure(environments(tmp_path), ScriptMetadata(("pydantic<2",)))
    assert "pydantic<2" in message
    assert "Toolcrib needs pydantic>=" in message
    assert left(tmp_path) == []


async def test_a_package_that_does_not_exist_is_named(tmp_path: Path) -> None:
    message = await failure(environments(tmp_path), ScriptMetadata((MISSING,)))
    assert message.startswith(f"uv could not install {MISSING}.")
    assert "Correct the dependencies in the file's" in message
    assert len(message.splitlines()) < 8
    assert left(tmp_path) == []


async def test_an_index_out_of_reach_is_told_from_a_wrong_package(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9/simple"
    asked = environments(tmp_path, UV_DEFAULT_INDEX=nowhere, UV_HTTP_RETRIES="0")
    assert "Check the network" in await failure(asked, SIX)


@pytest.mark.parametrize("requires_python", [">=3.99", "<3.10"])
async def test_python_versions_that_cannot_be_had_are_named(
    tmp_path: Path, requires_python: str
) -> None:
    asked = environments(tmp_path, PATH="")
    message = await failure(asked, ScriptMetadata((), requires_python))
    assert requires_python in message.splitlines()[0]
    assert "Toolcrib itself needs >=3.11" in message
    assert "change 'requires-python'" in message
    assert left(tmp_path) == []


async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file")
    assert str(tmp_path / "kept") in await failure(environments(tmp_path), SIX)


async def test_asked_twice_at_once_it_is_made_once(tmp_path: Path) -> None:
    asked = environments(tmp_path)
    told = Told()
    found = []

    async def ask() -> None:
        found.append(await asked.get(SIX, told))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(ask)
    assert found[0] == found[1]
    assert told.count("Installing six") == 1


async def test_two_servers_make_it_once(tmp_path: Path, gated: Gated) -> None:
    told = Told()
    found: list[Any] = []

    async def ask() -> None:
        found.append(await environments(tmp_path).get(gated.metadata, told))

    with anyio.fail_after(60), serve(tmp_path, gated.metadata.dependencies) as other:
        await gated.started()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await told.something.wait()
            await gated.go_on()
        printed = other.communicate()[0].splitlines()
    assert told == ["Waiting for the same environment to be made elsewhere"]
    assert (printed[0], printed[-1]) == ("Installing gated", str(found[0]))
    assert run(found[0], "import gated") == ""


async def test_a_cancelled_installation_leaves_no_process_and_no_files(
    tmp_path: Path, gated: Gated
) -> None:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(environments(tmp_path).get, gated.metadata, Told())
            await gated.started()
            assert left(tmp_path) != []
            tasks.cancel_scope.cancel()
        await gated.ended()
    assert left(tmp_path) == []


async def test_a_killed_server_leaves_no_process_and_nothing_that_is_taken_for_whole(
    tmp_path: Path, gated: Gated
) -> None:
    with anyio.fail_after(60):
        with serve(tmp_path, gated.metadata.dependencies) as server:
            await gated.started()
            server.send_signal(signal.SIGKILL)
        await gated.ended()
        (half,) = left(tmp_path)
        (tmp_path / "kept" / half / "half").touch()
        place = tmp_path / "kept" / half.removesuffix(".unfinished")
        assert not place.exists()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(environments(tmp_path).get, gated.metadata, Told())
            await gated.started()
            await gated.go_on()
    assert left(tmp_path) == [place.name]
    assert not (place / "half").exists()


async def test_installers_see_neither_our_settings_nor_our_interpreter(
    tmp_path: Path, gated: Gated
) -> None:
    hidden = ["TOOLCRIB_HTTP_TOKEN", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"]
    asked = environments(tmp_path, PASSED="on", **dict.fromkeys(hidden, "/nowhere"))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.get, gated.metadata, Told())
            variables = await gated.started()
            tasks.cancel_scope.cancel()
    assert variables["PASSED"] == "on"
    assert "/nowhere" not in variables.values()
    await gated.ended()


@pytest.mark.parametrize("said", [{}, {"UV_SYSTEM_CERTS": "false"}])
async def test_uv_trusts_whom_the_machine_trusts_unless_it_is_told(
    tmp_path: Path, gated: Gated, said: dict[str, str]
) -> None:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(environments(tmp_path, **said).get, gated.metadata, Told())
            variables = await gated.started()
            tasks.cancel_scope.cancel()
    assert variables["UV_SYSTEM_CERTS"] == said.get("UV_SYSTEM_CERTS", "true")
    await gated.ended()


@pytest.mark.parametrize("broken", ["gone", "failing", "upgraded"])
async def test_an_environment_whose_interpreter_changed_is_made_again(
    tmp_path: Path, broken: str
) -> None:
    made = await environments(tmp_path).get(SIX, Told())
    if broken == "upgraded":
        (packages,) = (made.parents[1] / "lib").iterdir()
        packages.rename(packages.with_name("python3.99"))
    elif broken == "gone":
        made.unlink()
        made.symlink_to("/nowhere/python3.11")
    else:
        made.unlink()
        made.write_text("#!/bin/sh\nexit 1\n")
        made.chmod(0o755)
    told = Told()
    assert await environments(tmp_path).get(SIX, told) == made
    assert told[0] == "Installing six"
    assert run(made, "import six") == ""


async def run_python(program: str, told: Told, cwd: Path) -> None:
    command = [sys.executable, "-c", program]
    await run_command(command, environ={}, cwd=cwd, report=told)


async def test_lines_of_progress_are_reported(tmp_path: Path) -> None:
    told = Told()
    await run_python(r"print('noise\n Downloading numpy (16 MB)\nnoise')", told, tmp_path)
    assert told == ["Downloading numpy (16 MB)"]


async def test_a_failure_keeps_the_end_of_the_output(tmp_path: Path) -> None:
    program = (
        "import sys; print(*range(1000), sep='\\n\\n', flush=True);"
        r"sys.stdout.buffer.write(b'\xff\n'); sys.stdout.flush(); sys.exit('the reason')"
    )
    with pytest.raises(CommandFailedError) as caught:
        await run_python(program, Told(), tmp_path)
    lines = [line for line in caught.value.args if line]
    assert lines[-3:] == ["999", "\ufffd", "the reason"]
    assert len(lines) == OUTPUT_LINES


async def test_a_command_that_a_signal_ends_has_failed(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError):
        await run_python("import os; os.kill(os.getpid(), 9)", Told(), tmp_path)


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match=r"/nowhere/uv.*not found"):
        await run_command(["/nowhere/uv"], environ={}, cwd=tmp_path, report=Told())


async def test_a_command_asks_no_questions(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match="EOFError"):
        await run_python("input()", Told(), tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
async def test_a_command_may_run_programs_that_gain_privileges(tmp_path: Path) -> None:
    """Git, which uv runs, may ask a credential helper that is a snap."""
    own = await anyio.Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(each for each in own.splitlines() if each.startswith("NoNewPrivs"))
    program = f"import sys; sys.exit({line!r} not in open('/proc/self/status').read())"
    await run_python(program, Told(), tmp_path)
