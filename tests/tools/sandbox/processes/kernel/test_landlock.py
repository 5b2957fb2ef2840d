"""What a confined program tries to do outside; each attempt succeeds unconfined."""

import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tools.sandbox.processes.kernel.landlock import landlock_abi
from tools.sandbox.processes.models import LandlockRules, Prepared

pytestmark = [
    pytest.mark.slow,
    pytest.mark.boundary,
    pytest.mark.skipif(sys.platform != "linux" or not landlock_abi(), reason="needs Landlock"),
]

Run = Callable[[Prepared], Awaitable[Any]]
ROOT = Path(__file__).parents[5]

PRELUDE = """
import ctypes, fcntl, os, struct
OUT, SEEN, ROOT = {outside!r}, {readable!r}, {root!r}
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    given = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    if libc.syscall(ctypes.c_long(number), *given) < 0:
        raise OSError(ctypes.get_errno(), "refused")
"""

OUTSIDE = {
    "read": "open(OUT + '/file').read()",
    "list": "os.listdir(OUT)",
    "create": "open(OUT + '/new', 'w')",
    "create without following": "os.open(OUT + '/new', os.O_CREAT | os.O_EXCL | os.O_WRONLY)",
    "unnamed file": "os.open(OUT, os.O_TMPFILE | os.O_WRONLY)",
    "append": "open(OUT + '/file', 'a').write('x')",
    "truncate": "os.truncate(OUT + '/file', 0)",
    "truncate at opening": "os.open(SEEN + '/file', os.O_TRUNC)",
    "move in": "os.rename(ROOT + '/file', OUT + '/new')",
    "move out": "os.rename(OUT + '/file', ROOT + '/new')",
    "move within": "os.rename(OUT + '/file', OUT + '/new')",
    "replace": "os.replace(ROOT + '/file', OUT + '/file')",
    "link in": "os.link(ROOT + '/file', OUT + '/new')",
    "link out": "os.link(OUT + '/file', ROOT + '/new')",
    "link out of what is readable": "os.link(SEEN + '/file', ROOT + '/new')",
    "unlink": "os.unlink(OUT + '/file')",
    "remove a directory": "os.rmdir(OUT + '/folder')",
    "make a directory": "os.mkdir(OUT + '/new')",
    "make a link": "os.symlink('x', OUT + '/new')",
    "make a pipe": "os.mkfifo(OUT + '/new')",
    "through a link": "l = f'{ROOT}/{os.getpid()}'; os.symlink(OUT, l); open(l + '/new', 'w')",
    "through a parent": "open(ROOT + '/../outside/new', 'w')",
    "from a directory that was entered": "os.chdir(OUT); open('new', 'w')",
    "write what is readable": "open(SEEN + '/file', 'a').write('x')",
    "execute": "os.execv(OUT + '/program', ['program'])",
    "its own name again": "open(SEEN + '/../outside/file').read()",
    "rights": "os.chmod(OUT + '/file', 0o777)",
    "rights of what is readable": "os.chmod(SEEN + '/file', 0o777)",
    "rights through a link": "l = f'{ROOT}/{os.getpid()}'; os.symlink(OUT + '/file', l);"
    " os.chmod(l, 0o777)",
    "rights by descriptor": "os.fchmod(os.open(SEEN + '/file', os.O_RDONLY), 0o777)",
    "rights by a directory's descriptor": "os.chmod('file', 0o777, dir_fd=os.open(SEEN, 0))",
    "rights by a path descriptor": "fd = os.open(OUT + '/file', os.O_PATH);"
    " os.chmod(f'/proc/self/fd/{fd}', 0o777)",
    "rights by an empty path": "fd = os.open(OUT + '/file', os.O_PATH);"
    " call(452, fd, b'', 0o777, 0x1000)",
    "rights by another's descriptor": "fd = os.open(OUT + '/file', os.O_PATH);"
    " os.chmod(f'/proc/{os.getpid()}/fd/{fd}', 0o777)",
    "rights by the thread's descriptor": "fd = os.open(OUT + '/file', os.O_PATH);"
    " os.chmod(f'/proc/thread-self/fd/{fd}', 0o777)",
    "rights from the working directory": "os.chdir(OUT); os.chmod('file', 0o777)",
    "owner": "os.chown(OUT + '/file', os.getuid(), os.getgid())",
    "owner of a link": "os.lchown(OUT + '/link', os.getuid(), os.getgid())",
    "owner by descriptor": "os.fchown(os.open(SEEN + '/file', 0), os.getuid(), os.getgid())",
    "times": "os.utime(OUT + '/file', (1, 1))",
    "times of a link": "os.utime(OUT + '/link', (1, 1), follow_symlinks=False)",
    "times by descriptor": "os.utime(os.open(SEEN + '/file', os.O_RDONLY), (1, 1))",
    "times by an empty path": "fd = os.open(OUT + '/file', os.O_PATH);"
    " call(280, fd, b'', struct.pack('4q', 1, 0, 1, 0), 0x1000)",
    "attributes": "os.setxattr(OUT + '/file', 'user.x', b'y')",
    "attributes by descriptor": "os.setxattr(os.open(SEEN + '/file', 0), 'user.x', b'y')",
    "attributes removed": "os.removexattr(OUT + '/file', 'user.set')",
    "flags": "fd = os.open(SEEN + '/file', 0); "
    "(flags,) = struct.unpack('l', fcntl.ioctl(fd, 0x80086601, bytes(8))); "
    "fcntl.ioctl(fd, 0x40086602, struct.pack('l', flags | 0x80))",
}
"""Python that raises when it is refused, by what it does."""


@pytest.fixture
def surroundings(place: Any) -> Any:
    for folder in (place.outside, place.readable, place.root):
        (folder / "file").write_text("content")
        (folder / "link").symlink_to("file")
        (folder / "folder").mkdir()
        (folder / "program").write_text("#!/bin/sh\n")
        (folder / "program").chmod(0o755)
    os.setxattr(place.outside / "file", "user.set", b"x")
    place.files = [place.outside, place.readable]
    return place


def state(place: Any) -> list[object]:
    """All of what is outside that an attack could change."""
    found: list[object] = []
    for folder in (place.outside, place.readable):
        for path in (folder, *sorted(folder.iterdir())):
            status = path.lstat()
            names = (status.st_ino, status.st_mode, status.st_nlink, status.st_uid, status.st_gid)
            found += [path, names, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    return found


def attack(place: Any, script: str, *, confined: bool) -> Prepared:
    places = {"outside": place.outside, "readable": place.readable, "root": place.root}
    named = PRELUDE.format(**{name: str(path) for name, path in places.items()})
    prepared: Prepared = place.python(named + script, confined=confined)
    return prepared


@pytest.mark.parametrize("script", OUTSIDE.values(), ids=OUTSIDE)
async def test_nothing_outside_is_touched(run: Run, surroundings: Any, script: str) -> None:
    before = state(surroundings)
    outcome = await run(attack(surroundings, script, confined=True))
    assert outcome.exit_code == 1, outcome
    assert any(f"[Errno {code}]" in outcome.stderr for code in (1, 2, 13, 18, 40, 95)), outcome
    assert state(surroundings) == before
    naive = await run(attack(surroundings, script, confined=False))
    assert naive.exit_code == 0, naive


INSIDE = {
    "rights": "os.chmod('file', 0o751); assert os.stat('file').st_mode & 0o777 == 0o751",
    "rights by path": "os.chmod(ROOT + '/file', 0o751)",
    "rights by descriptor": "fd = os.open('file', 0); os.fchmod(fd, 0o640)\n"
    "assert os.fstat(fd).st_mode & 0o777 == 0o640",
    "rights by a directory": "os.chmod('file', 0o700, dir_fd=os.open(ROOT, os.O_PATH))",
    "rights by its own name": "fd = os.open('file', 0); os.chmod(f'/proc/self/fd/{fd}', 0o600)",
    "rights by an empty path": "call(452, os.open('file', os.O_PATH), b'', 0o604, 0x1000)\n"
    "assert os.stat('file').st_mode & 0o777 == 0o604",
    "rights through a link": "os.chmod('link', 0o711); assert os.stat('file').st_mode & 0o111",
    "rights of a directory": "os.chmod('folder', 0o1755); os.chmod('.', 0o755)",
    "owner": "os.chown('file', os.getuid(), os.getgid()); os.chown('file', -1, -1)",
    "owner by descriptor": "os.fchown(os.open('file', 0), os.getuid(), os.getgid())",
    "owner of a link": "os.lchown('link', os.getuid(), os.getgid())",
    "times": "os.utime('file', ns=(1, 2)); s = os.stat('file')\n"
    "assert (s.st_atime_ns, s.st_mtime_ns) == (1, 2)",
    "times of now": "os.utime('file', (1, 1)); os.utime('file')\n"
    "assert os.stat('file').st_mtime > 1000",
    "times of a link": "os.utime('link', ns=(3, 4), follow_symlinks=False)\n"
    "assert os.lstat('link').st_mtime_ns == 4 != os.stat('file').st_mtime_ns",
    "times by descriptor": "os.utime(os.open('file', 0), ns=(5, 6))\n"
    "assert os.stat('file').st_mtime_ns == 6",
    "errors": """
import errno
def refused(code, function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        assert error.errno == code, error
    else:
        raise AssertionError(function)
refused(errno.ENOENT, os.chmod, 'none', 0o700)
refused(errno.ENOTDIR, os.chmod, 'file/x', 0o700)
refused(errno.ENAMETOOLONG, os.chmod, 'x' * 5000, 0o700)
refused(errno.EBADF, os.fchmod, 99, 0o700)
refused(errno.EINVAL, call, 452, -100, b'file', 0o700, 0x4000)
refused(errno.EFAULT, call, 452, -100, 8, 0o700, 0)
refused(errno.EFAULT, call, 452, -100, 0, 0o700, 0)
refused(errno.EPERM, os.chmod, 'file', 0o4755)
refused(errno.EPERM, os.chmod, '/dev/null', 0o700)
refused(errno.ELOOP, os.chmod, '/proc/self/exe', 0o700)
""",
}


@pytest.mark.parametrize("script", INSIDE.values(), ids=INSIDE)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86_64")
async def test_the_root_is_as_if_unconfined(run: Run, surroundings: Any, script: str) -> None:
    outcome = await run(attack(surroundings, script, confined=True))
    assert outcome.exit_code == 0, outcome


async def test_everyday_programs_work_in_the_root(run: Run, place: Any) -> None:
    script = """set -ex
    printf '#!/bin/sh\\necho built\\n' >build.sh; chmod +x build.sh; ./build.sh
    touch -d 2001-02-03 build.sh; cp -p build.sh copy.sh; cp -a build.sh other.sh
    install -m 640 build.sh installed; mkdir -p a/b; mv copy.sh a/b/; ln other.sh hard
    tar cf x.tar a; rm -r a; tar xf x.tar; test a/b/copy.sh -nt x.tar && exit 3
    test "$(stat -c %a a/b/copy.sh installed | tr '\\n' ' ')" = "755 640 "
    sed -i s/built/again/ build.sh; ./build.sh; seq 3 | sort -r | head -1 >/dev/null
    """
    outcome = await run(place.bash(script, confined=True))
    assert outcome.exit_code == 0, outcome
    assert outcome.stdout == "built\nagain\n"


async def test_rights_are_changed_in_many_threads_at_once(run: Run, place: Any) -> None:
    script = """
import os, threading
def work(number):
    for turn in range(50):
        name = f"{number}-{turn}"
        open(name, "w").close()
        os.chmod(name, 0o700 + turn % 8)
        assert os.stat(name).st_mode & 0o7 == turn % 8
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(os.listdir(".")))
"""
    outcome = await run(place.python(script, confined=True))
    assert outcome.stdout == "400\n", outcome


async def test_a_link_swapped_during_the_call_changes_nothing_outside(run: Run, place: Any) -> None:
    victim = place.outside / "file"
    victim.write_text("")
    victim.chmod(0o600)
    script = f"""
import os
open("good", "w").close()
os.symlink("good", "link")
if os.fork() == 0:
    for turn in range(3000):
        os.symlink({str(victim)!r} if turn % 2 else "good", "next")
        os.rename("next", "link")
    os._exit(0)
done = refused = 0
while os.waitpid(-1, os.WNOHANG)[0] == 0:
    try:
        os.chmod("link", 0o777)
        done += 1
    except PermissionError:
        refused += 1
print(done > 0, refused > 0)
"""
    assert (await run(place.python(script, confined=True))).stdout == "True True\n"
    assert victim.stat().st_mode & 0o777 == 0o600


async def test_a_read_only_root_cannot_be_changed(run: Run, place: Any) -> None:
    (place.root / "file").write_text("content")
    rules = LandlockRules(readable=(*place.rules.readable, *place.rules.writable), writable=())
    prepared = place.bash("cat file; echo x >file; chmod 777 file; touch file", landlock=rules)
    outcome = await run(prepared)
    assert outcome.stdout == "content"
    assert outcome.exit_code == 1
    assert (place.root / "file").read_text() == "content"


async def test_devices_that_everybody_needs_are_there(run: Run, place: Any) -> None:
    script = "head -c 2 /dev/zero /dev/urandom /dev/random >/dev/null; cat </dev/null; cat /dev/tty"
    outcome = await run(place.bash(script, confined=True))
    assert outcome.stderr == "cat: /dev/tty: Permission denied\n"


async def test_missing_paths_are_no_obstacle(run: Run, place: Any) -> None:
    rules = LandlockRules(
        readable=(*place.rules.readable, "/nothing/here"), writable=("/nor/here",)
    )
    assert (await run(place.bash("exit 3", landlock=rules))).exit_code == 3


async def test_what_took_the_place_of_a_path_is_readable_and_what_was_there_no_longer(
    run: Run, place: Any
) -> None:
    for number in range(5):  # each process has made rules of what the last program could read
        (place.readable / "file").write_text(f"{number}\n")
        away = place.outside / str(number)
        script = f"cat {place.readable}/file; cat {place.outside}/*/file"
        outcome = await run(place.bash(script, confined=True))
        assert (outcome.stdout, outcome.exit_code) == (f"{number}\n", 1)
        place.readable.rename(away)
        place.readable.mkdir()


@pytest.mark.skipif(landlock_abi() < 4, reason="needs Landlock's network rules")
def test_landlock_alone_closes_tcp() -> None:
    connect = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
    confine = (
        "from tools.sandbox.processes.kernel.landlock import PathRules; "
        "from tools.sandbox.processes.kernel.process import forbid_new_privileges; "
        "forbid_new_privileges(); PathRules([b'/']).enter(); "
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        subprocess.run([sys.executable, "-c", connect, port], check=True)
        refused = subprocess.run(
            [sys.executable, "-c", confine + connect, port],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
    assert "PermissionError" in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="drops capabilities of root")
async def test_root_keeps_only_rights_over_files(run: Run, place: Any) -> None:
    outcome = await run(place.bash("grep CapEff /proc/self/status", confined=True))
    assert int(outcome.stdout.split()[1], 16) == 0b1011
    outcome = await run(place.bash(f"{Path('/bin/mount')} --bind /tmp /mnt", confined=True))
    assert outcome.exit_code
