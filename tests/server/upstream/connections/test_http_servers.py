"""Other servers over HTTP: both eras, the older transport, and what may go wrong."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from server.settings.gateway import ServerSettings
from server.upstream.upstream import State
from tools.core.errors import UnavailableError, UpstreamError

pytestmark = pytest.mark.slow

FRAIL = Path(__file__).with_name("frail_http_upstream.py")


class Listening:
    """A server that listens."""

    def __init__(self, kind: str, fault: str = "", port: int = 0) -> None:
        self.kind = kind
        self.process = subprocess.Popen(
            [sys.executable, str(FRAIL), str(port), kind, fault], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def settings(self, **more: Any) -> ServerSettings:
        path = "sse" if self.kind == "sse" else "mcp"
        return ServerSettings(url=f"http://127.0.0.1:{self.port}/{path}", **more)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def listening() -> Iterator[Callable[..., Listening]]:
    """Starts servers."""
    started = []

    def start(*args: Any, **more: Any) -> Listening:
        started.append(Listening(*args, **more))
        return started[-1]

    yield start
    for each in started:
        each.kill()


@pytest.mark.parametrize(
    ("kind", "transport", "version"),
    [
        ("modern", "auto", "2026-07-28"),
        ("legacy", "auto", "2025-11-25"),
        ("legacy", "http", "2025-11-25"),
        ("sse", "sse", "2025-11-25"),
        ("sse", "auto", "2025-11-25"),  # falls back, as the protocol has it
    ],
)
async def test_a_server_is_spoken_to_as_it_speaks(
    kind: str, transport: str, version: str, listening: Any, gateway_of: Any
) -> None:
    settings = listening(kind).settings(transport=transport)
    async with gateway_of(toy=settings) as running:
        assert running.names == ["toy__echo", "toy__headed"]
        assert await running.call("toy", "echo", "hello") == "hello"
        assert await running.call("toy", "echo", "too", session_id="ann") == "too"
        assert running["toy"].home.client.protocol_version == version


async def test_a_server_of_the_older_transport_is_no_server_of_the_newer(
    listening: Any, gateway_of: Any
) -> None:
    async with gateway_of(toy=listening("sse").settings(transport="http")) as running:
        with pytest.raises(UnavailableError, match="answered 4"):
            await running.call("toy", "echo")


@pytest.mark.parametrize(
    ("kind", "more"), [("modern", {}), ("modern", {"token": "wrong"}), ("legacy", {}), ("sse", {})]
)
async def test_a_wrong_token_is_what_is_told(
    kind: str, more: dict[str, str], listening: Any, gateway_of: Any
) -> None:
    async with gateway_of(toy=listening(kind, "token").settings(**more)) as running:
        with pytest.raises(UnavailableError, match="answered 401: its token is wrong or missing"):
            await running.call("toy", "echo")


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("modern", {"token": "${KEY}"}),
        ("sse", {"token": "${KEY}"}),
        ("modern", {"headers": {"Authorization": "Bearer ${KEY}"}}),
    ],
)
async def test_a_token_opens(
    kind: str, more: dict[str, Any], listening: Any, gateway_of: Any
) -> None:
    settings = listening(kind, "token").settings(**more)
    async with gateway_of(environ={"KEY": "right"}, toy=settings) as running:
        assert await running.call("toy", "echo", "in") == "in"


async def test_a_session_that_the_server_forgot_is_opened_anew(
    listening: Any, gateway_of: Any
) -> None:
    async with gateway_of(toy=listening("legacy", "forgets").settings()) as running:
        for text in ("one", "two", "three"):
            assert await running.call("toy", "echo", text) == text


@pytest.mark.parametrize(
    ("fault", "reason"), [("huge", "more than 32 MB"), ("packed", "compresses")]
)
async def test_an_answer_that_nobody_can_take_is_that_calls_error(
    fault: str, reason: str, listening: Any, gateway_of: Any, until: Any
) -> None:
    async with gateway_of(toy=listening("legacy", fault).settings()) as running:
        with pytest.raises(UpstreamError, match=reason):
            await running.call("toy", "echo")
        await until(lambda: running["toy"].state is State.UP)


@pytest.mark.parametrize("kind", ["modern", "legacy", "sse"])
async def test_the_end_of_a_server_is_noticed_and_its_return(
    kind: str, listening: Any, gateway_of: Any, until: Any
) -> None:
    toy = listening(kind)
    async with gateway_of(toy=toy.settings()) as running:
        toy.kill()
        await until(lambda: running["toy"].state is State.DOWN)
        assert running["toy"].problem
        listening(kind, port=toy.port)
        await until(lambda: running["toy"].state is State.UP)
        assert await running.call("toy", "echo", "back") == "back"


async def test_arguments_are_headers_too_where_the_server_wants_that(
    listening: Any, gateway_of: Any
) -> None:
    async with gateway_of(toy=listening("modern").settings()) as running:
        for session_id in ("home", "ann"):  # who lists, and who does not
            assert await running.call("toy", "headed", "said", session_id=session_id) == "said"


async def test_where_nobody_listens_is_told(listening: Any, gateway_of: Any) -> None:
    toy = listening("modern")
    toy.kill()
    async with gateway_of(toy=toy.settings()) as running:
        with pytest.raises(UnavailableError, match=f"cannot be reached at 127.0.0.1:{toy.port}"):
            await running.call("toy", "echo")


async def test_proxies_of_the_environment_are_not_asked(
    listening: Any, gateway_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:9")
    async with gateway_of(toy=listening("modern").settings()) as running:
        assert await running.call("toy", "echo", "direct") == "direct"


async def test_a_header_that_cannot_be_sent_is_named_without_its_value(gateway_of: Any) -> None:
    for wrong in ({"headers": {"X-Key": "geheim\nX"}}, {"token": "geheim\u20ac"}):
        toy = ServerSettings(url="http://127.0.0.1:9/mcp", **wrong)
        async with gateway_of(toy=toy) as running:
            with pytest.raises(
                UnavailableError, match="contains characters that are not allowed in headers"
            ) as said:
                await running.call("toy", "echo")
            assert "geheim" not in said.value.message
