"""Directories of a server, while it lives and when it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.core.processes.temporary import TemporaryPlace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other locks")

KILLED = """
import os, signal, sys
sys.path.append(sys.argv[1])
from tools.core.processes.temporary import TemporaryPlace
place = TemporaryPlace()
open(place.path + "/file", "w").close()
print(place.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def age(path: Path) -> None:
    hour_ago = time.time() - 3600
    os.utime(path, (hour_ago, hour_ago))


def test_what_a_killed_server_left_is_removed_and_no_other_servers(temporary: Path) -> None:
    root = str(Path(__file__).parents[4])
    with subprocess.Popen(
        [sys.executable, "-ISc", KILLED, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        path = Path(os.fsdecode(server.stdout.readline()).strip())
        age(path)
        TemporaryPlace().close()
        assert (path / "file").exists()
        server.send_signal(signal.SIGKILL)
    age(path)
    place = TemporaryPlace()
    assert [each.name for each in temporary.iterdir()] == [Path(place.path).name]
    place.close()
    assert list(temporary.iterdir()) == []


def test_a_directory_that_is_just_made_is_left(temporary: Path) -> None:
    first = Path(TemporaryPlace().path)
    assert not first.exists()  # nobody has kept it
    first.mkdir()
    TemporaryPlace().close()
    assert first.exists()


def test_a_link_in_its_place_is_not_followed(temporary: Path) -> None:
    outside = temporary / "outside"
    outside.mkdir()
    age(outside)
    (temporary / "toolcrib-own-link").symlink_to(outside)
    os.utime(temporary / "toolcrib-own-link", (1, 1), follow_symlinks=False)
    TemporaryPlace().close()
    assert outside.is_dir()
