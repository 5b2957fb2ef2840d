"""System calls that Landlock does not restrict; the attempts succeed unconfined, as far as rights
go, or the kernel refuses them for another reason."""

import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.core.errors import UnavailableError
from tools.sandbox.processes.kernel.seccomp import filter_program, protecting, sealing
from tools.sandbox.processes.kernel.syscalls import LAST_KNOWN, NUMBERS
from tools.sandbox.processes.models import Prepared

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or os.uname().machine != "x86_64", reason="numbers of x86_64"
    ),
    pytest.mark.boundary,
]

Run = Callable[[Prepared], Awaitable[Any]]

PRELUDE = """
import ctypes, errno, mmap, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    given = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    answer = libc.syscall(ctypes.c_long(number), *given)
    if answer == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return answer
"""

POSSIBLE = {
    "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "TCP": "socket.socket(socket.AF_INET)",
    "IPv6": "socket.socket(socket.AF_INET6)",
    "Netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "Unix": "socket.socket(socket.AF_UNIX)",
    "datagrams": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "datagrams by another name": "socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW | 0o2000000)",
    "watching": "call(254, call(253), b'/', 0xFFF)",
    "processors of others": "os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0))",
    "lease": "import fcntl; fcntl.fcntl(os.open('l', os.O_CREAT), 1024, 0)",
    "io_uring": "call(425, 8, bytes(120))",
    "user namespace": "call(272, 0x10000000)",
    "user namespace by clone": "call(56, 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0)",
    "trace": "import signal; pid = os.fork() or signal.pause(); call(101, 16, pid, 0, 0)",
    "read memory": "b = ctypes.create_string_buffer(8);"
    "v = struct.pack('QQ', ctypes.addressof(b), 8);"
    "call(310, os.getpid(), v, 1, v, 1, 0)",
    "shared memory": "call(29, 0, 4096, 0o1600)",
    "semaphores": "call(64, 0, 1, 0o1600)",
    "messages": "call(68, 0, 0o1600)",
    "message queue": "call(240, b'toolcrib', 0o102, 0o600, 0); call(241, b'toolcrib')",
    "key": "call(248, b'user', b'toolcrib', b'x', 1, -2)",
    "keyring": "call(250, 0, -3, 0)",
    "personality": "call(135, 0x40000)",
    "priority of others": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 0)",
    "limits of others": "import resource; resource.prlimit(os.getppid(), 7, (900, 1000))",
    "signals for others": "import fcntl; fcntl.fcntl(0, 8, os.getppid())",
    "perf": "call(298, struct.pack('IIQ', 1, 128, 0) + bytes(112), 0, -1, -1, 0)",
    "pidfd": "os.pidfd_open(os.getppid())",
    "second listener": "p = struct.pack('HBBI', 6, 0, 0, 0x7FFF0000);"
    "b = ctypes.create_string_buffer(p); call(317, 1, 8, struct.pack('H6xQ', 1,"
    " ctypes.addressof(b)))",
    "set-user-ID": "open('f', 'w'); os.chmod('f', 0o4755)",
    "set-group-ID": "os.fchmod(os.open('f', os.O_CREAT), 0o2755)",
    "set-user-ID at creation": "os.open('new', os.O_CREAT, 0o4755)",
    "set-user-ID unnamed": "os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755)",
    "set-user-ID of a node": "os.mknod('node', 0o104755)",
    "by a structure": "call(437, -100, b'new2', struct.pack('QQQ', 0o101, 0o4755, 0), 24)",
}
"""Python that raises when it is refused, by what it does."""

HARDLY = ("key", "keyring", "perf", "user namespace", "user namespace by clone", "io_uring")
"""What many machines refuse to all programs."""


@pytest.mark.parametrize("name", POSSIBLE)
async def test_a_filtered_program_is_refused(run: Run, place: Any, name: str) -> None:
    script = PRELUDE + POSSIBLE[name]
    outcome = await run(place.python(script, confined=True, stdin=b""))
    assert outcome.exit_code == 1, outcome
    assert "[Errno 1]" in outcome.stderr or "[Errno 38]" in outcome.stderr, outcome
    naive = await run(place.python(script))
    if not (name in HARDLY and "[Errno" in naive.stderr) and "others" not in name:
        assert naive.exit_code == 0, naive


@pytest.mark.parametrize("path", ["path", "abstract"])
async def test_other_programs_sockets_are_out_of_reach(run: Run, place: Any, path: str) -> None:
    name = str(place.root / "socket") if path == "path" else "\0" + place.marker
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        script = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
        assert (await run(place.python(script))).exit_code == 0
        outcome = await run(place.python(script, confined=True))
    assert "PermissionError" in outcome.stderr


@pytest.mark.parametrize("confined", [False, True], ids=["unconfined", "confined"])
async def test_memory_that_others_share_is_out_of_reach(
    run: Run, place: Any, confined: bool
) -> None:
    made = await anyio.run_process(["/usr/bin/ipcmk", "-M", "4096"])
    number = int(made.stdout.split()[-1])
    try:
        script = PRELUDE + f"call(30, {number}, 0, 0)"
        outcome = await run(place.python(script, confined=confined))
    finally:
        await anyio.run_process(["/usr/bin/ipcrm", "-m", str(number)])
    assert outcome.exit_code == confined, outcome


async def test_programs_that_start_others_work(run: Run, place: Any) -> None:
    script = """
import asyncio, concurrent.futures, multiprocessing, os, socket, subprocess, threading
assert subprocess.run(["echo", "x"], capture_output=True).stdout == b"x\\n"
async def main():
    process = await asyncio.create_subprocess_exec("echo", "y", stdout=subprocess.PIPE)
    return (await process.communicate())[0]
assert asyncio.run(main()) == b"y\\n"
def square(number): return number * number
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(square, range(3)) == [0, 1, 4]
thread = threading.Thread(target=print, args=("thread",))
thread.start(); thread.join()
one, two = socket.socketpair()
os.kill(os.fork() or (signal := __import__("signal")).pause(), 9)
print(os.WTERMSIG(os.wait()[1]))
"""
    shared = ("/dev/shm",)  # noqa: S108  # where multiprocessing keeps its semaphores
    rules = replace(place.rules, writable=place.rules.writable + shared)
    outcome = await run(place.python(script, landlock=rules))
    assert outcome.stdout == "thread\n9\n", outcome


async def test_git_works(run: Run, place: Any) -> None:
    script = """set -e; export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
    git init -q x; cd x; git config user.name n; git config user.email e@example.org
    echo a >a; git add a; git commit -qm one; git gc -q; git checkout -qb two; git log --oneline"""
    outcome = await run(place.bash(script, confined=True))
    assert outcome.exit_code == 0, outcome


# What a filter decides, without a kernel: an interpreter of the few instructions there are.

ALLOW, ASK, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x7FC00000, 0x80000000, 0x50001, 0x50026
EINVAL = 0x50016
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
WORD = 0xFFFFFFFF


def decide(program: bytes, number: int, *arguments: int, machine: int = 0xC000003E) -> int:
    given = [value & (2**64 - 1) for value in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("=IIQ6Q", number & WORD, machine, 0, *given)
    code = list(struct.iter_unpack("=HBBI", program))
    position = accumulator = 0
    while True:
        instruction, true, false, operand = code[position]
        position += 1
        if instruction == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, operand)
        elif instruction == 0x54:
            accumulator &= operand
        elif instruction == 0x05:
            position += operand
        elif instruction == 0x06:
            return int(operand)
        else:
            holds = {
                0x15: accumulator == operand,
                0x25: accumulator > operand,
                0x35: accumulator >= operand,
                0x45: bool(accumulator & operand),
            }[instruction]
            position += true if holds else false


@pytest.fixture(params=[True, False], ids=["landlocked", "namespaced"])
def program(request: pytest.FixtureRequest) -> bytes:
    return filter_program(landlocked=request.param)


X86 = NUMBERS["x86_64"]
DECISIONS = [
    (0, (), ALLOW),  # read
    (59, (), ALLOW),  # execve
    (LAST_KNOWN + 1, (), ENOSYS),
    (0x40000000, (), ENOSYS),  # x32
    (0x40000000 + X86["ptrace"], (), ENOSYS),
    (WORD, (), ENOSYS),
    (X86["ptrace"], (), EPERM),
    (X86["clone3"], (), ENOSYS),
    (X86["clone"], (17,), ALLOW),
    (X86["clone"], (0x20000 | 17,), EPERM),
    (X86["unshare"], (0x200,), ALLOW),
    (X86["unshare"], (0x80,), EPERM),
    (X86["ioctl"], (0, 0x5401), ALLOW),
    (X86["ioctl"], (0, 0x5412), EPERM),
    (X86["ioctl"], (0, 0x7700005412), EPERM),  # the kernel looks at 32 bits
    (X86["ioctl"], (0, 0x5000940E), EPERM),  # makes a subvolume of btrfs
    (X86["ioctl"], (0, 0x40049409), ALLOW),  # FICLONE
    (X86["personality"], (WORD,), ALLOW),
    (X86["personality"], (0,), ALLOW),
    (X86["personality"], (8,), EPERM),
    (X86["prlimit64"], (0, 7, 5), ALLOW),
    (X86["prlimit64"], (5, 7, 0), ALLOW),
    (X86["prlimit64"], (5, 7, 1 << 40), EPERM),
    (X86["setpriority"], (0, 0), ALLOW),
    (X86["setpriority"], (2, 0), EPERM),
    (X86["openat"], (0, 0, 0o101, 0o644), ALLOW),
    (X86["openat"], (0, 0, 0o101, 0o4644), EPERM),
    (X86["openat"], (0, 0, 0, 0o4644), ALLOW),  # the mode means nothing
    (X86["socket"], (40,), EPERM),  # AF_VSOCK
    (X86["socket"], (17,), EPERM),  # AF_PACKET
    (X86["socket"], (16, 3, 0), ALLOW),  # NETLINK_ROUTE
    (X86["socket"], (16, 3, 15), EPERM),  # NETLINK_KOBJECT_UEVENT
    (X86["socket"], (16, 3, 16), EPERM),  # NETLINK_GENERIC
    (X86["socketpair"], (1, 1), ALLOW),
    (X86["socketpair"], (1, 0o2004005), ALLOW),  # SOCK_SEQPACKET, with both flags
    (X86["socketpair"], (1, 2), EPERM),  # SOCK_DGRAM
    (X86["socketpair"], (1, 3), EPERM),  # SOCK_RAW, which is the same
    (X86["socketpair"], (2, 1), EPERM),
]


@pytest.mark.parametrize(("number", "arguments", "decision"), DECISIONS)
def test_a_filter_decides(
    program: bytes, number: int, arguments: tuple[int, ...], decision: int
) -> None:
    assert decide(program, number, *arguments) == decision


@pytest.mark.parametrize("machine", [0x40000003, 0x40000028, ARCHITECTURES["aarch64"]])
def test_calls_of_other_architectures_end_the_program(program: bytes, machine: int) -> None:
    assert decide(program, 20, machine=machine) == KILL


def test_only_beside_landlock_is_asked() -> None:
    beside, within = (filter_program(landlocked=landlocked) for landlocked in (True, False))
    assert decide(beside, X86["chmod"], 0, 0o755) == ASK
    assert decide(within, X86["chmod"], 0, 0o755) == ALLOW
    assert decide(within, X86["shmget"]) == ALLOW


def test_beside_landlock_sockets_need_a_network_and_never_a_path() -> None:
    beside, within = (filter_program(landlocked=landlocked) for landlocked in (True, False))
    assert decide(within, X86["socket"], socket.AF_UNIX) == ALLOW
    assert decide(beside, X86["socket"], socket.AF_UNIX) == EPERM
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
        assert decide(beside, X86["socket"], family) == ALLOW
        assert decide(sealing(networked=True), X86["socket"], family) == ALLOW
        assert decide(sealing(networked=False), X86["socket"], family) == EPERM


@pytest.mark.parametrize("networked", [False, True])
def test_a_sealed_program_joins_no_namespace(networked: bool) -> None:
    assert decide(sealing(networked=networked), X86["setns"], 3, 0) == EPERM
    assert decide(sealing(networked=networked), 0) == ALLOW
    assert decide(filter_program(landlocked=False), X86["setns"], 3, 0) == EPERM


def test_another_machine_has_numbers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    described = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*described[:4], "aarch64")))
    program = filter_program(landlocked=True)
    arm = ARCHITECTURES["aarch64"]
    assert decide(program, 117, machine=arm) == EPERM  # ptrace
    assert decide(program, 101, machine=arm) == ALLOW  # nanosleep; ptrace of x86_64
    assert decide(program, 117) == KILL


def test_a_machine_without_a_table_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    described = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*described[:4], "riscv64")))
    with pytest.raises(UnavailableError, match="riscv64"):
        filter_program(landlocked=False)


@given(number=st.integers(0, WORD), arguments=st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_every_call_is_decided(number: int, arguments: list[int]) -> None:
    program = protecting(filter_program(landlocked=True), (4711,))
    assert decide(program, number, *arguments) in {ALLOW, ASK, EPERM, EINVAL, ENOSYS, 0x5005F}


@pytest.mark.parametrize("name", ["kill", "tkill", "tgkill", "pidfd_open", "rt_sigqueueinfo"])
def test_signals_to_protected_processes_are_refused(name: str) -> None:
    program = protecting(filter_program(landlocked=True), (4711, 4712))
    for target in (4711, 4712, -4711, -1, 4711 + (1 << 32)):
        assert decide(program, X86[name], target, 9) == EPERM
    for target in (4713, 0, 1, -2):
        assert decide(program, X86[name], target, 9) == ALLOW
    assert decide(program, 0, 4711) == ALLOW
