"""What a run of a recipe takes: operators called in a warm worker, beside `dj-process` and Ray.

    python -m benchmarks.recipes --environment DIR [--rows N] [--rounds N] [--json]

All run the same five operators on the same made-up rows. The first two are confined and have to
write the same bytes; the recipe of `dj-process` has one more key, which changes no row and is
heeded by it alone. On Ray, a cluster of two nodes of this machine, the deduplicator is its
counterpart for Ray, and the same texts have to come of it: which of those that are repeated stays
is not fixed there. Each round runs all of them. The environment is the data directory that
`toolcrib data setup` was run for.
"""

import argparse
import json
import logging
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from benchmarks.ray_cluster import cluster
from server.app import App, build
from server.composition.machine import make_sandbox
from server.settings.settings import Settings
from tools.core.manager import SandboxToolManager
from tools.data.applying import MOST_SECONDS
from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, Recipe, Step, SystemSpec

WORDS = "the quick brown fox jumps over a lazy dog while people watch from afar and write".split()  # noqa: SIM905  # as it is read
REPEATED, GARBLED = 0.1, 0.2
"""The share of rows that repeat an earlier one, and of those together with the garbled ones."""
EARLIER = 5_000
"""Rows that may be repeated."""

STEPS: dict[str, dict[str, Any]] = {
    "whitespace_normalization_mapper": {},
    "punctuation_normalization_mapper": {},
    "text_length_filter": {"min_len": 30, "max_len": 5_000},
    "alphanumeric_filter": {"min_ratio": 0.5},
    "document_deduplicator": {"lowercase": True},
}
KEYS: dict[str, dict[str, Any]] = {
    "direct": {},
    "dj-process": {"open_tracer": False},
    "ray": {"executor_type": "ray"},
}
"""By how it is run, the key that has it so."""
ON_RAY: dict[str, dict[str, Any]] = {
    **dict(list(STEPS.items())[:-1]),
    "ray_document_deduplicator": {**STEPS["document_deduplicator"], "backend": "ray_actor"},
}

CONNECT = """
import sys, time
import ray
started = time.perf_counter()
ray.init(sys.argv[1], log_to_driver=False, logging_level="ERROR")

@ray.remote
def nothing():
    pass

ray.get(nothing.remote())
print(time.perf_counter() - started)
"""
"""Connects, and has the cluster do nothing once."""


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Recipes in a warm worker and by dj-process.")
    parser.add_argument("--environment", type=Path, required=True, help="a data directory")
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    logging.disable()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends the cluster too
    with tempfile.TemporaryDirectory(prefix="toolcrib-recipes-") as directory:
        report = anyio.run(
            measure,
            Path(directory),
            arguments.environment.resolve() / "data-juicer",
            arguments.rows,
            arguments.rounds,
        )
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        for name, value in report.items():
            print(f"{name.replace('_', ' '):36}{value:10.2f}")


async def measure(directory: Path, environment: Path, rows: int, rounds: int) -> dict[str, float]:
    """Medians in seconds, and how much longer `dj-process` takes."""
    app = prepared(directory, environment, rows)
    root = app.settings.root
    manager = app.personal.over(make_sandbox(app.settings, root))  # which has nobody to ask
    seconds: dict[str, list[float]] = {way: [] for way in KEYS}
    started = time.perf_counter()
    with cluster(environment) as address:
        began = time.perf_counter() - started
        KEYS["ray"]["ray_address"] = address
        for way, keys in KEYS.items():
            (root / f"{way}.yaml").write_text(plan_of(way, keys).to_yaml(), encoding="utf-8")
        python = [str(environment / "bin" / "python"), "-c", CONNECT, address]
        connected = float((await anyio.run_process(python)).stdout)
        async with app.running():
            cold = await _timed(app, manager, "direct")  # it starts the worker too
            for _ in range(rounds):
                shutil.rmtree(root / "ray.jsonl", ignore_errors=True)  # it is never added to
                for way, taken in seconds.items():
                    taken.append(await _timed(app, manager, way))
    confined = [way for way in KEYS if way != "ray"]
    assert len({(root / f"{way}.jsonl").read_bytes() for way in confined}) == 1
    parts = list((root / "ray.jsonl").iterdir())
    assert _texts([root / "direct.jsonl"]) == _texts(parts)
    warm, program, on_ray = (statistics.median(seconds[way]) for way in KEYS)
    return {
        "first_run_with_its_worker": cold,
        "warm_worker": warm,
        "dj_process": program,
        "dj_process_by_warm_worker": program / warm,
        "ray": on_ray,
        "ray_by_warm_worker": on_ray / warm,
        "cluster_until_it_runs": began,
        "cluster_until_it_has_done_nothing": connected,
        "parts_of_ray": len(parts),
    }


async def _timed(app: App, manager: SandboxToolManager, way: str) -> float:
    started = time.perf_counter()
    asked = {"plan_path": f"{way}.yaml", "confirm": True, "timeout_seconds": MOST_SECONDS}
    result = await manager.execute("apply_recipe", asked, app.context)
    assert result.structured["engine"] == way, result.text
    return time.perf_counter() - started


def _texts(files: Sequence[Path]) -> list[str]:
    """The texts of rows as the deduplicators compare them, in an order of their own."""
    lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    return sorted(json.loads(line)["text"].casefold() for line in lines)


def prepared(directory: Path, environment: Path, rows: int) -> App:
    """An app whose root has the rows, and whose data directory the environment."""
    root, data = directory / "root", directory / "data"
    root.mkdir()
    data.mkdir()
    (data / "data-juicer").symlink_to(environment)
    _write_rows(root / "raw.jsonl", rows)
    return build(Settings(data_dir=data, root=root))


def plan_of(way: str, keys: dict[str, Any]) -> Plan:
    """The recipe for the rows, as it is run in one way."""
    steps = ON_RAY if way == "ray" else STEPS
    operators = [Step(name=name, params=params) for name, params in steps.items()]
    recipe = Recipe(
        dataset=DatasetSpec(
            dataset_path="raw.jsonl", export_path=f"{way}.jsonl", text_keys=["text"]
        ),
        process=ProcessSpec(operators=operators),
        system=SystemSpec.model_validate(keys),
    )
    return Plan(user_intent="Measure it", recipe=recipe, approval_required=False)


def _write_rows(path: Path, rows: int) -> None:
    """Made-up rows: a tenth repeats an earlier one, another tenth is garbled."""
    chance = random.Random(1)  # noqa: S311  # the same rows each time
    earlier: list[str] = []
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(2, 80)))
            kind = chance.random()
            if kind < REPEATED and earlier:
                text = chance.choice(earlier)
            elif kind < GARBLED:
                text = f"{'#$%^ ' * 20}{text[:20]}"
            if len(earlier) < EARLIER:
                earlier.append(text)
            file.write(json.dumps({"id": number, "text": text, "meta": {"src": "a"}}) + "\n")


if __name__ == "__main__":
    main()
