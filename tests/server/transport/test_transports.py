import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

TOY = Path(__file__).with_name("toy_server.py")
TOKEN = "a-secret.for_tests"  # noqa: S105  # guards a toy
LONG_TOKEN = "a-longer-secret.for_tests-0123"  # noqa: S105  # guards a toy
ERAS = ("legacy", "2026-07-28")
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HEADERS = {"Accept": "application/json, text/event-stream"}

pytestmark = pytest.mark.slow


@dataclass
class Toy:
    process: subprocess.Popen[str]
    url: str
    journal: Path

    @property
    def notes(self) -> list[str]:
        return self.journal.read_text().split()

    def stop(self, number: int) -> str:
        """Sends the signal, waits for the end, and returns what was logged."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=10)[1]


def environment(directory: Path, **settings: str) -> dict[str, str]:
    ours = {f"TOOLCRIB_{name}": value for name, value in settings.items()}
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TOOLCRIB_")}
    return {
        **inherited,
        "TOOLCRIB_DATA_DIR": str(directory / "data"),
        "TOY_JOURNAL": str(directory / "journal"),
        **ours,
    }


@contextmanager
def toy(transport: str, directory: Path, **settings: str) -> Iterator[Toy]:
    """The toy server on a free port, ready."""
    settings = {"HTTP__PORT": "0", **settings}
    with subprocess.Popen(
        [sys.executable, str(TOY), transport],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(directory, **settings),
    ) as process:
        try:
            assert process.stderr is not None
            url = next(filter(None, (re.search(r"http://\S+", line) for line in process.stderr)))
            yield Toy(process, url[0], directory / "journal")
        finally:
            process.kill()


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toy]:
    with toy("http", tmp_path_factory.mktemp("http")) as server:
        yield server


@pytest.fixture(scope="module")
def sse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toy]:
    with toy("sse", tmp_path_factory.mktemp("sse")) as server:
        yield server


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toy]:
    with toy("http", tmp_path_factory.mktemp("locked"), HTTP__TOKEN=TOKEN) as server:
        yield server


@asynccontextmanager
async def authorized(url: str) -> AsyncIterator[Any]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as web,
        streamable_http_client(url, http_client=web) as streams,
    ):
        yield streams


async def check_echo(
    target: str | StdioServerParameters | AbstractAsyncContextManager[Any], mode: str
) -> None:
    with anyio.fail_after(10):
        async with Client(target, mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["echo", "print", "wait"]
            result = await client.call_tool("echo", {"text": "grüße"})
            assert result.content[0].text == "grüße"  # type: ignore[union-attr]  # the toy's answer


def post(url: str, **headers: str) -> httpx2.Response:
    return httpx2.post(url, json=PING, headers={**HEADERS, **headers})


async def test_a_client_of_either_era_calls_a_tool_over_stdio(tmp_path: Path, mode: str) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=[str(TOY), "stdio"], env=environment(tmp_path)
    )
    await check_echo(parameters, mode)
    assert (tmp_path / "journal").read_text().split() == ["started", "stopped"]


async def test_a_client_of_either_era_calls_a_tool_over_http(http: Toy, mode: str) -> None:
    await check_echo(http.url, mode)


async def test_a_client_calls_a_tool_over_sse(sse: Toy) -> None:
    await check_echo(sse_client(sse.url), "legacy")


async def test_a_client_with_the_token_is_served(locked: Toy, mode: str) -> None:
    await check_echo(authorized(locked.url), mode)


async def test_the_background_runs_once_however_many_clients_come(http: Toy, sse: Toy) -> None:
    for _ in range(2):
        await check_echo(http.url, "auto")
        await check_echo(sse_client(sse.url), "legacy")
    assert http.notes == sse.notes == ["started"]


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer wrong", f"Basic {TOKEN}"])
def test_a_request_without_the_token_is_refused(locked: Toy, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    response = post(locked.url, **headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example:80",
        "127.0.0.1:80.evil.example",
        "localhost:1@evil.example",
    ],
)
def test_a_foreign_host_header_is_refused(http: Toy, sse: Toy, host: str) -> None:
    assert post(http.url, Host=host).status_code == 421
    assert httpx2.get(sse.url, headers={"Host": host}).status_code == 421
    assert post(sse.url.replace("/sse", "/messages/"), Host=host).status_code == 421


@pytest.mark.parametrize(
    "origin",
    [
        *("https://evil.example", "null", "http://localhost.evil.example"),
        *("http://localhost:1.evil.example", "http://localhost:1@evil.example"),
        "http://localhost:1://evil.example",
    ],
)
def test_a_foreign_origin_is_refused(http: Toy, sse: Toy, origin: str) -> None:
    assert post(http.url, Origin=origin).status_code == 403
    assert httpx2.get(sse.url, headers={"Origin": origin}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost"},
        {"Host": "localhost:1", "Origin": "http://localhost:6274"},
        {"Host": "[::1]:8765"},
        {"Host": "127.0.0.1"},
    ],
)
def test_every_loopback_name_is_answered(http: Toy, headers: dict[str, str]) -> None:
    assert post(http.url, **headers).status_code not in {403, 421}


def test_a_header_without_end_is_refused(http: Toy) -> None:
    port = httpx2.URL(http.url).port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b"GET /mcp HTTP/1.1\r\n" + b"A: b\r\n" * 20_000)
        assert client.recv(100).startswith(b"HTTP/1.1 400")


def test_a_refused_stream_is_not_logged_as_a_failure_of_the_server(tmp_path: Path) -> None:
    with toy("sse", tmp_path) as server:
        httpx2.get(server.url, headers={"Host": "evil.example"})
        assert "Traceback" not in server.stop(signal.SIGTERM)


def test_hosts_and_origins_of_the_settings_are_answered(tmp_path: Path) -> None:
    settings = {
        "HTTP__ALLOWED_HOSTS": "crib.example:*,other.example",
        "HTTP__ALLOWED_ORIGINS": "https://app.example",
    }
    with toy("http", tmp_path, **settings) as server:
        answered = post(server.url, Host="crib.example:80", Origin="https://app.example")
        assert answered.status_code not in {403, 421}
        assert post(server.url, Host="other.example:80").status_code == 421


def run(transport: str, directory: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOY), transport],
        check=False,
        capture_output=True,
        text=True,
        timeout=20,
        env=environment(directory, **settings),
    )


@pytest.mark.parametrize("transport", ["sse", "http"])
def test_a_public_address_without_a_token_ends_the_process_with_what_to_do(
    tmp_path: Path, transport: str
) -> None:
    ended = run(transport, tmp_path, HTTP__HOST="::")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("Error: http.host = '::' can be reached")
    assert "Traceback" not in ended.stderr


def test_a_public_address_with_a_token_is_served(tmp_path: Path) -> None:
    with toy("http", tmp_path, HTTP__HOST="0.0.0.0", HTTP__TOKEN=LONG_TOKEN) as server:  # noqa: S104  # what the test is about
        assert post(server.url.replace("0.0.0.0", "127.0.0.1")).status_code == 401  # noqa: S104  # the same


def test_a_port_in_use_is_named_and_the_background_never_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = run("http", tmp_path, HTTP__PORT=port)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(f"Error: Listening on 127.0.0.1 port {port} is")
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize(
    ("transport", "number"), [("sse", signal.SIGINT), ("http", signal.SIGTERM)]
)
async def test_a_signal_ends_the_server_cleanly_with_streams_open(
    tmp_path: Path, transport: str, number: int
) -> None:
    with toy(transport, tmp_path) as server, anyio.fail_after(15):
        target = server.url if transport == "http" else sse_client(server.url)
        async with Client(target, mode="legacy"):
            logged = await anyio.to_thread.run_sync(server.stop, number)
        assert server.process.returncode == 0
        assert "Traceback" not in logged
        assert server.notes == ["started", "stopped"]


INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "lines", "version": "1"},
}


class Lines:
    """Speaks to the toy over stdio line by line, to see every byte that it writes."""

    def __init__(self, directory: Path) -> None:
        self.journal = directory / "journal"
        self.process = subprocess.Popen(
            [sys.executable, str(TOY), "stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(directory),
        )
        self.send(id=0, method="initialize", params=INITIALIZE)
        self.receive()

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, name: str) -> None:
        self.send(id=name, method="tools/call", params={"name": name, "arguments": {}})


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Lines]:
    client = Lines(tmp_path)
    with client.process:
        yield client
        client.process.kill()


def test_nothing_that_is_printed_reaches_the_client(lines: Lines) -> None:
    lines.call("print")
    assert lines.receive()["id"] == "print"
    written, logged = lines.process.communicate(timeout=10)
    assert written == ""
    for noise in ("noise in a buffer", "noise on descriptor 1", "noise at exit"):
        assert noise in logged


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_stdio_cleanly_with_a_call_in_flight(lines: Lines, number: int) -> None:
    lines.call("wait")
    lines.call("echo")  # answered after the other has begun
    assert lines.receive()["id"] == "echo"
    lines.process.send_signal(number)
    lines.process.wait(timeout=10)
    assert lines.process.returncode == 0
    assert lines.journal.read_text().split() == ["started", "waiting", "cancelled", "stopped"]


def test_a_pipe_that_ends_after_its_last_request_gets_every_answer(lines: Lines) -> None:
    for number in range(20):
        lines.send(id=number, method="tools/list")
    written, _ = lines.process.communicate(timeout=10)
    answered = [json.loads(line)["id"] for line in written.splitlines()]
    assert sorted(answered) == list(range(20))
    assert lines.process.returncode == 0


def test_a_line_that_is_no_json_is_answered_and_survived(lines: Lines) -> None:
    assert lines.process.stdin is not None
    lines.process.stdin.write("no json\n")
    lines.process.stdin.flush()
    assert lines.receive()["error"]["code"] == types.PARSE_ERROR
    lines.send(id=1, method="ping")
    assert lines.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_a_client_that_dies_before_its_answer_leaves_no_traceback(lines: Lines) -> None:
    assert lines.process.stdin is not None
    assert lines.process.stdout is not None
    assert lines.process.stderr is not None
    lines.process.stdout.close()
    lines.send(id=1, method="ping")
    lines.process.stdin.close()
    assert lines.process.wait(timeout=10) == 0
    assert "Traceback" not in lines.process.stderr.read()


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_stdio_without_its_streams_is_refused(tmp_path: Path, closed: str) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" "$@" {closed}', sys.executable, str(TOY), "stdio"],
        check=False,
        stderr=subprocess.PIPE,
        text=True,
        timeout=20,
        env=environment(tmp_path),
    )
    assert ended.returncode == 1
    assert "needs standard input and standard output" in ended.stderr
