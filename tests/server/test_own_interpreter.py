"""The interpreter that runs the server, where it lies in the root of agents."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from server.composition.machine import MachineParts
from server.settings import Settings
from tools.core.errors import UnavailableError
from tools.sandbox.processes.models import Command

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="programs cannot be started")]


async def test_programs_do_not_change_what_the_server_is_run_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    packages = root / ".venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))
    processes = MachineParts(
        Settings(root=root, data_dir=tmp_path / "data"), os.environ
    ).processes()
    script = "mv .venv v; echo evil > .venv/lib/site-packages/a.pth; rm -r .venv; echo x > written"
    with suppress(UnavailableError):  # where nothing can be mounted over it, nothing is run
        program = await processes.start(Command(argv=("sh", "-c", script)))
        await program.wait()
        await program.aclose()
        assert (root / "written").exists()
    await processes.aclose()
    assert packages.is_dir()
    assert not list(packages.iterdir())
