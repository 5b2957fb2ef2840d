import hashlib
import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.core.errors import (
    ConflictError,
    InvalidArgumentsError,
    NotFoundError,
    OutsideSandboxError,
    ToolError,
    UnavailableError,
)
from tools.sandbox.files.replace import EXPECT_ABSENT
from tools.sandbox.files.sandbox import Sandbox

pytestmark = pytest.mark.boundary


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except ToolError as error:
        return type(error).__name__
    return "done"


@pytest.mark.parametrize("data", [b"", b"x", b"\r\n\0\xff", bytes(3_000_000)])
def test_a_write_holds_exactly_the_bytes(sandbox: Sandbox, data: bytes) -> None:
    written = sandbox.write("a/b/file", data)
    assert (sandbox.root / "a/b/file").read_bytes() == data
    assert (written.size, written.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert (written.path, written.created) == ("a/b/file", True)
    assert names(sandbox.root) == ["a", "a/b", "a/b/file"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755, 0o777, 0o4755, 0o2750])
def test_a_write_keeps_the_mode_but_nothing_new_runs_as_its_owner(
    sandbox: Sandbox, mode: int
) -> None:
    path = sandbox.root / "script"
    path.write_bytes(b"old")
    path.chmod(mode)
    sandbox.write("script", b"new")
    sandbox.edit("script", lambda data: data + b"er")
    assert path.read_bytes() == b"newer"
    assert stat.S_IMODE(path.stat().st_mode) == mode & 0o777


def test_a_write_keeps_the_owner_where_it_can(sandbox: Sandbox) -> None:
    path = sandbox.root / "theirs"
    path.write_bytes(b"old")
    if os.geteuid() != 0:
        pytest.skip("giving a file away needs root")
    os.chown(path, 1234, 4321)
    sandbox.write("theirs", b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_a_new_file_has_the_mode_of_the_umask(sandbox: Sandbox) -> None:
    before = os.umask(0o027)
    try:
        sandbox.write("directory/new", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((sandbox.root / "directory/new").stat().st_mode) == 0o640
    assert stat.S_IMODE((sandbox.root / "directory").stat().st_mode) == 0o750


@pytest.mark.parametrize("target", ["real.txt", "./sub/../real.txt", "{root}/real.txt", "second"])
def test_a_write_through_a_link_inside_writes_its_target(sandbox: Sandbox, target: str) -> None:
    root = sandbox.root
    (root / "sub").mkdir()
    (root / "second").symlink_to("real.txt")
    (root / "link").symlink_to(target.format(root=root))
    assert sandbox.write("link", b"1").created
    assert not sandbox.edit("link", lambda data: data + b"2").created
    assert (root / "real.txt").read_bytes() == b"12"
    assert (root / "link").is_symlink()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("x", "x"),
        ("a/../x", "x"),
        ("link/x", "link/x"),
        ("link/../x", "a/x"),
        ("a/b/../../link/../x", "a/x"),
        ("link/../new/y", "a/new/y"),
    ],
)
def test_a_write_tells_where_the_file_is(sandbox: Sandbox, path: str, told: str) -> None:
    (sandbox.root / "a" / "b").mkdir(parents=True)
    (sandbox.root / "link").symlink_to("a/b")
    written = sandbox.write(path, b"x")
    assert written.path == told
    assert (sandbox.root / told).read_bytes() == b"x"
    assert sandbox.edit(path, bytes.upper).path == told


def test_a_dangling_link_inside_gets_its_target_and_directories(sandbox: Sandbox) -> None:
    (sandbox.root / "link").symlink_to("new/place.txt")
    sandbox.write("link", b"x")
    assert (sandbox.root / "new/place.txt").read_bytes() == b"x"


def test_only_the_present_content_that_was_expected_is_replaced(sandbox: Sandbox) -> None:
    digest = sandbox.write("file", b"1").sha256
    sandbox.write("file", b"2", expected_sha256=digest.upper())
    calls: list[Callable[[], object]] = [
        lambda: sandbox.write("file", b"3", expected_sha256=digest),
        lambda: sandbox.edit("file", lambda _data: b"3", expected_sha256=digest),
        lambda: sandbox.write("absent/file", b"3", expected_sha256=digest),
    ]
    for call in calls:
        with pytest.raises(ConflictError, match=digest) as caught:
            call()
        assert "Read the file again" in caught.value.next_actions[0]
    assert (sandbox.root / "file").read_bytes() == b"2"
    assert names(sandbox.root) == ["file"]


def test_where_nothing_may_be_yet_only_a_new_file_is_written(sandbox: Sandbox) -> None:
    sandbox.write("file", b"1", expected_sha256=EXPECT_ABSENT)
    with pytest.raises(ConflictError, match="is there already"):
        sandbox.write("file", b"2", expected_sha256=EXPECT_ABSENT)
    assert (sandbox.root / "file").read_bytes() == b"1"


def test_an_edit_needs_a_file(sandbox: Sandbox) -> None:
    with pytest.raises(NotFoundError):
        sandbox.edit("missing/file", lambda data: data)
    assert names(sandbox.root) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError, NotFoundError])
def test_an_edit_that_raises_changes_nothing(sandbox: Sandbox, error: type[BaseException]) -> None:
    sandbox.write("file", b"old")

    def fail(_data: bytes) -> bytes:
        raise error("stop")

    with pytest.raises(error):
        sandbox.edit("file", fail)
    assert (sandbox.root / "file").read_bytes() == b"old"
    assert names(sandbox.root) == ["file"]
    sandbox.write("file", b"the lock is free again")


@settings(max_examples=20)
@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5))
def test_edits_see_what_edits_before_them_wrote(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    sandbox = Sandbox(tmp_path_factory.mktemp("root"))
    sandbox.write("file", b"")
    for piece in pieces:
        sandbox.edit("file", lambda data, piece=piece: data + piece)  # type: ignore[misc]  # bound now
    assert sandbox.read("file", max_bytes=1000).data == b"".join(pieces)


def test_two_hundred_concurrent_edits_lose_none(sandbox: Sandbox) -> None:
    sandbox.write("counter", b"")
    (sandbox.root / "link").symlink_to("counter")

    def append(number: int) -> None:
        line = f"{number}\n".encode()
        sandbox.edit("link" if number % 2 else "./counter", lambda data: data + line)

    with ThreadPoolExecutor(50) as pool:
        list(pool.map(append, range(200)))
    lines = (sandbox.root / "counter").read_text().split()
    assert sorted(map(int, lines)) == list(range(200))


EDITOR = """
import sys
from pathlib import Path
from tools.sandbox.files.sandbox import Sandbox
sandbox = Sandbox(Path(sys.argv[1]))
for number in range(50):
    line = f"{sys.argv[2]}-{number}\\n".encode()
    sandbox.edit("counter", lambda data: data + line)
"""


def test_two_hundred_edits_of_several_processes_lose_none(sandbox: Sandbox) -> None:
    sandbox.write("counter", b"")
    command = [sys.executable, "-c", EDITOR, str(sandbox.root)]
    editors = [subprocess.Popen([*command, name]) for name in "abcd"]
    assert [editor.wait(60) for editor in editors] == [0, 0, 0, 0]
    lines = (sandbox.root / "counter").read_text().split()
    assert sorted(lines) == sorted(f"{name}-{number}" for name in "abcd" for number in range(50))


def test_readers_see_a_whole_file_while_it_is_replaced(sandbox: Sandbox) -> None:
    versions = [bytes([letter]) * 100_000 for letter in b"ab"]
    sandbox.write("file", versions[0])
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(
            lambda: [sandbox.write("file", versions[turn % 2]) for turn in range(60)]
        )
        seen = {sandbox.read("file", max_bytes=1 << 20).data}
        while not writing.done():
            seen.add(sandbox.read("file", max_bytes=1 << 20).data)
        writing.result()
    assert seen <= set(versions)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 64 kB, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["/bin/mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    with suppress(FileNotFoundError):
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:
            yield disk
            subprocess.run(["/bin/umount", "--lazy", str(disk)], check=True)
            return
    pytest.skip("mounting a small file system needs root")


def test_a_full_disk_is_reported_and_leaves_the_old_file(small_disk: Path) -> None:
    sandbox = Sandbox(small_disk)
    sandbox.write("file", b"old")
    for path in ("file", "new/directory/file"):
        with pytest.raises(UnavailableError, match="disk is full"):
            sandbox.write(path, bytes(1_000_000))
    assert (small_disk / "file").read_bytes() == b"old"
    assert names(small_disk) == ["file"]


def test_a_read_only_disk_is_reported(small_disk: Path) -> None:
    sandbox = Sandbox(small_disk)
    sandbox.write("file", b"old")
    subprocess.run(["/bin/mount", "-o", "remount,ro", str(small_disk)], check=True)
    for path in ("file", "new", "new/directory/file"):
        with pytest.raises(UnavailableError, match="read-only"):
            sandbox.write(path, b"new")
        with pytest.raises(UnavailableError, match="read-only"):
            sandbox.check_write(path)
    assert sandbox.read("file", max_bytes=10).data == b"old"


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(sandbox: Sandbox) -> None:
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from tools.sandbox.files.sandbox import Sandbox
        sandbox = Sandbox(Path(sys.argv[1]))
        turn = 0
        while True:
            turn += 1
            sandbox.write("file", bytes([65 + turn % 26]) * 200_000)
            print(turn, flush=True)
    """)
    for after in (1, 2, 5, 9):
        command = [sys.executable, "-c", program, str(sandbox.root)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            while writer.stdout.readline().strip() != str(after):
                pass
            writer.kill()
        data = (sandbox.root / "file").read_bytes()
        assert len(data) == 200_000
        assert len(set(data)) == 1
        sandbox.write("file", b"the lock died with its owner")


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="Linux has files without a name")
def test_a_writer_that_is_killed_while_it_writes_leaves_nothing_besides(sandbox: Sandbox) -> None:
    sandbox.write("file", b"old")
    program = textwrap.dedent("""
        import resource, signal, sys
        from pathlib import Path
        from tools.sandbox.files.sandbox import Sandbox
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        Sandbox(Path(sys.argv[1])).write("file", bytes(200_000))
    """)
    before = names(sandbox.root)
    killed = subprocess.run([sys.executable, "-c", program, str(sandbox.root)], check=False)
    assert killed.returncode == -signal.SIGXFSZ
    assert names(sandbox.root) == before
    assert (sandbox.root / "file").read_bytes() == b"old"


@pytest.mark.parametrize("path", ["directory", "directory/", ".", "directory/..", "to-directory"])
def test_a_directory_is_not_overwritten(sandbox: Sandbox, path: str) -> None:
    (sandbox.root / "directory").mkdir()
    (sandbox.root / "to-directory").symlink_to("directory")
    with pytest.raises(InvalidArgumentsError, match="directory"):
        sandbox.write(path, b"x")
    assert names(sandbox.root) == ["directory", "to-directory"]


@pytest.mark.parametrize("path", ["file/below", "file/below/deeper", "dangling/below"])
def test_a_file_is_not_taken_for_a_directory(sandbox: Sandbox, path: str) -> None:
    (sandbox.root / "file").write_bytes(b"x")
    (sandbox.root / "dangling").symlink_to("nowhere")
    with pytest.raises(ToolError):
        sandbox.write(path, b"x")
    assert names(sandbox.root) == ["dangling", "file"]


@pytest.mark.parametrize(
    "path",
    [
        *("file", "new", "dir/new", "made/and/made", "in", "awaited", "made/./new", "dir/../new"),
        *("dir", "dir/", "made/", "file/below", "made/../new", ".", "", "\0", "n" * 256),
        *("..", "../new", "/etc/new", "out", "out/new", "endless", "pipe", ".git/hooks/new"),
        *("made/.git/config", "dir/.mcp.json", "dir/link-to-hooks/new", "awaited/new"),
    ],
)
def test_a_check_says_what_the_write_does_and_makes_nothing(sandbox: Sandbox, path: str) -> None:
    root = sandbox.root
    for directory in ("dir", ".git/hooks", "../elsewhere"):
        (root / directory).mkdir(parents=True)
    (root / "file").write_bytes(b"x")
    os.mkfifo(root / "pipe")
    links = {"in": "dir/target", "awaited": "to-be/made", "out": "../elsewhere"}
    for name, to in (links | {"endless": "endless", "dir/link-to-hooks": "../.git/hooks"}).items():
        (root / name).symlink_to(to)
    before = names(root.parent)
    checked = outcome(partial(sandbox.check_write, path))
    assert names(root.parent) == before
    assert checked == outcome(partial(sandbox.write, path, b"y"))


def test_nothing_is_written_to_a_directory_that_moved_out_meanwhile(sandbox: Sandbox) -> None:
    sandbox.write("a/b/file", b"old")
    outside = sandbox.root.parent / "outside"

    def move(_data: bytes) -> bytes:
        (sandbox.root / "a" / "b").rename(outside)
        return b"new"

    with pytest.raises(OutsideSandboxError):
        sandbox.edit("a/b/file", move)
    assert (outside / "file").read_bytes() == b"old"
    assert names(outside) == ["file"]
