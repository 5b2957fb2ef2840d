"""What is no plain file or no plain directory: mounts, hard links, files that grow, attributes."""

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tools.core.errors import InvalidArgumentsError, OutsideSandboxError, PermissionDeniedError
from tools.sandbox.files.openat import DirectoryOpener
from tools.sandbox.files.replace import MAX_EDIT_BYTES
from tools.sandbox.files.sandbox import Sandbox

pytestmark = pytest.mark.boundary

NOBODY = 65534


@pytest.fixture
def root(house: Path) -> Path:
    (house / "root" / "directory").mkdir(parents=True)
    (house / "outside").mkdir()
    (house / "outside" / "secret.txt").write_bytes(b"secret")
    return house / "root"


MAGIC = [
    *("self/root/etc/passwd", "self/cwd/pyproject.toml", "thread-self/root/etc/passwd"),
    *("{pid}/root/etc/passwd", "{pid}/cwd/pyproject.toml", "self/fd/{outside}/secret.txt"),
    *("self/fd/{file}", "self/exe", "self/task/{pid}/root/etc/passwd"),
]


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A root into which /proc and a directory of elsewhere are mounted."""
    for directory in ("root/proc", "root/mounted", "elsewhere"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "elsewhere" / "file").write_bytes(b"mounted")
    done = []
    try:
        for source, target in (("/proc", "proc"), (str(tmp_path / "elsewhere"), "mounted")):
            command = ["/bin/mount", "--bind", source, str(tmp_path / "root" / target)]
            if subprocess.run(command, check=False, capture_output=True).returncode:
                pytest.skip("mounting needs root")
            done.append(target)
        yield tmp_path / "root"
    finally:
        for target in done:
            subprocess.run(["/bin/umount", str(tmp_path / "root" / target)], check=True)


def test_magic_links_of_a_mounted_proc_are_not_followed(
    mounted: Path, open_directory: DirectoryOpener
) -> None:
    outside = mounted.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_bytes(b"secret")
    sandbox = Sandbox(mounted, open_directory=open_directory)
    fds = {
        "outside": os.open(outside, os.O_RDONLY),
        "file": os.open(outside / "secret.txt", os.O_RDONLY),
    }
    try:
        for pattern in MAGIC:
            path = "proc/" + pattern.format(pid=os.getpid(), **fds)
            assert (mounted / path).read_bytes()  # a plain open gets out
            with pytest.raises((OutsideSandboxError, PermissionDeniedError)):
                sandbox.read(path, max_bytes=10)
            with pytest.raises((OutsideSandboxError, PermissionDeniedError)):
                sandbox.write(path, b"x")
        assert sandbox.read("proc/version", max_bytes=5).data == b"Linux"
    finally:
        for fd in fds.values():
            os.close(fd)


def test_what_is_mounted_into_the_root_is_in_it(
    mounted: Path, open_directory: DirectoryOpener
) -> None:
    sandbox = Sandbox(mounted, open_directory=open_directory)
    assert sandbox.read("mounted/file", max_bytes=10).data == b"mounted"
    assert sandbox.write("mounted/new", b"x").created
    with pytest.raises(OutsideSandboxError):
        sandbox.read("mounted/../../elsewhere/file", max_bytes=10)


def test_a_protected_directory_is_protected_where_it_is_mounted(
    mounted: Path, open_directory: DirectoryOpener
) -> None:
    protected = [mounted.parent / "elsewhere"]
    sandbox = Sandbox(mounted, protected=protected, open_directory=open_directory)
    with pytest.raises(PermissionDeniedError, match="protected"):
        sandbox.read("mounted/file", max_bytes=10)
    with pytest.raises(PermissionDeniedError, match="protected"):
        sandbox.write("mounted/new", b"x")
    with pytest.raises(PermissionDeniedError, match="protected"):
        sandbox.list_directory("mounted")
    assert sandbox.list_directory(depth=2).unreadable.count("mounted") == 1


@pytest.mark.parametrize("name", ["linked", "directory/linked", "to-linked", "made/../linked"])
def test_no_write_changes_the_other_end_of_a_hard_link(
    sandbox: Sandbox, root: Path, name: str
) -> None:
    outside = root.parent / "outside" / "secret.txt"
    (root / "made").mkdir()
    for path in ("linked", "directory/linked"):
        os.link(outside, root / path)
    (root / "to-linked").symlink_to("linked")
    before = outside.stat()
    sandbox.edit(name, lambda data: data + b"!")
    assert sandbox.read(name, max_bytes=10).data == b"secret!"
    sandbox.write(name, b"ours")
    after = outside.stat()
    assert outside.read_bytes() == b"secret"
    assert (after.st_ino, after.st_mode, after.st_mtime_ns, after.st_uid) == (
        before.st_ino,
        before.st_mode,
        before.st_mtime_ns,
        before.st_uid,
    )


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_a_file_that_grows_for_ever_is_read_as_far_as_it_may(
    sandbox: Sandbox, root: Path, size: int
) -> None:
    path = root / "growing"
    path.write_bytes(b"x" * size)
    stop = threading.Event()

    def grow() -> None:
        with path.open("ab", buffering=0) as file:
            for _ in range(200_000):
                if stop.is_set():
                    return
                file.write(b"x" * 1000)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(100):
            found = sandbox.read("growing", max_bytes=4000)
            assert len(found.data) <= 4000
            assert found.truncated or len(found.data) >= min(found.size, 4000)
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("size", [MAX_EDIT_BYTES + 1, 10 * 1024**3, 2**40])
def test_a_sparse_file_costs_no_more_than_was_asked_for(
    sandbox: Sandbox, root: Path, size: int
) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(size)
    found = sandbox.read("sparse", max_bytes=1000)
    assert (len(found.data), found.size, found.truncated) == (1000, size, True)
    with pytest.raises(InvalidArgumentsError, match="too large to be edited"):
        sandbox.edit("sparse", lambda data: data)
    assert (root / "sparse").stat().st_size == size


def test_a_file_of_the_system_that_says_it_is_empty_is_read(
    open_directory: DirectoryOpener,
) -> None:
    sandbox = Sandbox(Path("/proc"), open_directory=open_directory)
    found = sandbox.read("meminfo", max_bytes=100_000)
    assert found.size == 0
    assert found.data.startswith(b"MemTotal:")
    assert b"DirectMap" in found.data or len(found.data) > 500
    assert sandbox.read("meminfo", max_bytes=10).truncated


@pytest.mark.parametrize("kind", ["pipe", "socket", "to-pipe", "device", "directory/../pipe"])
def test_what_is_no_regular_file_is_refused_and_left_as_it_is(
    sandbox: Sandbox, root: Path, kind: str
) -> None:
    os.mkfifo(root / "pipe")
    (root / "to-pipe").symlink_to("pipe")
    with suppress(PermissionError):
        os.mknod(root / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    with socket.socket(socket.AF_UNIX) as listener:
        directory = os.open(root, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{directory}/socket")
        os.close(directory)
        if not (root / kind).exists():
            pytest.skip("making a device needs root")
        before = (root / kind).stat()
        for refused in (
            lambda: sandbox.read(kind, max_bytes=1),
            lambda: sandbox.open_read(kind),
            lambda: sandbox.write(kind, b"x"),
            lambda: sandbox.edit(kind, lambda data: data),
        ):
            with pytest.raises(InvalidArgumentsError, match="not a regular file"):
                refused()
        assert (root / kind).stat().st_ino == before.st_ino
        assert stat.S_IFMT((root / kind).stat().st_mode) == stat.S_IFMT(before.st_mode)


def test_extended_attributes_stay_with_a_file(sandbox: Sandbox, root: Path) -> None:
    path = root / "file"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.origin", b"here")
    except OSError:
        pytest.skip("this file system keeps no attributes")
    sandbox.write("file", b"new")
    sandbox.edit("file", lambda data: data + b"er")
    assert os.getxattr(path, "user.origin") == b"here"
    assert path.read_bytes() == b"newer"


def test_rights_of_a_program_do_not_stay_with_another_content(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"old")
    path.chmod(0o755)
    # Version 2 of struct vfs_ns_cap_data: cap_net_raw, effective (linux/capability.h).
    capability = bytes.fromhex("0100000200200000000000000000000000000000")
    try:
        os.setxattr(path, "security.capability", capability)
    except OSError:
        pytest.skip("giving rights to a program needs root")
    Sandbox(tmp_path).write("program", b"new")
    assert "security.capability" not in os.listxattr(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


LIMITED = """
import fcntl, os, resource, sys
from pathlib import Path
from tools.core.errors import ToolError
from tools.sandbox.files.sandbox import Sandbox
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
sandbox = Sandbox(Path(sys.argv[1]))
for call in (
    lambda: sandbox.write("file", bytes(10_000)),
    lambda: sandbox.write("new/directory/file", bytes(10_000)),
    lambda: sandbox.edit("file", lambda data: data * 1000),
    lambda: sandbox.write("empty/file", b""),
    lambda: sandbox.read("../outside", max_bytes=1),
    lambda: sandbox.write("out/file", b""),
):
    try:
        call()
    except ToolError as error:
        print(error.error_type, "largest size" in error.message)
print(sorted(os.listdir(sys.argv[1])))
"""


def test_a_user_without_rights_leaves_nothing_behind_either(house: Path) -> None:
    root = house / "root"
    root.mkdir()
    (root / "file").write_bytes(b"old")
    (root / "out").symlink_to("..")
    euid = os.geteuid()
    if os.getuid() == 0:  # the child gives up its rights for good
        os.seteuid(0)
        for path in (root, root / "file"):
            os.chown(path, NOBODY, NOBODY)
    try:
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, str(root)], check=True, capture_output=True, text=True
        )
    finally:
        os.seteuid(euid)
    assert done.stdout.split("\n")[:6] == [
        *["unavailable True"] * 3,
        *["outside_sandbox False"] * 2,
        "['empty', 'file', 'out']",
    ]
    assert (root / "file").read_bytes() == b"old"
