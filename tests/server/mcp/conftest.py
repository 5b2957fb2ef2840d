"""The real server with a function file, whose functions ask their client; real clients of it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport

from server.app import App, build
from server.settings.safety import PolicySettings
from server.settings.settings import FunctionSettings
from server.settings.sources import load
from tests.server.serving import running

HEAD = """
    import anyio
    from pathlib import Path
    from typing import Literal

    from pydantic import BaseModel, Field

    from tools.authoring import CallFailedError, DeclinedError, RequestContext, ToolError

    def _note(line):
        with Path("journal").open("a") as journal:
            journal.write(line + "\\n")
"""


class Garden:
    """A running server, with what its functions noted."""

    def __init__(self, app: App, root: Path, file: Path) -> None:
        self.app = app
        self.root = root
        self.file = file

    @property
    def noted(self) -> list[str]:
        journal = self.root / "journal"
        return journal.read_text("utf-8").splitlines() if journal.exists() else []

    async def notes(self, line: str) -> None:
        """Waits until a function has noted that."""
        with anyio.fail_after(20):
            while line not in self.noted:  # noqa: ASYNC110  # another process writes it
                await anyio.sleep(0.005)

    def client(self, mode: str, **can: Any) -> Client:
        return Client(InMemoryTransport(self.app.server), mode=mode, **can)


@pytest.fixture
def garden_of(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Garden]]:
    """Runs the server with functions of this source."""
    file = tmp_path / "functions" / "garden.py"
    file.parent.mkdir()

    @asynccontextmanager
    async def make(
        source: str, *, ask: tuple[str, ...] = (), **settings: Any
    ) -> AsyncIterator[Garden]:
        file.write_text(dedent(HEAD) + dedent(source), encoding="utf-8")
        settings["functions"] = FunctionSettings(paths=(file,))
        policy = PolicySettings(allow=("*",), ask=ask)
        async with running(tmp_path, policy=policy, **settings) as app:
            await app.functions.loaded()
            assert not app.functions.problems, app.functions.problems
            yield Garden(app, tmp_path / "root", file)

    return make


@pytest.fixture
async def client_of(tmp_path: Path, team: Path) -> AsyncIterator[Callable[..., Client]]:
    """Makes clients of the real server, with the skills of the fixture `team` and its own."""
    (tmp_path / "root").mkdir()
    apps = []

    def make(mode: str = "2026-07-28", **more: object) -> Client:
        flags = {
            "data_dir": tmp_path / "data",
            "root": tmp_path / "root",
            "skills.directories": [str(team)],
            "skills.discover": False,
        }
        apps.append(build(load(flags | more, environ={"TOOLCRIB_CONFIG": ""})))
        return Client(apps[-1].server, mode=mode)

    yield make
    for app in apps:
        app.library.close()
