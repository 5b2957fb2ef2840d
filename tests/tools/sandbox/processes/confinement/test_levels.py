"""Which level is chosen, and what is said where none works."""

import logging
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.sandbox.processes.conftest import make_processes
from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement import levels
from tools.sandbox.processes.confinement.levels import Unconfined
from tools.sandbox.processes.confinement.plan import Confinement, Plan
from tools.sandbox.processes.models import Command, Level, Prepared, SandboxMode
from tools.sandbox.processes.processes import Processes, inherited_variables

pytestmark = [
    pytest.mark.boundary,
    pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's"),
]

NOWHERE = {"PATH": "/nowhere"}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Processes]:
    (tmp_path / "root").mkdir()
    return lambda mode, **named: make_processes(tmp_path / "root", mode=mode, **named)


@pytest.fixture
def no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "landlock_abi", lambda: 0)


async def level_of(processes: Processes) -> Level:
    program = await processes.start(Command(argv=("/bin/true",)))
    await program.wait()
    await program.aclose()
    return program.level


async def test_the_best_level_that_works_is_used(make: Callable[..., Processes]) -> None:
    processes = make(SandboxMode.PREFERRED)
    assert await processes.level() is Level.BUBBLEWRAP
    assert await level_of(processes) is Level.BUBBLEWRAP
    await processes.aclose()


async def test_both_levels_work_where_temporary_directories_have_long_paths(
    make: Callable[..., Processes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("d" * 150)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    for environment, level in ((os.environ, Level.BUBBLEWRAP), (NOWHERE, Level.LANDLOCK)):
        processes = make(SandboxMode.REQUIRED, environment=inherited_variables(environment))
        assert await level_of(processes) is level
        await processes.aclose()


async def test_the_next_level_is_used_where_the_best_one_is_missing(
    make: Callable[..., Processes],
) -> None:
    processes = make(SandboxMode.REQUIRED, environment=NOWHERE)
    assert await level_of(processes) is Level.LANDLOCK
    first, second = await processes.levels.findings()
    assert (first.level, first.works, second.works) == (Level.BUBBLEWRAP, False, True)
    assert first.advice == ("Install the package bubblewrap.",)
    await processes.aclose()


async def test_nothing_is_run_where_a_confinement_is_required_and_none_works(
    make: Callable[..., Processes], no_landlock: None
) -> None:
    processes = make(SandboxMode.REQUIRED, environment=NOWHERE)
    with pytest.raises(UnavailableError) as error:
        await processes.start(Command(argv=("/bin/true",)))
    assert "bubblewrap: bubblewrap is not installed" in error.value.message
    assert "landlock: This kernel has no Landlock" in error.value.message
    assert "Install the package bubblewrap." in error.value.next_actions
    assert await processes.is_confined()
    await processes.aclose()


async def test_programs_run_unconfined_where_it_is_preferred_and_that_is_logged_once(
    make: Callable[..., Processes], no_landlock: None, caplog: pytest.LogCaptureFixture
) -> None:
    processes = make(SandboxMode.PREFERRED, environment=NOWHERE)
    with caplog.at_level(logging.WARNING, logger="toolcrib"):
        assert await level_of(processes) is Level.NONE
        assert await level_of(processes) is Level.NONE
    assert not await processes.is_confined()
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "Programs run unconfined, because no confinement works"
    ]
    await processes.aclose()


async def test_nothing_is_tried_where_it_is_off(make: Callable[..., Processes]) -> None:
    processes = make(SandboxMode.OFF)
    assert await level_of(processes) is Level.NONE
    assert processes.levels._found == {}
    await processes.aclose()


async def test_a_bubblewrap_in_the_root_is_not_taken(
    make: Callable[..., Processes], tmp_path: Path
) -> None:
    planted = tmp_path / "root" / "bwrap"
    planted.write_text("#!/bin/sh\necho bubblewrap 9.9.9\n")
    planted.chmod(0o755)
    processes = make(SandboxMode.PREFERRED, environment={"PATH": str(tmp_path / "root")})
    (first, _) = await processes.levels.findings()
    assert first.detail == "bubblewrap is not installed."
    await processes.aclose()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo bubblewrap 0.4.1", "is bubblewrap 0.4.1, which lacks --clearenv and --bind-fd"),
        ("exit 1", "is broken, which lacks --clearenv and --bind-fd"),
        (
            """case $1 in
            --version) echo bubblewrap 1.0.0;;
            --help) echo ' --clearenv  --bind-fd ';;
            *) echo no user namespaces >&2; false;;
            esac""",
            "no user namespaces",
        ),
    ],
)
async def test_a_bubblewrap_that_does_not_work_is_not_used(
    make: Callable[..., Processes], tmp_path: Path, script: str, told: str
) -> None:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "bwrap"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    processes = make(SandboxMode.PREFERRED, environment={"PATH": str(tmp_path / "bin")})
    assert await level_of(processes) is Level.LANDLOCK
    (first, _) = await processes.levels.findings()
    assert told in first.detail
    await processes.aclose()


class Leaky(Confinement):
    """Says that it confines, and does less than it should."""

    level = Level.BUBBLEWRAP

    def __init__(self, lacks: str, elsewhere: int = 1) -> None:
        self._lacks = lacks
        self._elsewhere = elsewhere
        self._none = Unconfined()

    def describe(self) -> str:
        return "leaky"

    def close(self) -> None: ...

    def temporary(self, scratch: str) -> str:
        return scratch

    def prepare(self, plan: Plan) -> Prepared:
        prepared = self._none.prepare(plan)
        argv = list(prepared.argv)
        kept = {"connect by TCP": -2, "send by UDP": -1, "nothing": 0}
        for each in {-3, -2, -1} - {kept.get(self._lacks, -3)}:
            argv[each] = str(self._elsewhere)
        # Of all that gets through, only this one thing is told.
        passing = '"$@" | grep -e "$0" -e "in the root" -e "temporary"'
        return Prepared(
            argv=("/bin/sh", "-c", passing, self._lacks, *argv),
            cwd=prepared.cwd,
            environment={**prepared.environment, "PATH": os.defpath},
            scratch=prepared.scratch,
        )


@pytest.mark.parametrize(
    "lacks",
    [
        "write outside the root",
        "read private files",
        "connect by TCP",
        "send by UDP",
        "Unix socket",
    ],
)
async def test_a_confinement_that_lets_one_thing_through_is_not_used(
    make: Callable[..., Processes], lacks: str
) -> None:
    processes = make(SandboxMode.PREFERRED)
    levels = processes.levels
    levels._confinements[Level.BUBBLEWRAP] = Leaky(lacks)
    finding = await levels._finding(Level.BUBBLEWRAP)
    assert not finding.works
    assert finding.detail.startswith("A program could ")
    assert lacks in finding.detail
    await processes.aclose()


async def test_a_program_that_reaches_somebody_else_at_the_probes_port_has_not_got_out(
    make: Callable[..., Processes],
) -> None:
    processes = make(SandboxMode.PREFERRED)
    levels = processes.levels
    with socket.create_server(("127.0.0.1", 0)) as other:
        levels._confinements[Level.BUBBLEWRAP] = Leaky("nothing", other.getsockname()[1])
        assert (await levels._finding(Level.BUBBLEWRAP)).works
        other.settimeout(0)
        other.accept()[0].close()
    await processes.aclose()
