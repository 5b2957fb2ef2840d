"""Attacks on the confinement, on the real kernel: each works unconfined, and at no level."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.sandbox.processes.conftest import opened, run_script
from tools.sandbox.processes.models import Level

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's"),
    pytest.mark.boundary,
]

SECRET = "the-secret-canary"  # noqa: S105  # nothing but a mark
IS_ROOT = os.geteuid() == 0
CONFINED = pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK])

WRITES = {
    "redirection": "echo x > $OUT/new",
    "appending": "echo x >> $OUT/file",
    "truncation by the shell": ": > $OUT/file",
    "truncate": "truncate -s 1 $OUT/file",
    "dd": "dd if=/dev/zero of=$OUT/file bs=1 count=1 conv=notrunc",
    "a file moved out": "touch a; mv a $OUT/a",
    "a file moved in": "mv $OUT/file .",
    "a rename within": "mv $OUT/file $OUT/other",
    "two names exchanged": "python3 -c 'import ctypes, os; ctypes.CDLL(None).renameat2(-100, "
    'os.environb[b"OUT"] + b"/file", -100, os.environb[b"OUT"] + b"/empty", 2)\'',
    "a hard link in, then written": "ln $OUT/file l && echo x >> l",
    "a hard link out": "touch a && ln a $OUT/a",
    "a link to a file": "ln -s $OUT/file l; echo x > l",
    "a link to a directory": "ln -s $OUT d; touch d/x",
    "a chain of links": "ln -s $OUT d; ln -s d/file e; ln -s e f; echo x > f",
    "a link with dots": "ln -s ../outside d; touch d/x",
    "a link made outside": "ln -s / $OUT/l",
    "mkdir": "mkdir $OUT/d",
    "mkdir -p": "mkdir -p ../outside/a/b",
    "rmdir": "rmdir $OUT/empty",
    "rm": "rm $OUT/file",
    "rm -rf": "rm -rf $OUT",
    "chmod of a file": "chmod 777 $OUT/file",
    "chmod of a directory": "chmod 777 $OUT",
    "chmod through a link": "ln -s $OUT/file l; chmod 777 l",
    "fchmod": 'exec 3< $OUT/file; python3 -c "import os; os.fchmod(3, 0o777)"',
    "touch": "touch -d 2001-01-01 $OUT/file",
    "touch of a directory": "touch -d 2001-01-01 $OUT",
    "futimes": 'exec 3< $OUT/file; python3 -c "import os; os.utime(3, (1, 1))"',
    "an attribute": 'python3 -c \'import os; os.setxattr(os.environ["OUT"] + "/file", '
    '"user.x", b"x")\' && echo WORKED',
    "a pipe": "mkfifo $OUT/p",
    "a socket": "python3 -c 'import os, socket; "
    'socket.socket(socket.AF_UNIX).bind(os.environ["OUT"] + "/s")\'',
    "dots": "echo x > ../outside/x",
    "changing there": "cd $OUT && echo x > x",
    "the root of /proc": "echo x > /proc/self/root$OUT/x",
    "the directory of /proc": "echo x > /proc/self/cwd/../outside/x",
    "the root of another": "echo x > /proc/$VICTIM/root$OUT/x",
    "the directory of another": "echo x > /proc/$VICTIM/cwd/x",
    "a directory's descriptor": 'python3 -c \'import os; d = os.open(os.environ["OUT"], 0); '
    'os.close(os.open("x", 66, dir_fd=d))\'',
    "cp": "touch a; cp a $OUT/a",
    "install": "touch a; install -m 777 a $OUT/a",
    "tee": "echo x | tee $OUT/x",
    "sed -i": "sed -i s/s/x/ $OUT/file",
    "tar": "touch a; tar cf t.tar a; tar xf t.tar -C $OUT",
    "a link in a tar": "mkdir s; ln -s $OUT s/d; tar cf t.tar -C s d; tar xf t.tar; touch d/x",
    "git init": "git init -q $OUT/repo",
    "a shared mapping": 'python3 -c \'import mmap, os; f = open(os.environ["OUT"] + "/file", '
    '"r+b"); m = mmap.mmap(f.fileno(), 0); m[0:1] = b"x"; m.flush()\'',
    "a background job": "(sleep 0.05; echo x > $OUT/x) & wait",
    "a new session": "setsid -w bash -c 'echo x > $OUT/x'",
    "another shell": "env -i OUT=$OUT /bin/sh -c 'echo x > $OUT/x'",
}
"""What changes $OUT, a directory beside the root."""

READS = {
    "cat": "cat $OUT/file",
    "a link": "ln -s $OUT/file l; cat l",
    "a link to the directory": "ln -s $OUT d; cat d/file",
    "dots": "cat ../outside/file",
    "a hard link": "ln $OUT/file l && cat l",
    "a copy": "cp $OUT/file c; cat c",
    "tar": "tar c $OUT | cat",
    "grep": "grep -r canary $OUT",
    "the root of /proc": "cat /proc/self/root$OUT/file",
    "another's environment": "cat /proc/$VICTIM/environ",
    "another's directory": "cat /proc/$VICTIM/cwd/file",
    "another's root": "cat /proc/$VICTIM/root$OUT/file",
    "another's descriptor": "cat /proc/$VICTIM/fd/0",
    "the way up": 'python3 -c \'import os; os.chdir("/proc/self/cwd/.."); '
    'print(open("outside/file").read())\'',
    "a settings file of git": "git config --file $OUT/file --list; git diff --no-index "
    "/dev/null $OUT/file",
    "an include of the shell": "source $OUT/file; cat < $OUT/file",
    "the environment that a shell reads": "BASH_ENV=$OUT/file bash -c : 2>&1",
}
"""What prints the secret that is in $OUT/file, in the environment of $VICTIM and on its stdin."""

NETWORK = {
    "TCP": "exec 3<> /dev/tcp/127.0.0.1/$TCP; echo x >&3",
    "curl": "curl -s --noproxy '*' -m 5 http://127.0.0.1:$TCP/",
    "a name": "curl -s --noproxy '*' -m 5 http://localhost:$TCP/",
    "TCP on IPv6": "exec 3<> /dev/tcp/::1/$TCP6; echo x >&3",
    "urllib": "python3 -c 'import os, urllib.request as u; "
    'u.urlopen("http://127.0.0.1:" + os.environ["TCP"], timeout=5)\'',
    "TCP fast open": 'python3 -c \'import os, socket; socket.socket().sendto(b"x", 0x20000000, '
    '("127.0.0.1", int(os.environ["TCP"])))\'',
    "UDP": "exec 3<> /dev/udp/127.0.0.1/$UDP; echo x >&3",
    "connected UDP": "python3 -c 'import os, socket; s = socket.socket(2, 2); "
    's.connect(("127.0.0.1", int(os.environ["UDP"]))); s.send(b"x")\'',
    "UDP from IPv6": "python3 -c 'import os, socket; s = socket.socket(10, 2); "
    's.sendto(b"x", ("::ffff:127.0.0.1", int(os.environ["UDP"])))\'',
    "a Unix socket": "python3 -c 'import os, socket; s = socket.socket(1); "
    's.connect(os.environ["OUT"] + "/socket"); s.send(b"x")\'',
    "a Unix socket in the root": "python3 -c 'import socket; s = socket.socket(1); "
    's.connect("socket"); s.send(b"x")\'',
    "an abstract Unix socket": "python3 -c 'import os, socket; s = socket.socket(1); "
    's.connect("\\0" + os.environ["ABSTRACT"]); s.send(b"x")\'',
    "datagrams of Unix": "python3 -c 'import os, socket; s = socket.socket(1, 2); "
    's.sendto(b"x", os.environ["OUT"] + "/datagrams")\'',
}
"""What reaches one of the listeners."""

_LIBC = "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); "
PROCESSES = {
    "a signal": "kill -0 $VICTIM && echo WORKED",
    "its end": "kill -9 $VICTIM && echo WORKED",
    "tracing": f'python3 -c \'{_LIBC}print("WORKED" if not c.ptrace(16, '
    'int(os.environ["VICTIM"]), 0, 0) else "")\'',
    "its memory": "exec 3< /proc/$VICTIM/mem && echo WORKED",
    "its limits": "prlimit --pid $VICTIM --nofile=100 && echo WORKED",
    "a mount": "unshare -rm mount -t tmpfs none /mnt && echo WORKED",
    "a user namespace": "unshare -r true && echo WORKED",
    "io_uring": f"python3 -c '{_LIBC}p = ctypes.create_string_buffer(120); "
    'print("WORKED" if c.syscall(425, 4, p) >= 0 else "")\'',
    "the keys of the session": f'python3 -c \'{_LIBC}print("WORKED" if c.syscall(250, 0, -3, 1) '
    '>= 0 else "")\'',
}
"""What prints WORKED, against a process of the same user."""

AS_ROOT = {
    "the password file": "grep -q ^root: /etc/shadow && echo WORKED",
    "root's home": "ls /root/.. >/dev/null; ls -A /root/.ssh /root/.bashrc && echo WORKED",
    "the keys of the machine": "ls /etc/ssh && echo WORKED",
    "logs": "ls /var/log && echo WORKED",
    "run": "ls /run/lock && echo WORKED",
    "core_pattern": "true >> /proc/sys/kernel/core_pattern && echo WORKED",
    "modprobe": "true >> /proc/sys/kernel/modprobe && echo WORKED",
    "sysrq": "true >> /proc/sysrq-trigger && echo WORKED",
    "the kernel's log": "true >> /dev/kmsg && echo WORKED",
    "reading the kernel's log": "head -c 1 /dev/kmsg > /dev/null && echo WORKED",
    "the machine's memory": "head -c 1 /proc/kcore > /dev/null && echo WORKED",
    "a control group": "mkdir /sys/fs/cgroup/toolcrib-test && rmdir /sys/fs/cgroup/toolcrib-test "
    "&& echo WORKED",
    "a device": "mknod d b 7 0 && echo WORKED",
    "the disk": "head -c 1 $DISK > /dev/null && echo WORKED",
    "a mount": "mount -t tmpfs none . && echo WORKED; umount .",
    "remounting": "mount -o remount,rw / && echo WORKED",
    "another root": "chroot / true && echo WORKED",
    "the host's name": 'hostname "$(hostname)" && echo WORKED',
    "another user": "setpriv --reuid=1 --clear-groups true && echo WORKED",
    "another owner": "chown 1 $OUT/file && echo WORKED",
    "a namespace": "unshare -m true && echo WORKED",
    "the namespaces of process 1": "nsenter -t 1 -m true && echo WORKED",
    "file handles": f'python3 -c \'{_LIBC}h = ctypes.create_string_buffer(b"\\x80", 140); '
    'm = ctypes.c_int(); c.name_to_handle_at(-100, b"/", h, ctypes.byref(m), 0); d = '
    'os.open("/", 0); print("WORKED" if c.open_by_handle_at(d, h, 0) >= 0 else "")\'',
}
"""What prints WORKED where the server is root."""


class World:
    """A root, a directory beside it, a process beside ours and listeners."""

    def __init__(self, top: Path) -> None:
        self.root, self.outside, self.data = top / "root", top / "outside", top / "data"
        self.heard = 0
        self._before: dict[str, object] = {}
        self._sockets: list[socket.socket] = []
        self.victim: subprocess.Popen[bytes] | None = None
        self.reset()

    def reset(self) -> None:
        """Makes everything anew."""
        self.close()
        shutil.rmtree(self.outside, ignore_errors=True)
        self.outside.mkdir()
        self.root.mkdir(exist_ok=True)  # it stays the directory that is held
        for each in self.root.iterdir():
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        (self.outside / "file").write_text(f"{SECRET}\n", encoding="utf-8")
        (self.outside / "empty").mkdir()
        with (self.outside / "file").open("rb") as entry:
            self.victim = subprocess.Popen(
                ["/bin/sleep", "60"], cwd=self.outside, env={"S": SECRET}, stdin=entry
            )
        self._listen()
        self._before = self._state()

    def close(self) -> None:
        if self.victim is not None:
            self.victim.kill()
            self.victim.wait()
        for each in self._sockets:
            each.shutdown(socket.SHUT_RDWR) if each.type == socket.SOCK_STREAM else None
            each.close()
        self._sockets.clear()

    @property
    def variables(self) -> dict[str, str]:
        assert self.victim is not None
        disk = next(iter(sorted(Path("/dev").glob("[vs]d?"))), Path("/dev/null"))
        return {
            "OUT": str(self.outside),
            "VICTIM": str(self.victim.pid),
            "DISK": str(disk),
            **self._addresses,
        }

    def suffered(self, output: str) -> bool:
        """Whether an attack worked: by what it printed, changed or sent."""
        assert self.victim is not None
        heard = any(self._has_news(each) for each in self._sockets)
        gone = self.victim.poll() is not None
        return (
            "WORKED" in output or SECRET in output or heard or gone or self._state() != self._before
        )

    def _listen(self) -> None:
        tcp, tcp6 = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET6)
        tcp6.bind(("::1", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        abstract = f"toolcrib-test-{os.getpid()}-{id(self)}"
        unix = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        places = ("\0" + abstract, str(self.outside / "socket"), str(self.root / "socket"))
        for each, place in zip(unix, places, strict=True):
            each.bind(place)
        datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagrams.bind(str(self.outside / "datagrams"))
        for each in (tcp6, *unix):
            each.listen()
        self._sockets = [tcp, tcp6, udp, *unix, datagrams]
        for each in self._sockets:
            each.setblocking(False)  # noqa: FBT003  # its only argument
        self._addresses = {
            "TCP": str(tcp.getsockname()[1]),
            "TCP6": str(tcp6.getsockname()[1]),
            "UDP": str(udp.getsockname()[1]),
            "ABSTRACT": abstract,
        }

    def _has_news(self, listener: socket.socket) -> bool:
        try:
            if listener.type == socket.SOCK_STREAM:
                listener.accept()[0].close()
            else:
                listener.recv(16)
        except BlockingIOError:
            return False
        return True

    def _state(self) -> dict[str, object]:
        """Everything outside, as far as somebody could see that it changed."""
        found: dict[str, object] = {}
        for path in (self.outside, *sorted(self.outside.rglob("*"))):
            if not path.exists() and not path.is_symlink():
                continue
            status = path.lstat()
            content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (status.st_mode, status.st_uid, status.st_mtime_ns, content)
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


async def outcome(world: World, level: Level, attacks: dict[str, str]) -> dict[str, str]:
    """The attacks that worked, and what each printed."""
    worked = {}
    given = {"protected": [world.data], "data_dir": world.data}
    async with opened(world.root, level, **given) as processes:
        for name, script in attacks.items():
            world.reset()
            _, output, _ = await run_script(processes, script, environment=world.variables)
            if world.suffered(output):
                worked[name] = output
    return worked


def idle(world: World, attacks: dict[str, str]) -> set[str]:
    """The attacks that do not even work where nothing is in their way."""
    names = set()
    for name, script in attacks.items():
        world.reset()
        ran = subprocess.run(
            ["/bin/bash", "-c", script],
            cwd=world.root,
            env={**os.environ, **world.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if not world.suffered(ran.stdout.decode(errors="replace")):
            names.add(name)
    return names


@pytest.mark.slow
@pytest.mark.parametrize(
    "attacks", [WRITES, READS, NETWORK, PROCESSES], ids=["writes", "reads", "network", "processes"]
)
async def test_what_works_unconfined_works_at_no_level(
    world: World, attacks: dict[str, str]
) -> None:
    assert idle(world, attacks) == set()
    for level in (Level.BUBBLEWRAP, Level.LANDLOCK):
        assert await outcome(world, level, attacks) == {}, level


@CONFINED
@pytest.mark.skipif(not IS_ROOT, reason="they need root")
async def test_root_is_confined_as_others_are(world: World, level: Level) -> None:
    idle_here = idle(world, AS_ROOT)
    attacks = {name: AS_ROOT[name] for name in AS_ROOT if name not in idle_here}
    assert len(attacks) > len(AS_ROOT) // 2
    assert await outcome(world, level, AS_ROOT) == {}
