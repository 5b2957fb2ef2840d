"""What programs use up: processes, threads and the kernel's memory, at each level, also of root.

Every attack is bounded by itself too, so that the machine survives a limit that does not hold.
"""

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tools.sandbox.processes.conftest import use_only
from tools.sandbox.processes.models import Level

pytestmark = [
    pytest.mark.slow,
    pytest.mark.boundary,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what programs use"),
]

BOMB = """
import mmap, os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
count = mmap.mmap(-1, 1 << 16)  # a byte of each process: no lock, and no more than these
while count.find(b"\\0", 0, {most}) >= 0:
    count[count.find(b"\\0", 0, {most})] = 1
    try:
        if os.fork() == 0:
            {then}
    except OSError:
        pass
while True:
    pass
"""
THREADS = """
import threading, time
for _ in range(1500):
    threading.Thread(target=time.sleep, args=(1000,)).start()
time.sleep(1000)
"""
MANY = {
    "fork bomb": BOMB.format(most=1500, then="pass"),
    "fork bomb of sessions": BOMB.format(most=1500, then="os.setsid()"),
    "threads": THREADS,
}

PAIRS = """
import array, os, resource, socket, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
def pair():
    ends = socket.socketpair()
    for each in ends:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
        each.setblocking(False)
        try:
            while True:
                each.send(bytes(4096))
        except BlockingIOError:
            pass
    return ends
def file(size=1 << 28):
    fd = os.memfd_create("x")
    for _ in range(size >> 20):
        os.write(fd, bytes(1 << 20))
    return fd
"""
HELD = {
    "sockets": PAIRS + "kept = [pair() for _ in range(1500)]",
    "sockets of several": PAIRS
    + "for _ in range(5):\n if os.fork() == 0: break\nkept = [pair() for _ in range(300)]",
    "sockets whose sender has closed": PAIRS + "kept = [pair()[0] for _ in range(3000)]",
    "sockets on their way in others": PAIRS
    + """
carrier = ()
for _ in range(700):
    ends = [*pair(), *carrier]
    carrier = socket.socketpair()
    rights = array.array("i", [each.fileno() for each in ends])
    carrier[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
del ends
""",
    "files in memory": PAIRS + "kept = file(), file(), file()",
    "shared memory that is not mapped": """
import mmap, time
kept = mmap.mmap(-1, 700 << 20)
for at in range(0, 700 << 20, 4096):
    kept[at] = 1
    if at % (50 << 20) == 0:
        kept.madvise(mmap.MADV_DONTNEED)
kept.madvise(mmap.MADV_DONTNEED)
""",
    "pipes": """
import os, resource, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
for _ in range(60):
    if os.fork() == 0:
        break
kept = []
for _ in range(2000):
    kept.append(os.pipe())
    os.set_blocking(kept[-1][1], False)
    try:
        os.write(kept[-1][1], bytes(8192))
    except BlockingIOError:
        pass
""",
}


@pytest.fixture(params=[Level.BUBBLEWRAP, Level.LANDLOCK])
async def limited(
    anyio_backend: str, request: pytest.FixtureRequest, open_crib: Callable[..., Any]
) -> AsyncIterator[Any]:
    """A client that may run everything, in little memory and with few processes."""
    allow = ("scope:system",)
    async with open_crib(policy__allow=allow, system__memory_mb=400, system__processes=200) as crib:
        use_only(crib.app.machine.processes, request.param)
        yield crib


def written(crib: Any, code: str) -> None:
    Path(crib.root, "attack.py").write_text(code)


async def run(crib: Any, code: str, *, seconds: float = 30) -> Any:
    written(crib, f"{code}\nimport time; time.sleep({seconds}); print('there')")
    return await crib.call("bash", command=f'exec {sys.executable} -ISc "$(cat attack.py)"')


@pytest.mark.parametrize("code", MANY.values(), ids=MANY)
async def test_a_program_that_multiplies_is_ended(limited: Any, code: str) -> None:
    found = await run(limited, code)
    assert "more than 200 processes and threads (system.processes)" in str(found), found


@pytest.mark.parametrize("code", HELD.values(), ids=HELD)
async def test_the_kernels_memory_counts_for_those_who_hold_it(limited: Any, code: str) -> None:
    found = await run(limited, code)
    assert "more than 400 MB of memory (system.memory_mb)" in str(found), found


async def test_programs_that_use_little_of_everything_run(limited: Any) -> None:
    code = PAIRS + "\nkept = [socket.socketpair() for _ in range(200)], file(1 << 26), os.pipe()"
    found = await run(limited, code, seconds=0.5)
    assert found["stdout"] == "there\n", found


async def test_no_process_of_a_program_has_more_descriptors(limited: Any) -> None:
    found = await limited.call("bash", command="ulimit -Hn; ulimit -n 5000")
    assert found["stdout"] == "4096\n"
