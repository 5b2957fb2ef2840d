"""Tests of sign-in to other servers, against a real authorization server."""

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client._memory import InMemoryTransport

from server.app import App
from server.settings.gateway import ServerSettings
from server.settings.safety import PolicySettings
from tests.server.serving import running

pytestmark = pytest.mark.slow

SERVER = Path(__file__).with_name("authorization_server.py")


class World:
    """A data directory with one server that requires sign-in."""

    def __init__(self, place: Path, port: int) -> None:
        self.place = place
        self.url = f"http://127.0.0.1:{port}"
        self.config = place / "config.toml"
        self.configure("")
        self.variables = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        self.stored = place / "data" / "sign-ins" / "toy.json"

    def configure(self, more: str) -> None:
        self.config.write_text(f'[servers.toy]\nurl = "{self.url}/mcp"\n{more}')

    def change(self, **now: object) -> None:
        httpx2.post(f"{self.url}/now", json=now)

    @property
    def seen(self) -> list[str]:
        found: list[str] = httpx2.get(f"{self.url}/now").json()
        return found

    @property
    def sign_in(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stored.read_text())
        return found

    def expire(self) -> None:
        self.stored.write_text(json.dumps({**self.sign_in, "expires_at": time.time() - 1}))

    @property
    def named(self) -> list[str]:
        return ["--data-dir", str(self.place / "data"), "--config", str(self.config)]

    def start(self, *words: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", "from server.cli import main; main()", *words]
        return subprocess.Popen(
            [*command, *self.named],
            env={**os.environ, "COLUMNS": "400", **self.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str) -> str:
        return self.start(*words).communicate(timeout=60)[0]

    def start_login(self) -> "tuple[subprocess.Popen[str], str]":
        """Starts to sign in; returns the process, and the page that it shows."""
        running = self.start("servers", "login", "toy", "--no-browser")
        assert running.stdout is not None
        printed = ""
        while not (found := re.search(r"http://\S+/authorize\?\S+", printed)):
            line = running.stdout.readline()
            assert line, printed
            printed += line
        return running, found[0]

    def log_in(self) -> str:
        """Signs in as a browser would."""
        running, page = self.start_login()
        redirect = httpx2.get(page).headers["location"]
        assert httpx2.get(redirect).status_code == 200
        return running.communicate(timeout=60)[0]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with subprocess.Popen(
        [sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield World(tmp_path, int(process.stdout.readline()))
        process.kill()


def test_a_person_signs_in_and_out(world: World) -> None:
    before = world.run("servers", "list")
    assert "requires sign-in" in before
    assert "servers login toy" in before
    assert "token is wrong" not in before
    assert "servers login toy" in world.run("servers", "test", "toy")
    assert "Signed in to toy" in world.log_in()
    assert stat.S_IMODE(world.stored.stat().st_mode) == 0o600
    listed = world.run("servers", "list")
    assert "1 tool" in listed
    assert world.sign_in["tokens"]["access_token"] not in listed
    assert "revoked and removed" in world.run("servers", "logout", "toy")
    assert not world.stored.exists()
    assert "requires sign-in" in world.run("servers", "list")


def test_tokens_are_in_the_keyring_if_there_is_one(world: World) -> None:
    entries = world.place / "entries.json"
    backend = f"{__package__}.file_keyring.Keyring"
    world.variables = {"PYTHON_KEYRING_BACKEND": backend, "KEYRING_FILE": str(entries)}
    world.log_in()
    assert world.stored.read_text() == ""
    assert "access_token" in entries.read_text()
    assert "1 tool" in world.run("servers", "list")
    assert "revoked and removed" in world.run("servers", "logout", "toy")
    assert json.loads(entries.read_text()) == {}
    assert "requires sign-in" in world.run("servers", "list")


def test_an_expired_token_is_refreshed_once_by_two_processes(world: World) -> None:
    world.log_in()
    before = world.sign_in
    world.expire()
    both = [world.start("servers", "list"), world.start("servers", "list")]
    for each in both:
        assert "1 tool" in each.communicate(timeout=60)[0]
    assert world.sign_in["tokens"]["refresh_token"] != before["tokens"]["refresh_token"]
    assert world.sign_in["expires_at"] > time.time()
    assert world.seen.count("refreshed") == 1


def test_a_token_is_kept_while_the_authorization_server_does_not_answer(world: World) -> None:
    world.log_in()
    world.expire()
    before = world.sign_in
    world.change(broken=True)
    printed = world.run("servers", "list")
    assert "is signed in, but its authorization server does not answer: it answered 503" in printed
    assert "requires sign-in" not in printed
    assert world.sign_in == before
    world.change(broken=False)
    assert "1 tool" in world.run("servers", "list")


def test_a_refused_refresh_requires_sign_in_again(world: World) -> None:
    world.log_in()
    tokens = {**world.sign_in["tokens"], "refresh_token": "stale"}
    world.stored.write_text(json.dumps({**world.sign_in, "tokens": tokens, "expires_at": 1}))
    assert "requires sign-in" in world.run("servers", "list")
    assert "Signed in to toy" in world.log_in()
    assert "1 tool" in world.run("servers", "list")


def test_rights_that_were_missing_are_asked_for_at_the_next_sign_in(world: World) -> None:
    world.log_in()
    world.change(needs="write")
    printed = world.run("servers", "list")
    assert "requires sign-in again, for more rights" in printed
    world.change(needs="use")
    world.log_in()
    assert world.seen[-1].endswith("for use write")


@pytest.mark.parametrize(
    ("settings", "client"),
    [
        ('client_id = "known"\nclient_secret = "hush"\n', "known"),
        (
            'client_metadata_url = "https://example.com/toolcrib.json"\n',
            "https://example.com/toolcrib.json",
        ),
    ],
)
def test_a_client_in_the_settings_is_not_registered_again(
    world: World, settings: str, client: str
) -> None:
    world.configure(f"[servers.toy.oauth]\n{settings}")
    assert "Signed in to toy" in world.log_in()
    assert world.seen == [f"{client} for use"]
    world.expire()
    assert "1 tool" in world.run("servers", "list")


def test_a_redirect_with_a_wrong_state_is_not_taken(world: World) -> None:
    running, page = world.start_login()
    redirect = httpx2.URL(httpx2.get(page).headers["location"])
    forged = httpx2.get(redirect.copy_merge_params({"state": "forged"}))
    assert forged.status_code == 400
    assert httpx2.get(redirect).status_code == 200
    assert "Signed in to toy" in running.communicate(timeout=60)[0]


def test_a_declined_sign_in_stores_nothing(world: World) -> None:
    running, page = world.start_login()
    asked = parse_qs(urlsplit(page).query)
    redirect = httpx2.URL(asked["redirect_uri"][0])
    httpx2.get(redirect.copy_merge_params({"error": "access_denied", "state": asked["state"][0]}))
    assert "the sign-in was declined: access_denied" in running.communicate(timeout=60)[0]
    assert not world.stored.exists()


@asynccontextmanager
async def toolcrib(world: World) -> AsyncIterator[App]:
    """Toolcrib in this process, with the server."""
    servers = {"toy": ServerSettings(url=f"{world.url}/mcp")}
    policy = PolicySettings(allow=("*",))
    async with running(world.place, servers=servers, policy=policy) as app:
        yield app


async def connected(client: Client) -> None:
    """Waits until Toolcrib has listed the server."""
    with anyio.fail_after(20):
        while (await client.call_tool("toy__seen", {})).is_error:  # noqa: ASYNC110
            await anyio.sleep(0.05)


async def test_a_call_names_the_command_and_works_after_it(world: World) -> None:
    async with (
        toolcrib(world) as app,
        Client(InMemoryTransport(app.server), mode="legacy") as client,
    ):
        await anyio.to_thread.run_sync(world.log_in)
        await connected(client)
        world.change(forgets=True)
        refused = await client.call_tool("toy__seen", {})
        assert refused.is_error
        assert "'toy' requires sign-in." in str(refused.content)
        assert "servers login toy" in str(refused.content)
        await anyio.to_thread.run_sync(world.log_in)
        assert not (await client.call_tool("toy__seen", {})).is_error


class Visitor:
    """A person who signs in on each page that is shown."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def __call__(
        self,
        context: object,  # noqa: ARG002  # the SDK's name
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestURLParams)
        self.messages.append(params.message)
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            await browser.get(params.url)
        return types.ElicitResult(action="accept")

    async def visits(self, world: World, client: Client) -> None:
        await connected(client)
        world.change(forgets=True)
        result = await client.call_tool("toy__seen", {})
        assert not result.is_error, result
        assert self.messages == ["The server 'toy' asks: Please sign in."]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_client_that_can_show_pages_is_asked_to_sign_in(world: World, era: str) -> None:
    world.log_in()
    visitor = Visitor()
    async with toolcrib(world) as app:
        transport = InMemoryTransport(app.server)
        async with Client(transport, mode=era, elicitation_callback=visitor) as client:
            await visitor.visits(world, client)


async def test_a_client_that_attaches_is_asked_to_sign_in(world: World) -> None:
    world.log_in()
    visitor = Visitor()
    (world.place / "root").mkdir()
    with tempfile.TemporaryDirectory() as runtime:
        settings = {"ATTACH": "1", "POLICY__ALLOW": "*", "ROOT": str(world.place / "root")}
        started = StdioServerParameters(
            command=sys.executable,
            args=["-c", "from server.cli import main; main()", "serve", *world.named],
            env={
                **os.environ,
                **world.variables,
                **{f"TOOLCRIB_{name}": value for name, value in settings.items()},
                "XDG_RUNTIME_DIR": runtime,
            },
        )
        async with Client(started, mode="legacy", elicitation_callback=visitor) as client:
            await visitor.visits(world, client)
            assert await anyio.to_thread.run_sync(lambda: list(Path(runtime).rglob("*.sock")))
