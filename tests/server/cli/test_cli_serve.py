from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

SERVE = [sys.executable, "-c", "from server.cli import main; main()", "serve"]


def ended(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What became of `toolcrib serve` with its stdin closed by the client at once."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("TOOLCRIB_")}
    return subprocess.run(
        [*SERVE, *arguments],
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=30,
        env={**environ, "HOME": str(directory / "home")},
        cwd=directory,
    )


def test_what_is_kept_is_private_to_its_user(tmp_path: Path) -> None:
    server = ended(tmp_path, "--data-dir", str(tmp_path / "data"))
    assert (server.returncode, server.stdout) == (0, "")
    for path in (tmp_path / "data", *(tmp_path / "data").rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_data_directory_that_cannot_be_made_is_one_line_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    server = ended(tmp_path, "--data-dir", str(tmp_path / "file" / "data"))
    assert (server.returncode, server.stdout) == (1, "")
    assert server.stderr.startswith("Error: data_dir = ")
    assert server.stderr.count("\n") == 1


@pytest.mark.parametrize("transport", ["sse", "http"])
def test_a_port_in_use_is_exit_code_1(tmp_path: Path, transport: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        server = ended(
            tmp_path, "--transport", transport, "--port", port, "--data-dir", str(tmp_path / "data")
        )
    assert server.returncode == 1
    assert f"Error: Listening on 127.0.0.1 port {port} is in use." in server.stderr
