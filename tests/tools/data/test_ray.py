"""Recipes on a cluster: a real one of this machine, found by its address."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from benchmarks.ray_cluster import NODES, cluster
from tools.data.running.environment import DataEnvironment
from tools.data.running.workers import PROGRAM

PROBE = """
import sys
sys.path.append(sys.argv[1])
from worker.preparing import switch_off
from worker.program import switch_off_on_cluster
switch_off()
switch_off_on_cluster()
import ray
ray.init(sys.argv[2])

from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

@ray.remote
def use():
    from data_juicer.utils.lazy_loader import LazyLoader
    try:
        LazyLoader("no_such_package").anything
    except ImportError as error:
        return f"{type(error).__name__}: {error}"

nodes = [each["NodeID"] for each in ray.nodes() if each["Alive"] and each["Resources"].get("CPU")]
on = [use.options(scheduling_strategy=On(node, soft=False)) for node in nodes]
for told in ray.get([each.remote() for each in on]):
    print(told)
"""

TEXT = "The bowline makes a loop that does not slip, even under load."
PLAN = """\
# Clean it
# approval_required: false
dataset_path: raw.jsonl
export_path: out.jsonl
text_keys: [text]
executor_type: ray
{address}
process:
- whitespace_normalization_mapper:
- text_length_filter: {{min_len: 20}}
{more}
"""


def write(root: Path, address: str = "", more: str = "") -> str:
    rows = [{"text": TEXT}, {"text": "no"}, {"text": f"{TEXT} Again."}, {"text": TEXT}]
    (root / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    named = f"ray_address: {address}" if address else ""
    (root / "plan.yaml").write_text(PLAN.format(address=named, more=more))
    return "plan.yaml"


async def result_of(workshop: Any, plan: str) -> dict[str, Any]:
    """What comes of a plan, also where that takes so long that it becomes a task."""
    called = await workshop.client.call_tool("apply_recipe", {"plan_path": plan, "confirm": True})
    report: dict[str, Any] = called.structured_content or {"told": str(called.content)}
    while report.get("state", "working") == "working" and "task_id" in report:
        report = await workshop.call("get_task", task_id=report["task_id"], wait_seconds=45)
    found: dict[str, Any] = report.get("result", report)
    return found


@pytest.fixture(scope="module")
def address(data_juicer: DataEnvironment) -> Iterator[str]:
    """Of a cluster with Data-Juicer's own environment, which ends with the tests."""
    with cluster(data_juicer.path) as started:
        yield started


@pytest.mark.data
async def test_a_person_is_asked_before_anything_runs_on_a_cluster(workshop: Any) -> None:
    kind, told = await workshop.failure("apply_recipe", plan_path=write(workshop.root))
    assert kind == "approval_required"
    assert "cluster" in told


async def test_a_recipe_for_a_cluster_cannot_be_tried(crib: Any) -> None:
    kind, told = await crib.failure("apply_recipe", plan_path=write(crib.root), dry_run=True)
    assert kind == "invalid_arguments"
    assert "executor_type: default" in told


@pytest.mark.ray
async def test_where_confinement_is_required_nothing_runs_on_a_cluster(
    open_crib: Any, data_juicer: DataEnvironment
) -> None:
    async with open_crib(system__sandbox="required") as crib:
        (crib.app.settings.data_dir / "data-juicer").symlink_to(data_juicer.path)
        plan = write(crib.root)
        kind, told = await crib.failure("apply_recipe", plan_path=plan, confirm=True)
    assert kind == "unavailable"
    assert "system.sandbox" in told


async def test_what_is_at_the_place_of_its_parts_is_never_added_to(crib: Any) -> None:
    plan = write(crib.root)
    (crib.root / "out.jsonl").mkdir()
    (crib.root / "out.jsonl" / "part.json").write_text("mine")
    kind, told = await crib.failure("apply_recipe", plan_path=plan, confirm=True)
    assert kind == "conflict"
    assert "out.jsonl already exists" in told


@pytest.mark.ray
async def test_a_recipe_runs_on_a_cluster_and_writes_a_folder_of_parts(
    workshop: Any, address: str
) -> None:
    only_on_ray = """\
- ray_repartition_pipeline: {num_blocks: 2}
- ray_document_deduplicator: {backend: ray_actor}
"""
    plan = write(workshop.root, address, only_on_ray)
    report = await result_of(workshop, plan)
    assert (report.get("engine"), report.get("rows_in"), report.get("rows_out")) == ("ray", 4, 2), (
        report
    )
    parts = [workshop.root / each["path"] for each in report["written"]]
    assert {part.parent.name for part in parts} == {"out.jsonl"}
    rows = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    assert sorted(row["text"] for row in rows) == [TEXT, f"{TEXT} Again."]


@pytest.mark.ray
@pytest.mark.usefixtures("address")
async def test_the_cluster_of_this_machine_is_found_without_its_address(workshop: Any) -> None:
    shutil.rmtree(workshop.root / "out.jsonl", ignore_errors=True)
    report = await result_of(workshop, write(workshop.root))
    assert (report.get("engine"), report.get("rows_out")) == ("ray", 3), report


@pytest.mark.ray
async def test_workers_of_each_node_install_nothing_either(
    data_juicer: DataEnvironment, address: str
) -> None:
    ended = await anyio.run_process(
        [data_juicer.python(), "-c", PROBE, str(PROGRAM.parent), address], check=False
    )
    told = ended.stdout.decode().splitlines()
    assert told[-NODES:] == ["MissingPackageError: no_such_package"] * NODES
    assert len(told) == NODES
