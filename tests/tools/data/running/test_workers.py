"""Workers as they really run: kept warm, ended with a cancelled call, confined at each level."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tools.data.running.environment import DataEnvironment
from tools.sandbox.processes.models import Level
from tools.sandbox.processes.processes import Processes

pytestmark = pytest.mark.data

PLAN = """\
# Clean it
# approval_required: false
dataset_path: raw.jsonl
export_path: out.jsonl
text_keys: [text]
{more}
process:
- text_length_filter: {{min_len: 20}}
"""


def write(root: Path, rows: int = 3, more: str = "") -> str:
    row = json.dumps({"text": "The bowline makes a loop that does not slip."}) + "\n"
    (root / "raw.jsonl").write_text(row * rows)
    (root / "plan.yaml").write_text(PLAN.format(more=more))
    return "plan.yaml"


def idle(workshop: Any) -> list[int]:
    """The processes that wait for the next recipe."""
    return [warm.worker._process._program.pid for warm in workshop.app.machine.data._idle]


async def test_the_next_recipe_is_run_by_the_same_process(workshop: Any) -> None:
    plan = write(workshop.root)
    await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    (first,) = idle(workshop)
    await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    assert idle(workshop) == [first]


async def test_a_worker_that_died_while_it_waited_is_replaced(workshop: Any) -> None:
    plan = write(workshop.root)
    await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    (first,) = workshop.app.machine.data._idle
    await first.worker._process.kill()
    await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    (second,) = workshop.app.machine.data._idle
    assert second.worker is not first.worker


async def test_a_cancelled_run_leaves_no_process_and_no_file(workshop: Any) -> None:
    plan = write(workshop.root)
    await workshop.call("apply_recipe", plan_path=plan, confirm=True)
    (warm,) = workshop.app.machine.data._idle
    (workshop.root / "out.jsonl").unlink()
    write(workshop.root, rows=200_000)
    told: list[str] = []
    with anyio.CancelScope() as scope:

        async def report(_done: float, _total: float | None, message: str | None) -> None:
            told.append(message or "")
            if message == "Reading":  # by the worker
                scope.cancel()
            await anyio.lowlevel.checkpoint()

        await workshop.client.call_tool(
            "apply_recipe", {"plan_path": plan, "confirm": True}, progress_callback=report
        )
    assert scope.cancelled_caught
    assert told[-1] == "Reading"
    with anyio.fail_after(30):  # the call ends on its own
        await warm.worker._process.wait()
    assert idle(workshop) == []
    assert not (workshop.root / "out.jsonl").exists()


async def test_under_landlock_operators_run_and_dj_process_is_unavailable(
    open_crib: Any, data_juicer: DataEnvironment
) -> None:
    async with open_crib() as crib:
        (crib.app.settings.data_dir / "data-juicer").symlink_to(data_juicer.path)
        workers = crib.app.machine.data
        make = workers._make

        def confined(root: Path, free: bool) -> Processes:
            made: Processes = make(root, free)
            known = made.levels._confinements
            made.levels._confinements = {Level.LANDLOCK: known[Level.LANDLOCK]}
            return made

        workers._make = confined
        report = await crib.call("apply_recipe", plan_path=write(crib.root), confirm=True)
        assert (report["engine"], report["rows_out"]) == ("direct", 3)
        plan = write(crib.root, more="open_tracer: false")
        kind, told = await crib.failure("apply_recipe", plan_path=plan, confirm=True)
        assert kind == "unavailable"
        assert "bubblewrap" in told
