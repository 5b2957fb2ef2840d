"""What real servers leave in the directory for temporary files when they are killed: nothing."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.boundary


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    (tmp_path / "temporary").mkdir()
    return tmp_path / "temporary"


@pytest.fixture
def serving(temporary: Path, raw_server: Callable[..., Any]) -> Callable[[], Any]:
    """Starts a server that has run a program to its end and another one that goes on."""

    def serve() -> Any:
        server = raw_server(temporary.parent, TMPDIR=str(temporary), TOOLCRIB_POLICY__ALLOW="bash")
        endless = "echo x > $TMPDIR/file; sleep 1000"
        for arguments in ({"command": "true"}, {"command": endless, "run_in_background": True}):
            assert not server.call("bash", **arguments)["isError"]
        return server

    return serve


def with_descendants(pid: int) -> list[int]:
    found = [pid]
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in listed.read_text().split():
            found += with_descendants(int(child))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["the server", "all at once"])
def test_what_a_killed_server_left_is_gone_when_the_next_has_run_a_program(
    temporary: Path, serving: Callable[[], Any], killed: str
) -> None:
    for _ in range(2):
        server = serving()
        own = server.process.pid
        pids = with_descendants(own) if killed == "all at once" else [own]
        for number in (signal.SIGSTOP, signal.SIGKILL):  # as a service manager does it
            for pid in pids:
                with suppress(ProcessLookupError):  # it ends with the one above it
                    os.kill(pid, number)
        server.close()
    assert list(temporary.iterdir())
    serving().close()
    deadline = time.monotonic() + 20
    while list(temporary.iterdir()):  # of the killed ones, the programs end by and by
        assert time.monotonic() < deadline, list(temporary.iterdir())
