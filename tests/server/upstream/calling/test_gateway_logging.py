"""What another server logs, as its client hears it, over all pairs of eras."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from server.app import App

AppOf = Callable[..., AbstractAsyncContextManager[App]]
ClientOf = Callable[..., Client]
Toy = Callable[..., AbstractAsyncContextManager[Client]]

UPSTREAM = pytest.mark.parametrize("upstream", ["handshake", "modern"])


class Ear:
    """Hears what is logged."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str | None, Any]] = []
        self._more = anyio.Event()

    async def hear(self, params: types.LoggingMessageNotificationParams) -> None:
        self.heard.append((params.level, params.logger, params.data))
        self._more.set()

    async def has_heard(self, number: int) -> None:
        """Waits for so many messages, which may come after the answer to their call."""
        with anyio.fail_after(10):
            while len(self.heard) < number:
                self._more = anyio.Event()
                await self._more.wait()


async def want(client: Client, level: types.LoggingLevel) -> None:
    params = types.SetLevelRequestParams(level=level)
    await client.session.send_request(types.SetLevelRequest(params=params), types.EmptyResult)


async def test_a_client_that_says_nothing_hears_what_it_would_hear_directly(toy: Toy) -> None:
    ear = Ear()
    async with toy(logging_callback=ear.hear) as client:
        await client.call_tool("toy__logging", {})
    assert ear.heard == [(level, "toy/deep", level) for level in ("debug", "info", "error")]


@UPSTREAM
async def test_the_level_that_a_client_sets_holds_for_every_server(toy: Toy, upstream: str) -> None:
    ear = Ear()
    async with toy(upstream, logging_callback=ear.hear) as client:
        await want(client, "info")
        await client.call_tool("toy__logging", {})
        await ear.has_heard(2)
        await want(client, "error")
        await client.call_tool("toy__logging", {})
        await ear.has_heard(3)
    assert [level for level, _, _ in ear.heard] == ["info", "error", "error"]
    assert {logger for _, logger, _ in ear.heard} == {"toy/deep"}


@UPSTREAM
async def test_the_level_of_a_request_goes_along_with_it(
    app_of: AppOf, client_of: ClientOf, upstream: str
) -> None:
    ear = Ear()
    async with app_of(upstream) as app, client_of(app, "modern", logging_callback=ear.hear) as to:
        await to.call_tool("toy__logging", {}, meta={types.LOG_LEVEL_META_KEY: "info"})  # type: ignore[arg-type]  # an open map
        await to.call_tool("toy__logging", {})
    assert [level for level, _, _ in ear.heard] == ["info", "error"]
