"""Programs that try to outlive their end; each outlives a plain process group's."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.models import Prepared

pytestmark = [
    pytest.mark.slow,
    pytest.mark.boundary,
    pytest.mark.skipif(sys.platform != "linux", reason="needs a child subreaper"),
]

STAY = "echo up; exec sleep 1000"
PYTHON = f"{Path(sys.executable).resolve()} -ISc"
ESCAPES = {
    "setsid": f"setsid sh -c '{STAY}' & wait",
    "double fork": f"(setsid sh -c '{STAY}' &) ; sleep 1000",
    "nohup": f"setsid nohup sh -c '{STAY}' & wait",
    "disown": f"set -m; sh -c '{STAY}' & disown; sleep 1000",
    "job control": f"set -m; (sh -c '{STAY}' &) ; sleep 1000",
    "coprocess": f"setsid bash -c 'coproc cat; {STAY}' & wait",
    "ignores signals": f"""setsid sh -c 'trap "" TERM INT HUP QUIT PIPE; {STAY}' & wait""",
    "stopped": "setsid sh -c 'echo up; kill -STOP $$; sleep 1000' & wait",
    "stops its parent": f"setsid sh -c 'kill -STOP $PPID; {STAY}' & wait",
    "deep": "f() { if [ $1 = 0 ]; then echo up; sleep 1000; else setsid bash -c"
    ' "$(declare -f f); f $(($1-1))"; fi; }; f 20',
    "forks for ever": f"""{PYTHON} '
import os
if os.fork() == 0:
    os.setsid()
    print("up", flush=True)
    while True:
        if os.fork():
            os._exit(0)
os.wait()
import time; time.sleep(1000)'""",
    "many": f"""{PYTHON} '
import os, time
for _ in range(6):
    if os.fork() == 0:
        os.setsid()
print("up", flush=True)
time.sleep(1000)'""",
}
"""Scripts that print a line once somebody is there who stays; by what they do."""


GROUP = """
import os, signal, subprocess, sys
sys.path.append(sys.argv[1])
from tools.sandbox.processes.kernel.process import become_subreaper
from tools.sandbox.processes.launching.supervisor import end_descendants
become_subreaper()
process = subprocess.Popen(
    ["/bin/bash", "-c", sys.argv[2]], stdout=subprocess.PIPE, start_new_session=True)
process.stdout.readline()
os.killpg(process.pid, signal.SIGKILL)  # what a plain server does
process.wait()
left = []
end_descendants(lambda pid, status: left.append(os.waitstatus_to_exitcode(status)), scoped=False)
sys.exit(0 if -signal.SIGKILL in left else "nobody survived")
"""


@pytest.mark.parametrize("script", ESCAPES.values(), ids=ESCAPES)
def test_the_end_of_a_process_group_is_survived(script: str) -> None:
    root = Path(__file__).parents[5]
    subprocess.run([sys.executable, "-ISc", GROUP, str(root), script], check=True, timeout=60)


@pytest.mark.parametrize("script", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("confined", [False, True], ids=["unconfined", "confined"])
async def test_nothing_survives_that_it_is_killed(
    launcher: Launcher, place: Any, script: str, confined: bool
) -> None:
    running = await launcher.start(place.bash(script, confined=confined))
    with anyio.fail_after(30):
        await anyio.wait_readable(running.stdout)
        await running.kill()
    assert not place.survivors()
    await running.aclose()


@pytest.mark.parametrize("script", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("confined", [False, True], ids=["unconfined", "confined"])
async def test_nothing_survives_the_programs_own_end(
    launcher: Launcher, place: Any, script: str, confined: bool
) -> None:
    # The program itself ends as soon as somebody is there who would stay.
    ends = f"read line < <({script}); exit 9"
    running = await launcher.start(place.bash(ends, confined=confined))
    with anyio.fail_after(30):
        assert await running.wait() == 9
    assert not place.survivors()
    await running.aclose()


REAPER = """
import os, sys
sys.path.append(sys.argv[1])
from tools.sandbox.processes.kernel.process import become_subreaper
from tools.sandbox.processes.launching.supervisor import end_descendants
become_subreaper()
ready, up = os.pipe()
pid = os.fork()
if not pid:
    os.dup2(up, 1)
    os.execve("/bin/bash", ["bash", "-c", sys.argv[2]], {**os.environ, "MARKER": sys.argv[3]})
os.close(up)
os.read(ready, 1)
end_descendants(lambda *_: None, scoped=False)
"""


@pytest.mark.parametrize("script", ESCAPES.values(), ids=ESCAPES)
def test_nothing_survives_on_a_kernel_that_does_not_scope_signals(place: Any, script: str) -> None:
    root = Path(__file__).parents[5]
    argv = [sys.executable, "-ISc", REAPER, str(root), script, place.marker]
    subprocess.run(argv, check=True, timeout=60)
    assert not place.survivors()


ATTACKS_ON_THE_SUPERVISOR = {
    "kill": "kill -9 $PPID",
    "group": "kill -9 -$PPID",
    "stop": "kill -STOP $PPID",
    "everybody": "sh -c 'kill -9 -1'",
    "server": "kill -9 $SERVER",
    "group of the server": "kill -9 -$SERVER_GROUP",
    "limit of the server": "prlimit --pid $SERVER --cpu=0",
    "limit of the supervisor": "prlimit --pid $PPID --nofile=0",
    "memory": "exec 3<>/proc/$PPID/mem",
    "memory of the server": "exec 3</proc/$SERVER/mem",
    "environment of the server": "cat /proc/$SERVER/environ",
    "descriptors of the server": "readlink /proc/$SERVER/fd/0",
    "priority of the server": "renice -n 19 -p $SERVER",
}


@pytest.mark.parametrize(
    "script", ATTACKS_ON_THE_SUPERVISOR.values(), ids=ATTACKS_ON_THE_SUPERVISOR
)
async def test_a_confined_program_does_nothing_to_those_above_it(
    run: Callable[[Prepared], Awaitable[Any]], place: Any, script: str
) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "SERVER": str(os.getpid()),
        "SERVER_GROUP": str(os.getpgrp()),
        "SECRET": place.marker,
    }
    outcome = await run(
        place.bash(
            f"{script}; code=$?; echo alive; exit $code", confined=True, environment=environment
        )
    )
    assert outcome.stdout == "alive\n", outcome
    assert outcome.exit_code, outcome
