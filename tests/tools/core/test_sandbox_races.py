"""Links and directories swapped while a path is opened.

Each swapper is first shown to get a naive reader or writer out of the root, so that a race that
does not race cannot pass for a sandbox that holds.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tools.core.errors import ToolError
from tools.core.openat import DirectoryOpener, open_beneath, walk_beneath
from tools.core.sandbox import Sandbox

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "renameat2"), reason="the swapper needs Linux"
)

SWAPS = """
import ctypes, os

libc = ctypes.CDLL(None)

def exchange(one, other):
    if libc.renameat2(-100, one.encode(), -100, other.encode(), 2):
        raise OSError("renameat2")

def swap_directory(home):
    \"\"\"The directory "a" becomes a link that leads out, and a directory again.\"\"\"
    exchange(home + "/root/a", home + "/root/link-to-directory")

def swap_file(home):
    \"\"\"The file "file" becomes a link that leads out, and a file again.\"\"\"
    name = home + "/root/file"
    os.symlink("../outside/file", name + ".link")
    os.rename(name + ".link", name)
    with open(name + ".new", "wb") as file:
        file.write(b"inside")
    os.rename(name + ".new", name)

def move_out(home):
    \"\"\"The directory "a/b" moves out of the root and back.\"\"\"
    os.rename(home + "/root/a/b", home + "/outside/b")
    os.rename(home + "/outside/b", home + "/root/a/b")
"""

ENDLESS = (
    SWAPS
    + """
import sys
print("swapping", flush=True)
while True:
    globals()[sys.argv[1]](sys.argv[2])
"""
)

PATIENCE = 200_000
"""Tries after which a swapper that never leaves the path inside is a failure of the test."""

functions: dict[str, Callable[[str], None]] = {}
exec(SWAPS, functions)  # noqa: S102  # one text for the thread and for the child process


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for directory in ("root/a/b", "outside"):
        (tmp_path / directory).mkdir(parents=True)
    for file in ("root/a/file", "root/a/b/file", "root/file"):
        (tmp_path / file).write_bytes(b"inside")
    for file in ("outside/file", "file"):
        (tmp_path / file).write_bytes(b"outside")
    (tmp_path / "root" / "link-to-directory").symlink_to("../outside")
    return tmp_path


@contextmanager
def swapping(home: Path, swap: str, kind: str) -> Iterator[None]:
    """Keeps swapping, in a thread or in a process of its own."""
    if kind == "process":
        command = [sys.executable, "-c", ENDLESS, swap, str(home)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            try:
                yield
            finally:
                swapper.kill()
        return
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            functions[swap](str(home))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def naive_path(home: Path, path: str) -> str:
    """What many sandboxes do: look where the path leads, then open it."""
    root = str(home / "root")
    real = os.path.realpath(f"{root}/{path}")
    if not real.startswith(root + "/"):
        raise PermissionError
    return f"{root}/{path}"


def open_checked(home: Path, path: str) -> int:
    return os.open(naive_path(home, path), os.O_RDONLY)


def open_by_steps(home: Path, path: str) -> int:
    """A walk that refuses links and yet trusts `..` of a directory that may have moved."""
    fd = os.open(home / "root", os.O_RDONLY)
    for part in path.split("/"):
        try:
            below = os.open(part, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


def naive_reader_escapes(home: Path, path: str, naive_open: Callable[[Path, str], int]) -> bool:
    for _ in range(300_000):
        with suppress(OSError), os.fdopen(naive_open(home, path), "rb") as file:
            if file.read() == b"outside":
                return True
    return False


READS = [
    ("swap_directory", "a/file"),
    ("swap_directory", "a/../file"),
    ("swap_file", "file"),
    ("move_out", "a/b/../../file"),
]


@pytest.fixture(params=[open_beneath, walk_beneath], ids=["kernel", "walk"])
def sandbox(request: pytest.FixtureRequest, home: Path) -> Sandbox:
    opener: DirectoryOpener = request.param
    return Sandbox(home / "root", open_directory=opener)


def read_while_swapping(sandbox: Sandbox, path: str, tries: int) -> tuple[int, int]:
    """Counts the reads that succeeded inside and those that escaped."""
    inside = escaped = turn = 0
    while turn < tries or (not inside and turn < PATIENCE):
        turn += 1
        try:
            data = sandbox.read(path, max_bytes=100).data
        except ToolError:
            continue
        inside += data == b"inside"
        escaped += data == b"outside"
    return inside, escaped


@pytest.mark.parametrize(("swap", "path"), READS)
def test_the_swapper_gets_a_naive_reader_out(home: Path, swap: str, path: str) -> None:
    naive_open = open_by_steps if swap == "move_out" else open_checked
    with swapping(home, swap, "process"):
        assert naive_reader_escapes(home, path, naive_open)


@pytest.mark.parametrize("kind", ["thread", "process"])
@pytest.mark.parametrize(("swap", "path"), READS)
def test_no_read_escapes_while_links_are_swapped(
    home: Path, sandbox: Sandbox, swap: str, path: str, kind: str
) -> None:
    with swapping(home, swap, kind):
        inside, escaped = read_while_swapping(sandbox, path, 2_000)
    assert escaped == 0
    assert inside > 0


@pytest.mark.slow
@pytest.mark.parametrize(("swap", "path"), READS)
def test_no_read_of_a_hundred_thousand_escapes(
    home: Path, sandbox: Sandbox, swap: str, path: str
) -> None:
    with swapping(home, swap, "process"):
        inside, escaped = read_while_swapping(sandbox, path, 100_000)
    assert escaped == 0
    assert inside > 0


WRITES = [("swap_directory", "a/new"), ("swap_directory", "a/file"), ("swap_file", "file")]


def naive_write_escapes(home: Path, path: str) -> bool:
    target = home / "outside" / Path(path).name
    for _ in range(300_000):
        with suppress(OSError), open(naive_path(home, path), "wb") as file:  # noqa: PTH123  # as naive as can be
            file.write(b"written")
        if target.exists() and target.read_bytes() == b"written":
            return True
    return False


def write_while_swapping(sandbox: Sandbox, path: str, tries: int) -> int:
    done = turn = 0
    while turn < tries or (not done and turn < PATIENCE):
        turn += 1
        with suppress(ToolError):
            if turn % 2:
                sandbox.edit(path, lambda _data: b"written")
            else:
                sandbox.write(path, b"written")
            done += 1
    return done


def outside(home: Path) -> dict[str, bytes]:
    files = [path for path in (home / "outside").rglob("*") if path.is_file()]
    return {path.name: path.read_bytes() for path in [*files, home / "file"]}


@pytest.mark.parametrize(("swap", "path"), WRITES)
def test_the_swapper_gets_a_naive_writer_out(home: Path, swap: str, path: str) -> None:
    with swapping(home, swap, "process"):
        assert naive_write_escapes(home, path)


@pytest.mark.parametrize("kind", ["thread", "process"])
@pytest.mark.parametrize(("swap", "path"), WRITES)
def test_no_write_escapes_while_links_are_swapped(
    home: Path, sandbox: Sandbox, swap: str, path: str, kind: str
) -> None:
    with swapping(home, swap, kind):
        done = write_while_swapping(sandbox, path, 300)
    assert outside(home) == {"file": b"outside"}
    assert done > 0


@pytest.mark.slow
@pytest.mark.parametrize(("swap", "path"), WRITES)
def test_no_write_of_twenty_thousand_escapes(
    home: Path, sandbox: Sandbox, swap: str, path: str
) -> None:
    with swapping(home, swap, "process"):
        done = write_while_swapping(sandbox, path, 20_000)
    assert outside(home) == {"file": b"outside"}
    assert done > 0


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_no_listing_shows_what_is_outside_while_links_are_swapped(
    home: Path, sandbox: Sandbox, kind: str
) -> None:
    (home / "outside" / "private-name").write_bytes(b"")
    with swapping(home, "swap_directory", kind):
        for _ in range(500):
            with suppress(ToolError):
                names = [entry.path for entry in sandbox.list_directory(depth=3).entries]
                assert "a/private-name" not in names
            with suppress(ToolError):
                names = [entry.path for entry in sandbox.list_directory("a").entries]
                assert "a/private-name" not in names
