import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tools.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    ToolError,
    UnavailableError,
)
from tools.sandbox.processes.launching.launcher import Launcher, SupervisedProcess
from tools.sandbox.processes.launching.messages import EndReason
from tools.sandbox.processes.models import Limits, Prepared

pytestmark = [
    pytest.mark.slow,
    pytest.mark.boundary,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
]

Run = Callable[[Prepared], Awaitable[Any]]
CONFINED = pytest.mark.parametrize("confined", [False, True], ids=["unconfined", "confined"])


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@CONFINED
async def test_a_program_gets_what_it_is_given_and_nothing_else(
    run: Run, place: Any, confined: bool
) -> None:
    given = {"ONE": "1", "TWO": "a b\nc", "DREI": "drei €"}
    prepared = place.prepared(("/usr/bin/env", "-0"), environment=given, confined=confined)
    outcome = await run(prepared)
    assert dict(line.split("=", 1) for line in outcome.stdout.split("\0") if line) == given
    assert (outcome.stderr, outcome.exit_code) == ("", 0)


@CONFINED
async def test_only_the_standard_descriptors_and_the_files_are_open(
    run: Run, place: Any, confined: bool
) -> None:
    files = (b"first", b"", b"third")
    listing = place.prepared(("/bin/ls", "/proc/self/fd"), files=files, confined=confined)
    *_, of_ls_itself = names = (await run(listing)).stdout.split()
    assert names == ["0", "1", "2", "3", "4", "5", of_ls_itself]
    reading = place.bash("cat <&3; cat <&4; cat <&5", files=files, confined=confined)
    assert (await run(reading)).stdout == "firstthird"


async def test_standard_input_is_what_was_given(run: Run, place: Any) -> None:
    for size in (0, 1, 5_000_000):
        prepared = place.prepared(("/usr/bin/wc", "-c"), stdin=b"x" * size)
        assert int((await run(prepared)).stdout) == size


async def test_what_a_program_is_given_cannot_be_changed(run: Run, place: Any) -> None:
    script = "for fd in 0 3; do echo changed >/proc/self/fd/$fd; done"
    outcome = await run(place.bash(script, stdin=b"in", files=(b"file",)))
    assert outcome.stderr.count("Operation not permitted") == 2


async def test_a_program_is_in_a_session_of_its_own_without_a_terminal(
    run: Run, place: Any
) -> None:
    outcome = await run(place.python("import os; print(os.getsid(0) == os.getpid(), os.umask(0))"))
    assert outcome.stdout.split() == ["True", str(0o022)]
    outcome = await run(place.bash("cat /dev/tty"))
    assert outcome.exit_code == 1
    assert "No such device" in outcome.stderr


async def test_signals_are_as_after_a_login(run: Run, place: Any) -> None:
    script = "import signal; print(*[n for n in signal.valid_signals()"
    script += " if signal.getsignal(n) == signal.SIG_IGN], signal.pthread_sigmask(0, ()))"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does with the server
    try:
        outcome = await run(place.python(script))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert outcome.stdout == f"{signal.SIGPIPE:d} {signal.SIGXFSZ:d} set()\n"  # Python's own doing
    assert (await run(place.bash("yes | head -1; exit ${PIPESTATUS[0]}"))).exit_code == 141


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 255", 255), ("kill -9 $$", 137), ("kill $$", 143)]
)
async def test_the_exit_code_is_as_a_shell_has_it(
    run: Run, place: Any, script: str, code: int
) -> None:
    assert (await run(place.bash(script))).exit_code == code


# A program that is being replaced by exec() has no environment to be found by.
async def first_line(running: SupervisedProcess) -> str:
    content = b""
    while b"\n" not in content:
        await anyio.wait_readable(running.stdout)
        data = os.read(running.stdout, 1 << 16)
        assert data, "it ended before it had written a line"
        content += data
    return content.decode().splitlines()[0]


async def test_the_process_id_is_the_programs(launcher: Launcher, place: Any) -> None:
    running = await launcher.start(place.bash("echo $$; exec sleep 1000"))
    assert int(await first_line(running)) == running.pid
    await running.aclose()


async def test_waiting_may_be_given_up_and_repeated(launcher: Launcher, place: Any) -> None:
    running = await launcher.start(place.bash("echo; sleep 1000; :"))
    await first_line(running)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await running.wait()
    assert running.pid in place.survivors()
    await running.kill()
    assert [await running.wait() for _ in range(2)] == [137, 137]
    await running.kill()
    await running.aclose()
    await running.aclose()


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"argv": ("/usr/bin/nothing-here",)}, NotFoundError, "/usr/bin/nothing-here"),
        ({"argv": ("{root}/no_interpreter",)}, NotFoundError, "interpreter"),
        ({"argv": ("{root}/empty",)}, InvalidArgumentsError, "not a program"),
        ({"argv": ("{root}/plain",)}, PermissionDeniedError, "may not be executed"),
        ({"argv": ("{root}",)}, PermissionDeniedError, "may not be executed"),
        ({"argv": ("/bin/echo", "x" * 3_000_000)}, InvalidArgumentsError, "too long"),
        ({"argv": ("/bin/echo", "nul\0")}, InvalidArgumentsError, "NUL"),
        ({"argv": ("/bin/echo", "\ud800")}, InvalidArgumentsError, "ud800"),
        ({"environment": {"A=B": ""}}, InvalidArgumentsError, "A=B"),
        ({"environment": {"": "x"}}, InvalidArgumentsError, "''"),
        ({"cwd": "{root}/none"}, NotFoundError, "cannot start in"),
        ({"cwd": "{root}/plain"}, NotFoundError, "Not a directory"),
        ({"files": (b"",) * 300}, InvalidArgumentsError, "300"),
    ],
)
@CONFINED
async def test_a_start_that_fails_says_why_and_leaves_nothing(  # noqa: PLR0917, PLR0913  # a table
    launcher: Launcher,
    run: Run,
    place: Any,
    change: dict[str, Any],
    error: type[ToolError],
    text: str,
    confined: bool,
) -> None:
    (place.root / "plain").touch()
    for name, content in (("no_interpreter", "#!/nothing/here"), ("empty", "")):
        (place.root / name).write_text(content)
        (place.root / name).chmod(0o755)
    scratch = place.root / "scratch"
    await run(place.bash(":", confined=confined))  # so that what stays open for good is
    open_before = open_descriptors()
    for _ in range(2):
        scratch.mkdir()
        prepared = place.prepared(("/bin/echo",), confined=confined, scratch=str(scratch))
        with pytest.raises(error, match=text):
            await launcher.start(replace(prepared, **_at(place.root, change)))
        assert not scratch.exists()
    assert open_descriptors() == open_before
    assert (await run(place.bash("exit 6"))).exit_code == 6


def _at(root: Path, change: dict[str, Any]) -> dict[str, Any]:
    placed = dict(change)
    if "argv" in change:
        placed["argv"] = tuple(part.replace("{root}", str(root)) for part in change["argv"])
    if "cwd" in change:
        placed["cwd"] = change["cwd"].format(root=root)
    return placed


async def test_many_wait_for_one_program(launcher: Launcher, place: Any) -> None:
    running = await launcher.start(place.bash("exec sleep 1000"))
    endings = []

    async def wait() -> None:
        endings.append(await running.wait())

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        await running.kill()
    assert endings == [137] * 5
    await running.aclose()


async def test_programs_start_in_parallel(run: Run, place: Any) -> None:
    outputs: dict[int, str] = {}

    async def start(number: int) -> None:
        outputs[number] = (await run(place.bash(f"echo {number}"))).stdout

    async with anyio.create_task_group() as group:
        for number in range(60):
            group.start_soon(start, number)
    assert outputs == {number: f"{number}\n" for number in range(60)}


async def test_starts_leak_nothing(run: Run, launcher: Launcher, place: Any) -> None:
    await run(place.bash(":"))
    zygote = Path("/proc", str(launcher._zygotes[False].pid))

    def held() -> tuple[int, int]:
        # Nobody but root may look into the zygote.
        of_zygote = 0 if os.geteuid() else len(list((zygote / "fd").iterdir()))
        return open_descriptors(), of_zygote

    before = held()
    for _ in range(50):
        await run(place.bash(":", stdin=b"x", files=(b"y",)))
    # The zygote closes the socket of the last program when that program's supervisor has gone.
    assert before[0] == held()[0]
    assert held()[1] <= before[1] + 2


@pytest.mark.parametrize("steps", range(0, 30, 2))
async def test_a_start_that_is_cancelled_leaves_nothing(
    launcher: Launcher, place: Any, steps: int
) -> None:
    scratch = place.root / "scratch"
    scratch.mkdir()
    await (await launcher.start(place.bash(":"))).aclose()
    before = open_descriptors()
    prepared = place.bash("exec sleep 1000", scratch=str(scratch), stdin=b"x" * 2_000_000)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()

            group.start_soon(cancel)
            await launcher.start(prepared)
            await anyio.sleep_forever()
    await launcher.aclose()
    assert not place.survivors()
    assert not scratch.exists()
    assert open_descriptors() == before - 1  # the zygote's socket


def test_a_launcher_serves_one_event_loop_after_another(place: Any) -> None:
    launcher = Launcher()

    async def start() -> int:
        running = await launcher.start(place.bash("exit 4"))
        code = await running.wait()
        await running.aclose()
        return code

    assert [anyio.run(start) for _ in range(3)] == [4, 4, 4]
    anyio.run(launcher.aclose)


async def test_closing_the_launcher_ends_what_it_started(place: Any) -> None:
    launcher = Launcher()
    before = open_descriptors()
    started = [await launcher.start(place.bash("echo up; sleep 1000; true")) for _ in range(5)]
    for running in started:  # it is executed: its environment can be read
        await anyio.wait_readable(running.stdout)
    assert {running.pid for running in started} <= set(place.survivors())
    await launcher.aclose()
    assert not place.survivors()
    assert open_descriptors() == before
    assert [await running.wait() for running in started] == [137] * 5


def test_a_supervisor_whose_zygote_ended_before_it_began_takes_no_order() -> None:
    script = """
import os, socket
from tools.sandbox.processes.launching.supervisor import supervise
ours, orders = socket.socketpair()
news, _ = socket.socketpair()
ours.send(b"!")
supervise(orders, news, None, (), zygote=os.getpid(), scoped=False, reused=True)
print(orders.recv(1))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[5],
        timeout=60,
    )
    assert done.stdout == b"b'!'\n"


async def test_closing_the_launcher_while_programs_start_ends_them(place: Any) -> None:
    async def start(launcher: Launcher) -> None:
        with suppress(UnavailableError):
            await launcher.start(place.bash("sleep 1000; true"))

    for steps in range(20):
        launcher = Launcher()
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(start, launcher)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            await launcher.aclose()
        await launcher.aclose()
        assert not place.survivors()


async def test_a_zygote_that_is_killed_is_replaced(
    launcher: Launcher, run: Run, place: Any
) -> None:
    running = await launcher.start(place.bash("echo up; sleep 1000; true"))
    await anyio.wait_readable(running.stdout)
    for _ in range(5):
        os.kill(launcher._zygotes[False].pid, signal.SIGKILL)
        assert (await run(place.bash("exit 5"))).exit_code == 5
    assert running.pid in place.survivors()
    await running.aclose()


async def test_what_a_killed_supervisor_leaves_is_ended(launcher: Launcher, place: Any) -> None:
    script = "setsid sleep 1000 & setsid setsid sleep 1001 & echo up; wait"
    scratch = place.root / "scratch"
    scratch.mkdir()
    running = await launcher.start(place.bash(script, scratch=str(scratch)))
    await anyio.wait_readable(running.stdout)
    os.kill(_parent(running.pid), signal.SIGKILL)
    assert await running.wait() == 137
    assert not place.survivors()
    assert not scratch.exists()
    await running.aclose()


def _parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    return int(status.rpartition(")")[2].split()[1])


async def test_a_program_waits_for_input_that_does_not_come_not_at_all(
    run: Run, place: Any
) -> None:
    assert (await run(place.bash("read line"))).exit_code == 1


async def test_a_flood_of_output_does_not_keep_it_alive(launcher: Launcher, place: Any) -> None:
    running = await launcher.start(place.bash("setsid yes & yes >&2"))
    await anyio.wait_readable(running.stdout)
    await running.kill()
    assert not place.survivors()
    await running.aclose()


async def test_the_server_goes_on_while_a_program_starts(launcher: Launcher, place: Any) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        running = await launcher.start(place.bash(":", stdin=b"x" * 50_000_000))
        group.cancel_scope.cancel()
    assert beats > 50
    await running.aclose()


LIMITED = [
    (Limits(cpu_seconds=1), "while :; do :; done", 152),
    (Limits(file_bytes=1 << 20), "head -c 2M /dev/zero >big", 153),
    (Limits(), "ulimit -c; exit $(ulimit -c)", 0),
]


@pytest.mark.parametrize(("limits", "script", "code"), LIMITED)
@CONFINED
async def test_limits_hold(  # noqa: PLR0917, PLR0913  # a table
    run: Run, place: Any, limits: Limits, script: str, code: int, confined: bool
) -> None:
    outcome = await run(place.bash(script, limits=limits, confined=confined))
    assert outcome.exit_code == code, outcome
    if limits.file_bytes and os.geteuid():
        assert (await run(place.bash("ulimit -f unlimited", limits=limits))).exit_code != 0


FILLING = f"{sys.executable} -ISc 'import time; x = b\"x\" * (%d << 20); time.sleep(%d)'"
TOO_MUCH = {
    "one process": FILLING % (300, 1000),
    "many": "for i in 1 2 3 4 5 6; do " + FILLING % (40, 1000) + " & done; wait",
    "one that lost its parent": "(setsid " + FILLING % (300, 1000) + " &) ; sleep 1000",
    "one that keeps the filter busy": "(" + FILLING % (300, 1000) + " &) ; touch a; "
    "while :; do chmod 600 a; done",
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what others use")
@pytest.mark.parametrize("script", TOO_MUCH.values(), ids=TOO_MUCH)
@CONFINED
async def test_a_program_and_what_it_starts_may_use_so_much_memory_together(
    launcher: Launcher, place: Any, script: str, confined: bool
) -> None:
    limits = Limits(memory_bytes=200 << 20)
    running = await launcher.start(place.bash(script, limits=limits, confined=confined))
    assert await running.wait() == 137
    assert running.end_reason is EndReason.MEMORY
    await running.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what others use")
async def test_memory_that_processes_share_counts_once(launcher: Launcher, place: Any) -> None:
    script = (
        f'{sys.executable} -ISc \'import os, time; x = b"x" * (120 << 20); os.fork(); os.fork();'
        " time.sleep(1)'"
    )
    running = await launcher.start(place.bash(script, limits=Limits(memory_bytes=200 << 20)))
    assert (await running.wait(), running.end_reason) == (0, EndReason.NONE)
    await running.aclose()


async def test_a_limit_on_processes_leaves_room_for_some(run: Run, place: Any) -> None:
    script = "for i in $(seq 30); do sleep 1000 & done; echo all"
    assert (await run(place.bash(script, limits=Limits(processes=50)))).stdout == "all\n"


async def test_scratch_is_removed_whatever_is_in_it(run: Run, place: Any) -> None:
    scratch = place.root / "scratch"
    scratch.mkdir()
    (place.outside / "kept").touch()
    script = f"""
    cd {scratch}
    mkdir -p a/b/c; touch a/b/c/file; ln -s {place.outside} link; ln -s {place.outside} a/b/link
    mkfifo fifo; touch -- '-rf' $'new\nline' $'\xff'; chmod 000 a/b/c; chmod 000 a/b; chmod 000 a
    mkdir deep; cd deep
    for i in $(seq 400); do mkdir 0123456789; cd 0123456789; done
    chmod 000 {scratch}
    """
    assert (await run(place.bash(script, scratch=str(scratch)))).exit_code == 0
    assert not scratch.exists()
    assert (place.outside / "kept").exists()


async def test_scratch_that_became_a_link_is_not_followed(run: Run, place: Any) -> None:
    scratch = place.root / "scratch"
    scratch.mkdir()
    (place.outside / "kept").touch()
    script = f"rmdir {scratch}; ln -s {place.outside} {scratch}"
    await run(place.bash(script, scratch=str(scratch)))
    assert (place.outside / "kept").exists()


SERVER = """
import sys, anyio
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.models import Prepared
async def main():
    running = await Launcher().start(Prepared(
        argv=("/bin/bash", "-c", sys.argv[1]), cwd="/", environment={"MARKER": sys.argv[2]},
        scratch=sys.argv[3]))
    await anyio.wait_readable(running.stdout)
    print("up", flush=True)
    await anyio.sleep_forever()
anyio.run(main)
"""


def test_a_killed_server_leaves_nothing(place: Any) -> None:
    scratch = place.root / "scratch"
    scratch.mkdir()
    script = "setsid sleep 1000 & (setsid setsid sleep 1001 &) ; nohup sleep 1002 & echo up; wait"
    survivors, server = os.pipe()  # held open by all that is left of the server
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, script, place.marker, str(scratch)],
        cwd=Path(__file__).parents[5],
        stdout=subprocess.PIPE,
        stderr=server,
    ) as process:
        os.close(server)
        assert process.stdout is not None
        line, left = process.stdout.readline(), place.survivors()
        process.kill()
    assert line == b"up\n"
    assert len(left) > 1
    # The zygote and the supervisor have the server's standard error; the pipe ends with them.
    assert os.read(survivors, 1) == b""
    os.close(survivors)
    assert not place.survivors()
    assert not scratch.exists()


async def _printed(launcher: Launcher, script: str, *, fed: bytes = b"") -> str:
    readable, writable = os.pipe()
    prepared = Prepared(argv=("/bin/sh", "-c", script), cwd="/", environment={"PATH": os.defpath})
    running = await launcher.start(prepared, stdin=readable)
    os.close(readable)
    os.write(writable, fed)
    os.close(writable)
    try:
        assert await running.wait() == 0
        return os.read(running.stdout, 4_096).decode()
    finally:
        await running.aclose()
        await launcher.aclose()


async def test_a_program_reads_what_it_is_fed_while_it_runs() -> None:
    assert await _printed(Launcher(), "cat", fed=b"fed") == "fed"


@pytest.mark.skipif(sys.platform != "linux", reason="a bit of Linux")
@pytest.mark.parametrize(("privileged", "bit"), [(False, "1"), (True, "0")])
async def test_only_what_the_user_chose_may_gain_privileges(privileged: bool, bit: str) -> None:
    script = "grep NoNewPrivs /proc/self/status"
    assert (await _printed(Launcher(privileged=privileged), script)).split()[-1] == bit
