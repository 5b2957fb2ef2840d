"""`toolcrib install` configures the programs of clients, and `uninstall` undoes it."""

import subprocess

import pytest

from server.clients.locations import command_path
from tests.clients.programs import Home
from tests.clients.wires import Call

pytestmark = pytest.mark.slow


def toolcrib(home: Home, *words: str) -> str:
    """Runs a command as the user of a home, and returns what it prints."""
    return subprocess.run(
        [command_path(), *words],
        cwd=home.project,
        env={"HOME": str(home.path), "PATH": "/usr/bin:/bin", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout


def test_a_client_calls_tools_after_install_and_has_none_after_uninstall(home: Home) -> None:
    toolcrib(home, "install", home.program.name, "--no-hooks", "--yes")
    with home.model([Call("read_file", {"file_path": "note.txt"}), "Done."]) as model:
        home.prompt(model)
    assert "the keys hang behind the door" in model.asked()[-1].results[0]
    toolcrib(home, "uninstall", home.program.name, "--yes")
    with home.model(["Done."]) as model:
        home.prompt(model)
    assert "toolcrib" not in str(model.asked()[0].tools)
