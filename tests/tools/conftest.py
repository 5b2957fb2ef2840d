"""The whole product in memory, asked by a real client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, ElicitResult, TextContent

from server.app import App, build
from server.settings_sources import load


@dataclass
class Crib:
    """The product and a client of it."""

    app: App
    client: Client
    root: Path

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured result of a call that succeeds."""
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        found: dict[str, Any] | None = result.structured_content
        assert found is not None
        return found

    async def text(self, name: str, /, **arguments: Any) -> str:
        """What the model reads of a call."""
        return _text(await self.client.call_tool(name, arguments))

    async def failure(self, name: str, /, **arguments: Any) -> tuple[str, str]:
        """The error type of a call that fails, and all that the model is told."""
        result = await self.client.call_tool(name, arguments)
        assert result.is_error, result.content
        assert result.structured_content is not None
        assert "Traceback" not in _text(result)
        assert result.structured_content["next_actions"]
        return result.structured_content["error_type"], _text(result)

    async def embed(self) -> None:
        """Waits until everything is embedded."""
        shelf = self.app.library.shelf(self.app.identity)
        with anyio.fail_after(60):
            while not shelf.index_status().complete:  # a thread tells no event
                await anyio.lowlevel.checkpoint()


async def agree(_context: Any, _params: Any) -> ElicitResult:
    """A person who allows whatever they are asked about."""
    return ElicitResult(action="accept", content={"answer": "once"})


def _text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.fixture
def open_crib(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Crib]]:
    """Opens the product on a root and a data directory of its own, with the given settings."""

    @asynccontextmanager
    async def open_crib(mode: str = "2026-07-28", **flags: Any) -> AsyncIterator[Crib]:
        (tmp_path / "root").mkdir(exist_ok=True)
        named = {key.replace("__", "."): value for key, value in flags.items()}
        places = {"data_dir": tmp_path / "data", "root": tmp_path / "root"}
        app = build(load(places | named, environ={"TOOLCRIB_CONFIG": ""}))
        async with (
            app.running(),
            Client(app.server, mode=mode, elicitation_callback=agree) as client,
        ):
            yield Crib(app, client, tmp_path / "root")

    return open_crib
