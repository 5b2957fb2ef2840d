"""Recipes on a cluster: a real one of this machine, found by its address."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tools.data.running.environment import DataEnvironment
from tools.data.running.workers import PROGRAM

pytestmark = pytest.mark.anyio

PROBE = """
import sys
sys.path.append(sys.argv[1])
from worker.preparing import switch_off
from worker.program import switch_off_on_cluster
switch_off()
switch_off_on_cluster()
import ray
ray.init(sys.argv[2])

@ray.remote
def use():
    from data_juicer.utils.lazy_loader import LazyLoader
    try:
        LazyLoader("no_such_package").anything
    except ImportError as error:
        return f"{type(error).__name__}: {error}"

print(ray.get(use.remote()))
"""

TEXT = "The bowline makes a loop that does not slip, even under load."
PLAN = """\
# Clean it
# approval_required: false
dataset_path: raw.jsonl
export_path: out.jsonl
text_keys: [text]
executor_type: ray
ray_address: {address}
process:
- whitespace_normalization_mapper:
- text_length_filter: {{min_len: 20}}
{more}
"""


def write(root: Path, address: str = "auto", more: str = "") -> str:
    rows = [{"text": TEXT}, {"text": "no"}, {"text": f"{TEXT} Again."}, {"text": TEXT}]
    (root / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "plan.yaml").write_text(PLAN.format(address=address, more=more))
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
def cluster(data_juicer: DataEnvironment) -> Iterator[str]:
    """The address of a cluster with Data-Juicer's own environment, which ends with the tests."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ray = str(data_juicer.path / "bin" / "ray")
    options = ("--include-dashboard=false", "--num-cpus=2", "--disable-usage-stats", "--block")
    head = subprocess.Popen(
        [ray, "start", "--head", "--node-ip-address=127.0.0.1", f"--port={port}", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert head.stdout is not None
    assert any("Ray runtime started" in line for line in head.stdout)
    yield f"127.0.0.1:{port}"
    os.killpg(head.pid, signal.SIGKILL)  # when asked, it waits for half a minute
    head.communicate()


async def test_a_person_is_asked_before_anything_runs_on_a_cluster(crib: Any) -> None:
    kind, told = await crib.failure("apply_recipe", plan_path=write(crib.root))
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


@pytest.mark.ray
async def test_a_recipe_runs_on_a_cluster_and_writes_a_folder_of_parts(
    workshop: Any, cluster: str
) -> None:
    plan = write(workshop.root, cluster, "- ray_document_deduplicator: {backend: ray_actor}")
    report = await result_of(workshop, plan)
    assert (report.get("engine"), report.get("rows_in"), report.get("rows_out")) == ("ray", 4, 2), (
        report
    )
    parts = [workshop.root / each["path"] for each in report["written"]]
    assert {part.parent.name for part in parts} == {"out.jsonl"}
    rows = [json.loads(line) for part in parts for line in part.read_text().splitlines()]
    assert sorted(row["text"] for row in rows) == [TEXT, f"{TEXT} Again."]


@pytest.mark.ray
async def test_workers_of_a_cluster_install_nothing_either(
    data_juicer: DataEnvironment, cluster: str
) -> None:
    ended = await anyio.run_process(
        [data_juicer.python(), "-c", PROBE, str(PROGRAM.parent), cluster], check=False
    )
    assert ended.stdout.decode().splitlines()[-1:] == ["MissingPackageError: no_such_package"]
