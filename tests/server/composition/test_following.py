"""Edits of the settings file while a real server runs, with real servers behind it."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.client.session import IncomingMessage

from server.app import App, build
from server.settings.sources import load
from tests.server.upstream.connections.conftest import Frail

pytestmark = pytest.mark.slow

ALLOWED = '[policy]\nallow = ["*"]\n'
SHELL = Path(__file__).parents[1] / "upstream" / "shell_upstream.py"
FUNCTION = 'def triple(number: int) -> int:\n    """Triples."""\n    return 3 * number\n'


class Edited:
    """A running server, its settings file, and a client."""

    def __init__(self, app: App, file: Path, client: Client, heard: list[str]) -> None:
        self.app = app
        self.file = file
        self.client = client
        self.heard = heard

    async def call(self, name: str, **arguments: Any) -> str:
        params = types.CallToolRequestParams(name=name, arguments=arguments)
        request = types.CallToolRequest(params=params)
        result = await self.client.session.send_request(request, types.CallToolResult)
        return "\n".join(each.text for each in result.content)  # type: ignore[union-attr]

    async def answers(self, name: str, says: str, **arguments: Any) -> None:
        """Waits until a call answers that."""
        with anyio.fail_after(30):
            while says not in await self.call(name, **arguments):  # noqa: ASYNC110  # another task
                await anyio.sleep(0.05)

    async def hears(self, change: str) -> None:
        """Waits until the client is notified of that."""
        with anyio.fail_after(30):
            while change not in self.heard:  # noqa: ASYNC110  # another task brings it about
                await anyio.sleep(0.05)


@asynccontextmanager
async def edited(place: Path, text: str) -> AsyncIterator[Edited]:
    (place / "root").mkdir()
    file, heard = place / "config.toml", list[str]()
    file.write_text(text)

    async def hear(message: IncomingMessage) -> None:
        heard.append(type(message).__name__)

    flags = {"root": place / "root", "data_dir": place / "data"}
    app = build(load(flags, config_file=file, environ={}))
    async with app.running():
        transport = InMemoryTransport(app.server)
        async with Client(transport, mode="legacy", message_handler=hear) as client:
            yield Edited(app, file, client, heard)


def table(server: Frail, name: str, more: str = "") -> str:
    settings = server.settings()
    return f'[servers.{name}]\ncommand = "{settings.command}"\nargs = {[*settings.args]}\n{more}\n'


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def frail(tmp_path: Path) -> Callable[..., Frail]:
    return lambda name, **switches: Frail(tmp_path / name, **switches)


async def test_servers_follow_the_file_and_those_that_stay_keep_their_connections(
    frail: Any, tmp_path: Path
) -> None:
    kept, gone, new = frail("kept"), frail("gone"), frail("new")
    before = ALLOWED + table(kept, "kept") + table(gone, "gone")
    async with edited(tmp_path, before) as running:
        assert await running.call("gone__echo", text="here") == "here"
        assert await running.call("kept__echo", text="here") == "here"
        running.file.write_text(ALLOWED + table(new, "new") + table(kept, "kept"))
        await running.answers("new__echo", "hello", text="hello")
        assert "unknown_tool" in await running.call("gone__echo", text="here")
        assert await running.call("kept__echo", text="still") == "still"
        assert len(kept.pids) == 1
        with anyio.fail_after(20):
            while runs(gone.pids[0]):  # noqa: ASYNC110  # another process
                await anyio.sleep(0.05)
        assert list(running.app.gateway.upstreams) == ["new", "kept"]


async def test_a_changed_server_is_connected_to_again_by_its_new_settings(
    frail: Any, tmp_path: Path
) -> None:
    toy = frail("toy", tools=["variable"])
    async with edited(tmp_path, ALLOWED + table(toy, "toy")) as running:
        assert await running.call("toy__variable", text="KEY") == ""
        running.file.write_text(ALLOWED + table(toy, "toy", 'env = { KEY = "new" }'))
        await running.answers("toy__variable", "new", text="KEY")
        assert len(toy.pids) == 2
        running.file.write_text(ALLOWED + table(toy, "toy", "enabled = false"))
        await running.answers("toy__variable", "unknown_tool", text="KEY")


@pytest.mark.skipif(sys.platform != "linux", reason="servers run confined on Linux")
async def test_a_confined_server_reaches_what_an_edit_gives_it(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one").write_text("a note")
    server = f'[servers.sh]\ncommand = "{sys.executable}"\nargs = ["{SHELL}"]\nsandbox = true\n'
    line = f"cat {tmp_path}/notes/one"
    async with edited(tmp_path, f'{ALLOWED}{server}readable = ["{SHELL}"]\n') as running:
        await running.answers("sh__sh", "out of reach", line=line)
        running.file.write_text(f'{ALLOWED}{server}readable = ["{SHELL}", "{tmp_path}/notes"]\n')
        await running.answers("sh__sh", "a note", line=line)


async def test_the_first_server_can_be_added_while_running(frail: Any, tmp_path: Path) -> None:
    toy = frail("toy")
    async with edited(tmp_path, "# Nothing yet.\n") as running:
        assert "unknown_tool" in await running.call("toy__echo", text="early")
        running.file.write_text(ALLOWED + table(toy, "toy"))
        await running.answers("toy__echo", "late", text="late")
        await running.hears("PromptListChangedNotification")
    assert not any(map(runs, toy.pids))


async def test_an_invalid_edit_changes_nothing_and_is_reported_once(
    frail: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    toy = frail("toy")
    async with edited(tmp_path, ALLOWED + table(toy, "toy")) as running:
        wrong = table(toy, "toy", 'url = "http://127.0.0.1/mcp"')
        for _ in range(2):
            running.file.write_text(f'[policy]\ndeny = ["*"]\n{wrong}')
            assert await running.call("toy__echo", text="on") == "on"
        assert len(toy.pids) == 1
    [line] = [each for each in caplog.messages if "unchanged" in each]
    assert "servers.toy" in line
    assert str(running.file) in line


async def test_profiles_hold_from_the_next_call_on_and_clients_hear_of_them(tmp_path: Path) -> None:
    async with edited(tmp_path, ALLOWED) as running:
        assert "permission" not in await running.call("list_directory", path=".")
        running.file.write_text(ALLOWED + '[profiles.any]\nclients = "*"\ndeny = ["tag:files"]\n')
        assert "profile 'any'" in await running.call("list_directory", path=".")
        await running.hears("ToolListChangedNotification")
        names = {each.name for each in (await running.client.list_tools()).tools}
        assert "list_directory" not in names


async def test_a_profile_changes_how_large_results_may_be_while_running(tmp_path: Path) -> None:
    async with edited(tmp_path, ALLOWED) as running:
        (tmp_path / "root" / "long").write_text("a line\n" * 500)
        assert "Large result" not in await running.call("read_file", path="long")
        running.file.write_text(ALLOWED + '[profiles.any]\nclients = "*"\nresult_tokens = 100\n')
        assert "Large result" in await running.call("read_file", path="long")


async def test_function_files_follow_the_file_unless_agents_could_write_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with edited(tmp_path, ALLOWED) as running:
        inside, outside = tmp_path / "root" / "theirs.py", tmp_path / "ours.py"
        for each in (inside, outside):
            each.write_text(FUNCTION)
        running.file.write_text(f"{ALLOWED}[functions]\npaths = ['{inside}']\n")
        assert "unknown_tool" in await running.call("triple", number=2)
        assert "restart Toolcrib to close it" in caplog.text
        running.file.write_text(f"{ALLOWED}[functions]\npaths = ['{outside}']\n")
        await running.answers("triple", "6", number=2)
        running.file.write_text(ALLOWED)
        await running.answers("triple", "unknown_tool", number=2)
