"""A failure that confinement or a limit caused says so, with the setting; nothing else does."""

import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.tools.sandbox.processes.conftest import make_processes
from tools.sandbox.processes.confinement.plan import find_visible_paths
from tools.sandbox.processes.explanations import Explanations
from tools.sandbox.processes.jobs import Jobs
from tools.sandbox.processes.models import Command, Level, Limits
from tools.sandbox.processes.processes import Processes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's"),
]

LEVELS = {Level.BUBBLEWRAP: os.defpath, Level.LANDLOCK: "/nowhere"}
OUT_OF_REACH = " is probably out of reach: programs write only in the root and TMPDIR"


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., Processes]]:
    (tmp_path / "root").mkdir()
    made: list[Processes] = []

    def make(level: Level, *, path: str = "", **limits: int) -> Processes:
        given = {"environment": {"PATH": f"{LEVELS[level]}:{path}"}, "limits": Limits(**limits)}
        processes = make_processes(tmp_path / "root", **given)
        made.append(processes)
        return processes

    yield make
    for each in made:
        await each.aclose()


async def report(*_arguments: Any) -> None:
    """Nobody follows."""


async def notes(processes: Processes, script: str) -> list[str]:
    script = f"PATH=$PATH:/usr/bin:/bin\n{script}"
    command = Command(argv=("/bin/bash", "-c", script))
    return (await processes.run(command, seconds=30, report=report)).notes


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "script", ["git clone -q https://example.com/x", "curl -sS https://example.com"]
)
async def test_a_host_that_is_not_found_is_one_that_is_not_allowed(
    make: Callable[..., Processes], level: Level, script: str
) -> None:
    (note,) = await notes(make(level), script)
    assert "example.com:443" in note
    assert "system.network" in note


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("script", ["touch /usr/x", "cat /root/.bashrc", "echo x > ../x"])
async def test_a_path_outside_is_told_to_be_out_of_reach(
    make: Callable[..., Processes], level: Level, script: str
) -> None:
    (note,) = await notes(make(level), script)
    assert OUT_OF_REACH in note
    assert note.startswith(script.rpartition(" ")[2])
    assert "system.readable" in note


async def test_a_file_that_others_obey_is_told_to_be_closed(
    make: Callable[..., Processes], tmp_path: Path
) -> None:
    (tmp_path / "root" / ".mcp.json").touch()
    (note,) = await notes(make(Level.BUBBLEWRAP), "echo x > .mcp.json")
    assert note.startswith(".mcp.json is probably closed to programs")


@pytest.mark.parametrize("level", LEVELS)
async def test_what_the_filter_refuses_is_told(
    make: Callable[..., Processes], level: Level
) -> None:
    (note,) = await notes(make(level), "unshare -U true")
    assert note.startswith("Tracing, mounting, namespaces")
    assert 'system.sandbox = "off"' in note


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("limits", "script", "setting"),
    [
        ({"file_bytes": 1_000_000}, "head -c 2000000 /dev/zero > big", "1 MB (system.file_mb)"),
        ({"cpu_seconds": 1}, "while :; do :; done", "1 seconds of processor time (system.cpu_s"),
    ],
)
async def test_a_limit_is_told_by_its_setting(
    make: Callable[..., Processes], level: Level, limits: dict[str, int], script: str, setting: str
) -> None:
    (note,) = await notes(make(level, **limits), script)
    assert setting in note


@pytest.mark.parametrize("level", LEVELS)
async def test_a_program_in_a_directory_that_is_not_seen_is_told(
    make: Callable[..., Processes], level: Level, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "hidden").touch(mode=0o755)
    (note,) = await notes(make(level, path=str(tmp_path / "bin")), "hidden x")
    assert note.startswith(f"hidden is in {tmp_path}/bin, which programs cannot see")
    assert "system.readable" in note


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "script",
    [
        *("touch /usr/x; true", "echo 'curl: (6) Could not resolve host: example.com'", "exit 3"),
        *("ls nothing", "nothing --help", "ls /usr/nothing"),
        "echo 'Permission denied (publickey).'; exit 1",
    ],
)
async def test_no_other_end_is_explained(
    make: Callable[..., Processes], level: Level, script: str
) -> None:
    assert await notes(make(level), script) == []


async def test_a_job_that_failed_is_explained(make: Callable[..., Processes]) -> None:
    jobs = Jobs(make(Level.BUBBLEWRAP))
    job = await jobs.start("ann", Command(argv=("/bin/bash", "-c", "sleep 0.1; touch /usr/x")))
    assert job.notes == ()
    with anyio.fail_after(30):
        await job._ended.wait()
    assert len(job.notes) == 1
    assert OUT_OF_REACH in job.notes[0]


def explained(level: Level, output: str, exit_code: int = 1, **more: Any) -> tuple[str, ...]:
    given: dict[str, Any] = {"has_network": False, "notes": ()} | more
    explanations = Explanations(
        root="/work/x",
        visible=find_visible_paths(()),
        has_network=given["has_network"],
        limits=Limits(processes=100),
        find_hidden=lambda _name: "",
    )
    return explanations.of(level, exit_code, output, given["notes"])


@pytest.mark.parametrize(
    ("level", "output", "told"),
    [
        (Level.BUBBLEWRAP, "npm error getaddrinfo EAI_AGAIN registry.npmjs.org", '["packages"]'),
        (
            Level.BUBBLEWRAP,
            "Get https://proxy.golang.org/x: dial tcp: lookup a.b: no such",
            '["packages"]',
        ),
        (Level.BUBBLEWRAP, "ping: connect: Network is unreachable", "by system.network."),
        (Level.LANDLOCK, "  socket.socket()\nPermissionError: Operation not permitted", "no Unix"),
        (
            Level.BUBBLEWRAP,
            "  socket.socket()\nPermissionError: Operation not permitted",
            "no Unix",
        ),
        (Level.LANDLOCK, "  self._semlock = SemLock(\nPermissionError: x", "shared memory"),
        (Level.BUBBLEWRAP, "npm error EROFS: read-only, mkdir '/usr/lib/x'", "/usr/lib/x is prob"),
        (
            Level.BUBBLEWRAP,
            "bash: fork: retry: Resource temporarily unavailable",
            "100 (system.proc",
        ),
        (Level.NONE, "bash: fork: Resource temporarily unavailable", "100 (system.processes)"),
        (Level.NONE, 'sudo: The "no new privileges" flag is set, which', "sudo and the like"),
        (Level.BUBBLEWRAP, "chown: changing ownership of 'a': Operation not permitted", "owners"),
    ],
)
def test_the_words_of_programs_are_understood(level: Level, output: str, told: str) -> None:
    (note,) = explained(level, output)
    assert told in note


def test_nothing_is_said_of_confinement_where_there_is_none() -> None:
    output = "Could not resolve host: a.b\ntouch: '/usr/x': Permission denied\nmount: not permitted"
    assert explained(Level.NONE, output) == ()


def test_a_host_that_the_proxy_refused_is_not_told_twice() -> None:
    output = "curl: (6) Could not resolve host: a.b"
    assert explained(Level.BUBBLEWRAP, output, notes=("system.network does not list a.b",)) == ()


def test_what_uses_no_proxy_is_told_that_there_is_one() -> None:
    (note,) = explained(Level.BUBBLEWRAP, "Could not resolve host: a.b", has_network=True)
    assert "HTTPS_PROXY" in note


def test_at_most_two_things_are_said_and_none_twice() -> None:
    lines = [f"cp: '/usr/{each}': Permission denied\n" * 2 for each in "abc"]
    assert [note[:6] for note in explained(Level.LANDLOCK, "".join(lines))] == ["/usr/a", "/usr/b"]


@pytest.mark.parametrize("piece", ["a.", "/a", "x: not found\n", "a-", "/", "host=a"])
def test_a_long_output_is_looked_at_in_a_moment(piece: str) -> None:
    output = piece * (1_000_000 // len(piece))
    began = time.process_time()
    explained(Level.BUBBLEWRAP, f"{output} Permission denied lookup {output}")
    assert time.process_time() - began < 0.5
