"""The extension for tasks, as clients of the SDK speak it that follow tasks themselves."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from server.mcp.elicitation import suspended
from server.mcp.tasks import EXTENSION, CancelParams, TaskParams, UpdateParams
from server.transport.http import serve_one
from server.transport.middleware import Caller

GardenOf = Callable[..., AbstractAsyncContextManager[Any]]

pytestmark = pytest.mark.slow
ERA = "2026-07-28"

SOURCE = '''
    from tools.authoring import tool

    @tool(may_become_job=True, timeout=60)
    async def prune(context: RequestContext) -> str:
        """Asks once its caller is gone."""
        while not Path("ripe").exists():
            await anyio.sleep(0.01)
        return "pruned" if await context.ask(bool, "Prune it?") else "left"
'''


class Answer(types.Result, extra="allow"):
    """Whatever is answered."""


class Get(types.Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class Update(types.Request[UpdateParams, Literal["tasks/update"]]):
    method: Literal["tasks/update"] = "tasks/update"
    name_param = "taskId"


class Cancel(types.Request[CancelParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"


class TaskClient:
    """Asks in plain JSON."""

    def __init__(self, client: Any) -> None:
        self._session = client.session

    async def ask(self, request: types.Request[Any, Any]) -> dict[str, Any]:
        answer = await self._session.send_request(request, Answer)
        plain: dict[str, Any] = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        return plain

    async def call(self, name: str) -> dict[str, Any]:
        params = types.CallToolRequestParams(name=name, arguments={})
        return await self.ask(types.CallToolRequest(params=params))

    async def reach(self, task_id: str, status: str) -> dict[str, Any]:
        get = Get(params=TaskParams(task_id=task_id))
        with anyio.fail_after(20):
            while (task := await self.ask(get))["status"] != status:  # noqa: ASYNC110  # it is polled
                await anyio.sleep(0.01)
        return task


async def never(_context: Any, _params: Any) -> types.ElicitResult:
    raise AssertionError("The tests answer themselves.")


async def test_a_task_asks_for_input_and_has_its_result(garden_of: GardenOf) -> None:
    knows = {"extensions": [advertise(EXTENSION)], "elicitation_callback": never}
    async with garden_of(SOURCE, patience=0.0) as garden, garden.client(ERA, **knows) as client:
        asked = TaskClient(client)
        task = await asked.call("prune")
        assert task["resultType"] == "task"
        (garden.root / "ripe").touch()
        waits = await asked.reach(task["taskId"], "input_required")
        [(key, request)] = waits["inputRequests"].items()
        assert "Prune it?" in request["params"]["message"]
        answers = {
            "unasked": {"ignored": True},
            key: {"action": "accept", "content": {"answer": True}},
        }
        params = UpdateParams(task_id=task["taskId"], input_responses=answers)
        assert "taskId" not in await asked.ask(Update(params=params))
        done = await asked.reach(task["taskId"], "completed")
        assert done["result"]["content"][0]["text"] == "pruned"


async def test_a_question_on_its_way_becomes_the_tasks_question(
    garden_of: GardenOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspended, "TOGETHER", 0.6)
    knows = {"extensions": [advertise(EXTENSION)], "elicitation_callback": never}
    async with garden_of(SOURCE, patience=0.3) as garden, garden.client(ERA, **knows) as client:
        (garden.root / "ripe").touch()
        asked = TaskClient(client)
        task = await asked.call("prune")
        assert task["resultType"] == "task"
        waits = await asked.reach(task["taskId"], "input_required")
        await anyio.sleep(0.7)  # until the question would have ended the call
        answer = {"action": "accept", "content": {"answer": True}}
        answers = dict.fromkeys(waits["inputRequests"], answer)
        await asked.ask(
            Update(params=UpdateParams(task_id=task["taskId"], input_responses=answers))
        )
        done = await asked.reach(task["taskId"], "completed")
        assert done["result"]["content"][0]["text"] == "pruned"


async def test_a_task_is_cancelled_and_stays_so(garden_of: GardenOf) -> None:
    knows = {"extensions": [advertise(EXTENSION)]}
    async with garden_of(SOURCE, patience=0.0) as garden, garden.client(ERA, **knows) as client:
        asked = TaskClient(client)
        task = (await asked.call("prune"))["taskId"]
        for _ in range(2):
            await asked.ask(Cancel(params=CancelParams(task_id=task)))
            await asked.reach(task, "cancelled")


@pytest.mark.parametrize(
    ("mode", "code"),
    [("legacy", types.METHOD_NOT_FOUND), ("2026-07-28", types.MISSING_REQUIRED_CLIENT_CAPABILITY)],
)
async def test_a_client_that_does_not_say_that_it_knows_tasks_is_told_of_none(
    garden_of: GardenOf, mode: str, code: int
) -> None:
    async with garden_of(SOURCE, patience=0.0) as garden, garden.client(mode) as client:
        asked = TaskClient(client)
        assert "taskId" not in await asked.call("prune")
        with pytest.raises(MCPError) as refused:
            await asked.ask(Get(params=TaskParams(task_id="any")))
        assert refused.value.code == code


async def test_news_of_tasks_are_refused_to_a_client_that_does_not_know_them(
    garden_of: GardenOf,
) -> None:
    params = types.SubscriptionsListenRequestParams(
        notifications=types.SubscriptionFilter.model_validate({"taskIds": ["any"]})
    )
    async with garden_of(SOURCE) as garden, garden.client(ERA) as client:
        with anyio.fail_after(20), pytest.raises(MCPError) as refused:
            await TaskClient(client).ask(types.SubscriptionsListenRequest(params=params))
    assert refused.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert refused.value.data == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


async def test_an_agent_answers_nothing_that_a_task_of_its_user_asks(garden_of: GardenOf) -> None:
    knows: Any = {"extensions": [advertise(EXTENSION)], "elicitation_callback": never}
    headers = {"Authorization": "Bearer its-token"}
    async with (
        garden_of(SOURCE, patience=0.0) as garden,
        garden.client(ERA, **knows) as client,
        serve_one(
            garden.app.server, Caller("agent", None, session_id="its own"), "its-token"
        ) as address,
        httpx2.AsyncClient(headers=headers) as http,
        Client(
            streamable_http_client(f"http://{address}/mcp", http_client=http), mode=ERA, **knows
        ) as agent,
    ):
        asked, by_agent = TaskClient(client), TaskClient(agent)
        task = (await asked.call("prune"))["taskId"]
        (garden.root / "ripe").touch()
        [key] = (await asked.reach(task, "input_required"))["inputRequests"]
        seen = await by_agent.ask(Get(params=TaskParams(task_id=task)))
        yes = {key: {"action": "accept", "content": {"answer": True}}}
        await by_agent.ask(Update(params=UpdateParams(task_id=task, input_responses=yes)))
        told = await agent.call_tool("get_task", {"task_id": task, "wait_seconds": 0})
        assert "inputRequests" not in seen
        assert "Prune it?" in str(told.content)
        assert key in (await asked.reach(task, "input_required"))["inputRequests"]
