"""Tasks of other servers behind the real one: a server of its own process that answers with one."""

import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from pydantic import ValidationError

from server.settings.gateway import ServerSettings
from server.settings.safety import PolicySettings
from server.upstream.calling.upstream_tasks import CreatedTask
from tests.server.serving import running
from tests.server.upstream.calling.tasked_server import ID
from tools.core.jobs import PATIENCE

SERVER = Path(__file__).with_name("tasked_server.py")
ClientOf = Callable[..., AbstractAsyncContextManager[Client]]

pytestmark = pytest.mark.slow


async def ann(_context: Any, _params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ann"})


@pytest.fixture
def client_of(tmp_path: Path, journal: Any) -> ClientOf:
    """A client of the real server, which has the other one behind it."""
    grower = ServerSettings(
        command=sys.executable, args=(str(SERVER),), env={"JOURNAL": str(journal.path)}
    )

    @asynccontextmanager
    async def make(patience: float = PATIENCE, **can: Any) -> AsyncIterator[Client]:
        settings = {"policy": PolicySettings(allow=("*",)), "servers": {"grower": grower}}
        async with (
            running(tmp_path, patience=patience, **settings) as app,
            Client(InMemoryTransport(app.server), mode="2026-07-28", **can) as client,
        ):
            yield client

    return make


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))


async def test_a_task_is_followed_to_its_result_and_its_questions_reach_the_client(
    client_of: ClientOf,
) -> None:
    async with client_of(elicitation_callback=ann) as client:
        result = await client.call_tool("grower__grow", {})
        assert text_of(result) == "grown for Ann"
        assert ID not in result.model_dump_json()


async def test_a_task_is_cancelled_with_the_call_that_it_came_from(
    client_of: ClientOf, journal: Any
) -> None:
    async with client_of() as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "grower__grow", {"idle": True})
            await journal.tells("idles")
            group.cancel_scope.cancel()
        await journal.tells(f"cancelled {ID}")


async def test_a_task_that_takes_long_is_one_of_ours_which_asks_whoever_looks(
    client_of: ClientOf, journal: Any
) -> None:
    async with client_of(patience=0.0, elicitation_callback=ann) as client:
        told = text_of(await client.call_tool("grower__grow", {}))
        found = re.search(r"as task ([0-9a-f]{32})", told)
        assert found, told
        done = text_of(await client.call_tool("get_task", {"task_id": found[1]}))
        assert "completed" in done
        assert "grown for Ann" in done
        told = text_of(await client.call_tool("grower__grow", {"idle": True}))
        found = re.search(r"as task ([0-9a-f]{32})", told)
        assert found, told
        await journal.tells("idles")
        ended = text_of(await client.call_tool("cancel_task", {"task_id": found[1]}))
        assert "was cancelled" in ended
        await journal.tells(f"cancelled {ID}")


async def test_a_task_whose_pause_is_no_number_is_none() -> None:
    task = {"taskId": ID, "status": "working", "pollIntervalMs": float("nan")}
    with pytest.raises(ValidationError, match="finite number"):
        CreatedTask.model_validate(task, by_name=False)
