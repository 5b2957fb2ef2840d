"""Attacks from within a code worker, on the real kernel: each works where nothing confines it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tools
from tests.tools.functions.programs.conftest import run
from tools.sandbox.processes.models import Level

if TYPE_CHECKING:
    from tests.tools.functions.programs.conftest import OpenWorkers

pytestmark = [
    pytest.mark.boundary,
    pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's"),
]

SECRET = "the-secret-canary"  # noqa: S105  # nothing but a mark

ATTACKS = {
    "a file of the user's": "open(OUT + '/file').read()",
    "the root": "open(ROOT + '/own').read()",
    "the data directory": "open(DATA + '/own').read()",
    "a home": "[x for x in os.listdir(HOME) if x not in sys.prefix + sys.base_prefix + os.getcwd()]"
    " or None",
    "another's environment": "open(f'/proc/{VICTIM}/environ').read()",
    "the server's environment": "open(f'/proc/{SERVER}/environ').read()",
    "another's memory": "open(f'/proc/{VICTIM}/mem', 'rb').read(0) and None or 'read'",
    "the way through another's root": "open(f'/proc/{VICTIM}/root{OUT}/file').read()",
    "a signal": "os.kill(VICTIM, 0) or 'sent'",
    "a signal to the server": "os.kill(SERVER, 0) or 'sent'",
    "tracing": "'traced' if not ctypes.CDLL(None).ptrace(16, VICTIM, 0, 0) else refused()",
    "TCP": "socket.create_connection(('127.0.0.1', TCP), 5) and 'reached'",
    "a Unix socket": "socket.socket(1).connect(OUT + '/socket') or 'reached'",
    "an abstract Unix socket": "socket.socket(1).connect('\\0' + ABSTRACT) or 'reached'",
    "a file in the packages": "open(PACKAGE + '/evil.py', 'w').close() or 'made'",
    "a change of the packages": "open(PACKAGE + '/__init__.py', 'r+').close() or 'open'",
    "rights of the packages": "os.chmod(PACKAGE + '/__init__.py', 0o666) or 'changed'",
    "a link in the packages": "os.symlink('/', PACKAGE + '/link') or 'made'",
    "what lies beside the packages": "os.listdir(PACKAGE + '/../server')",
    "a file in its directory": "open('evil', 'w').close() or 'made'",
}
"""Expressions that come to something where they work."""

HELD = {
    *("another's memory", "the way through another's root", "a signal", "a signal to the server"),
    "tracing",
}
"""What no program may do that the server starts, confined or not, where the kernel can tell."""

ENVIRONMENTS = {"another's environment", "the server's environment"}
"""What a user without rights may not see either: their programs have a user namespace."""

LOCKED = """
import ctypes, os, socket, sys
def refused():
    raise PermissionError
{names}
try:
    found = {attack}
except Exception as error:
    found = None
repr(found) if found is not None else None
"""


@pytest.fixture
def names(tmp_path: Path) -> Iterator[dict[str, object]]:
    """What the attacks are about."""
    for folder in ("outside", "root", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "outside" / "file").write_text(SECRET)
    (tmp_path / "root" / "own").write_text(SECRET)
    (tmp_path / "data" / "own").write_text(SECRET)
    abstract = f"toolcrib-code-workers-{os.getpid()}"
    with (
        subprocess.Popen(["/bin/sleep", "120"], env={"S": SECRET}) as victim,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as hidden,
    ):
        unix.bind(str(tmp_path / "outside" / "socket"))
        hidden.bind("\0" + abstract)
        unix.listen()
        hidden.listen()
        yield {
            "OUT": str(tmp_path / "outside"),
            "ROOT": str(tmp_path / "root"),
            "DATA": str(tmp_path / "data"),
            "HOME": str(Path.home()),
            "VICTIM": victim.pid,
            "SERVER": os.getpid(),
            "TCP": tcp.getsockname()[1],
            "ABSTRACT": abstract,
            "PACKAGE": str(Path(tools.__file__).parent),
        }
        victim.kill()


async def worked(
    open_workers: OpenWorkers, level: Level, names: dict[str, object], attacks: dict[str, str]
) -> dict[str, str]:
    """The attacks that came to something, and to what."""
    found = {}
    given = "\n".join(f"{name} = {value!r}" for name, value in names.items())
    async with open_workers(level) as workers:
        for name, attack in attacks.items():
            outcome, _ = await run(workers, LOCKED.format(names=given, attack=attack))
            assert "error" not in outcome, outcome
            if outcome["value"] is not None:
                found[name] = outcome["value"]
    return found


@pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK])
async def test_no_attack_from_a_cell_works(
    open_workers: OpenWorkers, names: dict[str, object], level: Level
) -> None:
    assert await worked(open_workers, level, names, ATTACKS) == {}


async def test_the_attacks_that_only_look_work_where_nothing_confines(
    open_workers: OpenWorkers, names: dict[str, object]
) -> None:
    looking = {
        name: attack
        for name, attack in ATTACKS.items()
        if "PACKAGE" not in attack and name not in HELD
    }
    found = await worked(open_workers, Level.NONE, names, looking)
    assert looking.keys() - found.keys() == (set() if os.geteuid() == 0 else ENVIRONMENTS)


@pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK, Level.NONE])
async def test_no_secret_of_the_servers_environment_is_in_a_code_workers(
    open_workers: OpenWorkers, monkeypatch: pytest.MonkeyPatch, level: Level
) -> None:
    monkeypatch.setenv("CANARY", SECRET)
    async with open_workers(level, environment=["CANARY"]) as workers:
        outcome, _ = await run(workers, "import os\ndict(os.environ)")
    assert SECRET not in str(outcome)
