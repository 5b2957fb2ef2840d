from collections.abc import Callable

from storage.library import Library
from tests.tools.core.job_calls import ANN, begun
from tools.agent.jobs import cancel_task, get_task
from tools.core.context import Link, Origin, RequestContext
from tools.core.jobs import Jobs
from tools.core.manager import SandboxToolManager

Toolbox = Callable[..., SandboxToolManager]


async def test_a_task_is_waited_for_with_its_progress_and_told_with_its_result(
    toolbox: Toolbox, library: Library
) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))
        call.ripe.set()

    jobs = Jobs(library)
    async with jobs.running():
        call, record = await begun(jobs)
        tools = toolbox(get_task, jobs=jobs)
        result = await tools.execute(
            "get_task", {"task_id": record.id}, RequestContext(Origin(ANN), Link(hear))
        )
    assert told == [(1, 4, "sown")]
    assert result.structured["state"] == "completed"
    assert result.structured["result"] == {"plant": "Kale"}
    first, last = result.text.splitlines()
    assert first.startswith(f"Task {record.id} (grow) completed, after ")
    assert last == "Kale is ripe."


async def test_a_look_at_a_task_tells_how_far_it_is_and_what_to_do(
    toolbox: Toolbox, library: Library
) -> None:
    jobs = Jobs(library)
    async with jobs.running():
        _, record = await begun(jobs)
        tools, context = toolbox(get_task, jobs=jobs), RequestContext(Origin(ANN))
        look = {"task_id": record.id, "wait_seconds": 0}
        result = await tools.execute("get_task", look, context)
        assert '1 of 4, "sown"' in result.text
        assert "call them through call_tool" in result.text
        missing = await tools.execute("get_task", {"task_id": "mistaken"}, context)
        assert missing.structured["error_type"] == "not_found"
        assert missing.structured["suggestions"] == [record.id]


async def test_a_task_that_is_cancelled_stays_so(toolbox: Toolbox, library: Library) -> None:
    jobs = Jobs(library)
    async with jobs.running():
        call, record = await begun(jobs)
        tools = toolbox(cancel_task, jobs=jobs)
        result = await tools.execute(
            "cancel_task", {"task_id": record.id}, RequestContext(Origin(ANN))
        )
        assert result.structured["state"] == "cancelled"
        assert call.job.ended.is_set()
        again = await tools.execute(
            "cancel_task", {"task_id": record.id}, RequestContext(Origin(ANN))
        )
        assert again.structured["state"] == "cancelled"
