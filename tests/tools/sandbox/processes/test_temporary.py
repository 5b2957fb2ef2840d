"""Directories of a server, while it lives and when it was killed."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.sandbox.processes.temporary import PrivateDirectory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other locks")

KILLED = """
import os, signal, sys
sys.path.append(sys.argv[1])
from tools.sandbox.processes.temporary import PrivateDirectory
place = PrivateDirectory()
open(place.path + "/file", "w").close()
print(place.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def test_what_a_killed_server_left_is_removed_and_no_other_servers(temporary: Path) -> None:
    root = str(Path(__file__).parents[4])
    with subprocess.Popen(
        [sys.executable, "-ISc", KILLED, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        path = Path(os.fsdecode(server.stdout.readline()).strip())
        PrivateDirectory().close()
        assert (path / "file").exists()
        server.send_signal(signal.SIGKILL)
    place = PrivateDirectory()
    assert [each.name for each in temporary.iterdir()] == [Path(place.path).name]
    place.close()
    assert list(temporary.iterdir()) == []


def test_what_nobody_keeps_is_gone_at_once() -> None:
    path = Path(PrivateDirectory().path)
    assert not path.exists()


def test_whatever_a_program_left_in_it_is_removed(temporary: Path) -> None:
    forgotten = temporary / "toolcrib-own-forgotten"
    forgotten.mkdir()
    held = os.open(forgotten, os.O_RDONLY)
    for _ in range(2_000):  # deeper than a path can name, and than a recursion goes
        os.mkdir("d", 0o700, dir_fd=held)
        below = os.open("d", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = below
    os.fchmod(held, 0)
    os.close(held)
    PrivateDirectory().close()
    assert list(temporary.iterdir()) == []


def test_many_that_are_made_at_once_do_not_remove_each_others(temporary: Path) -> None:
    def make(_number: int) -> bool:
        place = PrivateDirectory()
        kept = Path(place.path).is_dir()
        place.close()
        return kept

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(make, range(300)))
    assert list(temporary.iterdir()) == []


def test_a_link_in_its_place_is_not_followed(temporary: Path) -> None:
    outside = temporary / "outside"
    outside.mkdir()
    (temporary / "toolcrib-own-link").symlink_to(outside)
    PrivateDirectory().close()
    assert outside.is_dir()
