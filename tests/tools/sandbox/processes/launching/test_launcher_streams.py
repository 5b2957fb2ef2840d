"""Programs that the user chose: fed as long as they run, and with the privileges that they gain."""

from __future__ import annotations

import os
import sys

import pytest

from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.models import Prepared


async def _printed(launcher: Launcher, script: str, *, fed: bytes = b"") -> str:
    readable, writable = os.pipe()
    prepared = Prepared(argv=("/bin/sh", "-c", script), cwd="/", environment={"PATH": os.defpath})
    running = await launcher.start(prepared, stdin=readable)
    os.close(readable)
    os.write(writable, fed)
    os.close(writable)
    try:
        assert await running.wait() == 0
        return os.read(running.stdout, 4_096).decode()
    finally:
        await running.aclose()
        await launcher.aclose()


async def test_a_program_reads_what_it_is_fed_while_it_runs() -> None:
    assert await _printed(Launcher(), "cat", fed=b"fed") == "fed"


@pytest.mark.skipif(sys.platform != "linux", reason="a bit of Linux")
@pytest.mark.parametrize(("privileged", "bit"), [(False, "1"), (True, "0")])
async def test_only_what_the_user_chose_may_gain_privileges(privileged: bool, bit: str) -> None:
    script = "grep NoNewPrivs /proc/self/status"
    assert (await _printed(Launcher(privileged=privileged), script)).split()[-1] == bit
