"""Links and directories swapped while a path is opened.

Each swapper is first shown to get a naive reader or writer out of the root, so that a race that
does not race cannot pass for a sandbox that holds.
"""

import ctypes
import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest

from tools.core.errors import InvalidArgumentsError, PermissionDeniedError, ToolError
from tools.sandbox.files.openat import DirectoryOpener, open_beneath, walk_beneath
from tools.sandbox.files.protect import Name
from tools.sandbox.files.sandbox import Sandbox

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

def swap_rule(home):
    \"\"\"The directory "a" becomes a link to a denied place, and a directory again.\"\"\"
    exchange(home + "/root/a", home + "/root/link-to-denied")

def swap_pipe(home):
    \"\"\"The file "file" becomes a pipe, and a file again.\"\"\"
    exchange(home + "/root/file", home + "/root/pipe")

def move_out(home):
    \"\"\"The directory "a/b" moves out of the root and back.\"\"\"
    os.rename(home + "/root/a/b", home + "/outside/b")
    os.rename(home + "/outside/b", home + "/root/a/b")
"""

PATIENCE = 200_000
"""Tries after which a swapper that never leaves the path inside is a failure of the test."""

Swapping = Callable[[Path, str], AbstractContextManager[None]]


def tries(some: int, many: int) -> pytest.MarkDecorator:
    """How often a test tries, and how often it does before a release."""
    return pytest.mark.parametrize("tries", [some, pytest.param(many, marks=pytest.mark.long)])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for directory in ("root/a/b", "outside"):
        (tmp_path / directory).mkdir(parents=True)
    for file in ("root/a/file", "root/a/b/file", "root/file"):
        (tmp_path / file).write_bytes(b"inside")
    for file in ("outside/file", "file"):
        (tmp_path / file).write_bytes(b"outside")
    (tmp_path / "root" / "link-to-directory").symlink_to("../outside")
    (tmp_path / "root" / "denied").mkdir()
    (tmp_path / "root" / "denied" / "file").write_bytes(b"denied")
    (tmp_path / "root" / "link-to-denied").symlink_to("denied")
    os.mkfifo(tmp_path / "root" / "pipe")
    return tmp_path


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
def test_the_swapper_gets_a_naive_reader_out(
    home: Path, swap: str, path: str, swapping: Swapping
) -> None:
    naive_open = open_by_steps if swap == "move_out" else open_checked
    with swapping(home, swap):
        assert naive_reader_escapes(home, path, naive_open)


@tries(2_000, 100_000)
@pytest.mark.parametrize(("swap", "path"), READS)
def test_no_read_escapes_while_links_are_swapped(  # noqa: PLR0913, PLR0917  # a table
    home: Path, sandbox: Sandbox, swap: str, path: str, tries: int, swapping: Swapping
) -> None:
    with swapping(home, swap):
        inside, escaped = read_while_swapping(sandbox, path, tries)
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
def test_the_swapper_gets_a_naive_writer_out(
    home: Path, swap: str, path: str, swapping: Swapping
) -> None:
    with swapping(home, swap):
        assert naive_write_escapes(home, path)


@tries(300, 20_000)
@pytest.mark.parametrize(("swap", "path"), WRITES)
def test_no_write_escapes_while_links_are_swapped(  # noqa: PLR0913, PLR0917  # a table
    home: Path, sandbox: Sandbox, swap: str, path: str, tries: int, swapping: Swapping
) -> None:
    with swapping(home, swap):
        done = write_while_swapping(sandbox, path, tries)
    assert outside(home) == {"file": b"outside"}
    assert done > 0


def test_no_listing_shows_what_is_outside_while_links_are_swapped(
    home: Path, sandbox: Sandbox, swapping: Swapping
) -> None:
    (home / "outside" / "private-name").write_bytes(b"")
    with swapping(home, "swap_directory"):
        for _ in range(500):
            with suppress(ToolError):
                names = [entry.path for entry in sandbox.list_directory(depth=3).entries]
                assert "a/private-name" not in names
            with suppress(ToolError):
                names = [entry.path for entry in sandbox.list_directory("a").entries]
                assert "a/private-name" not in names


def naive_listing_escapes(home: Path, path: str, name: str) -> bool:
    for _ in range(300_000):
        with suppress(OSError):
            if name in os.listdir(naive_path(home, path)):  # noqa: PTH208  # as naive as can be
                return True
    return False


def test_the_swapper_gets_a_naive_listing_out(home: Path, swapping: Swapping) -> None:
    (home / "outside" / "private-name").write_bytes(b"")
    with swapping(home, "swap_directory"):
        assert naive_listing_escapes(home, "a", "private-name")


@pytest.mark.long
def test_no_listing_of_fifty_thousand_escapes(
    home: Path, sandbox: Sandbox, swapping: Swapping
) -> None:
    (home / "outside" / "private-name").write_bytes(b"")
    inside = 0
    with swapping(home, "swap_directory"):
        for _ in range(50_000):
            with suppress(ToolError):
                names = [entry.path for entry in sandbox.list_directory("a", depth=2).entries]
                assert "a/private-name" not in names
                inside += "a/file" in names
    assert inside > 0


def naive_directory_escapes(home: Path, path: str) -> bool:
    for turn in range(300_000):
        with suppress(OSError):
            os.makedirs(naive_path(home, path.format(turn)))  # noqa: PTH103  # as naive as can be
        if list((home / "outside").glob("new-*")):
            return True
    return False


def make_while_swapping(sandbox: Sandbox, tries: int) -> int:
    made = turn = 0
    while turn < tries or (not made and turn < PATIENCE):
        turn += 1
        with suppress(ToolError):
            sandbox.write(f"a/new-{turn % 50}/deep-{turn}/file", b"written")
            made += 1
    return made


def test_the_swapper_gets_a_naive_maker_of_directories_out(home: Path, swapping: Swapping) -> None:
    with swapping(home, "swap_directory"):
        assert naive_directory_escapes(home, "a/new-{}/deep")


@tries(300, 50_000)
def test_no_directory_is_made_outside_while_links_are_swapped(
    home: Path, sandbox: Sandbox, tries: int, swapping: Swapping
) -> None:
    with swapping(home, "swap_directory"):
        made = make_while_swapping(sandbox, tries)
    assert sorted(path.name for path in (home / "outside").rglob("*")) == ["file"]
    assert made > 0


class DeniedDirectory:
    """Denies one directory, by where it really is."""

    def check(self, path: str, *, writing: bool) -> None:  # noqa: ARG002  # as the rules have it
        if self.hides(path):
            raise PermissionDeniedError(path)

    def hides(self, path: str) -> bool:
        return f"{path}/".startswith("denied/")

    def permits(self, _path: str) -> tuple[Name, ...]:
        return ()


def naive_rule_is_passed(home: Path, path: str) -> bool:
    """Judges where a path leads, and then opens it."""
    root = str(home / "root")
    for _ in range(300_000):
        with suppress(OSError):
            real = os.path.realpath(f"{root}/{path}")
            if real.startswith(f"{root}/denied/"):
                continue
            with open(f"{root}/{path}", "rb") as file:  # noqa: PTH123  # as naive as can be
                if file.read() == b"denied":
                    return True
    return False


def test_the_swapper_gets_past_a_naive_rule(home: Path, swapping: Swapping) -> None:
    with swapping(home, "swap_rule"):
        assert naive_rule_is_passed(home, "a/file")


def use_while_swapping(home: Path, sandbox: Sandbox, tries: int) -> tuple[int, int]:
    """Counts what was done in the open place, and what in the denied one."""
    done = denied = turn = 0
    while turn < tries or (not done and turn < PATIENCE):
        turn += 1
        try:
            match turn % 4:
                case 0:
                    sandbox.edit("a/file", lambda _data: b"inside")
                case 1:
                    denied += "a/secret" in [
                        each.path for each in sandbox.list_directory("a").entries
                    ]
                case _:
                    denied += sandbox.read("a/file", max_bytes=100).data == b"denied"
        except ToolError:
            continue
        done += 1
    return done, denied


@tries(1_000, 100_000)
def test_no_rule_is_passed_while_links_are_swapped(
    home: Path, sandbox: Sandbox, tries: int, swapping: Swapping
) -> None:
    (home / "root" / "denied" / "secret").write_bytes(b"")
    with swapping(home, "swap_rule"):
        done, denied = use_while_swapping(home, sandbox.ruled(DeniedDirectory()), tries)
    assert denied == 0
    assert done > 0
    assert (home / "root" / "denied" / "file").read_bytes() == b"denied"


def naive_reader_meets_a_pipe(home: Path) -> bool:
    """Looks whether it is a file, and then opens it, which would wait but for O_NONBLOCK."""
    path = str(home / "root" / "file")
    for _ in range(300_000):
        with suppress(OSError):
            if not os.path.isfile(path):  # noqa: PTH113  # as naive as can be
                continue
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    return True
            finally:
                os.close(fd)
    return False


def test_the_swapper_gets_a_naive_reader_to_a_pipe(home: Path, swapping: Swapping) -> None:
    with swapping(home, "swap_pipe"):
        assert naive_reader_meets_a_pipe(home)


def test_no_read_waits_for_a_pipe_that_is_swapped_in(
    home: Path, sandbox: Sandbox, swapping: Swapping
) -> None:
    refused = 0
    with swapping(home, "swap_pipe"):
        for _ in range(2_000):
            try:
                assert sandbox.read("file", max_bytes=100).data == b"inside"
            except InvalidArgumentsError:
                refused += 1
    assert refused > 0


def test_no_write_goes_out_with_a_directory_that_moves(
    home: Path, sandbox: Sandbox, swapping: Swapping
) -> None:
    with swapping(home, "move_out"):
        for turn in range(300):
            with suppress(ToolError):
                sandbox.write("a/b/../../file", b"written")
            with suppress(ToolError):
                sandbox.write(f"a/b/../new-{turn % 5}/file", b"written")
    assert (home / "file").read_bytes() == b"outside"
    assert (home / "outside" / "file").read_bytes() == b"outside"
    assert {path.name for path in home.iterdir()} == {"root", "outside", "file"}
    assert {path.name for path in (home / "outside").iterdir()} <= {"file", "b"}
