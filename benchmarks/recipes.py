"""What a run of a recipe takes: operators called in a warm worker, and by `dj-process`.

    python -m benchmarks.recipes --environment DIR [--rows N] [--rounds N] [--json]

Both run the same five operators on the same made-up rows, confined, and have to write the same
bytes; the recipe of `dj-process` has one more key, which changes no row and is heeded by it alone.
In between it is run once more by the worker, which keeps what each operator left, as long runs do
now and then. Each round runs all three. The environment is the data directory that `toolcrib data
setup` was run for.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from server.app import App, build
from server.settings.settings import Settings
from tools.data.recipe import DatasetSpec, Plan, ProcessSpec, Recipe, Step, SystemSpec
from tools.data.running.checkpoints import AFTER_SECONDS
from tools.data.running.workers import workers_of

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
    "kept": {},
    "dj-process": {"open_tracer": False},
}
"""By how it is run, the key that has it so."""


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Recipes in a warm worker and by dj-process.")
    parser.add_argument("--environment", type=Path, required=True, help="a data directory")
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    logging.disable()
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
    """Medians in seconds, and how much longer `dj-process` takes.

    Args:
        directory: An empty one to work in.
        environment: Where Data-Juicer is.
        rows: How many are read.
        rounds: How often each way is run.
    """
    root, data = directory / "root", directory / "data"
    root.mkdir()
    data.mkdir()
    (data / "data-juicer").symlink_to(environment)
    _write_rows(root / "raw.jsonl", rows)
    for way, keys in KEYS.items():
        (root / f"{way}.yaml").write_text(_plan(way, keys).to_yaml(), encoding="utf-8")
    app = build(Settings(data_dir=data, root=root))
    seconds: dict[str, list[float]] = {way: [] for way in KEYS}
    async with app.running():
        cold = await _timed(app, "direct")  # it starts the worker too
        for _ in range(rounds):
            for way, taken in seconds.items():
                taken.append(await _timed(app, way))
    assert len({(root / f"{way}.jsonl").read_bytes() for way in KEYS}) == 1
    warm, kept, program = (statistics.median(seconds[way]) for way in KEYS)
    return {
        "first_run_with_its_worker": cold,
        "warm_worker": warm,
        "keeping_each_operator": kept,
        "dj_process": program,
        "dj_process_by_warm_worker": program / warm,
    }


async def _timed(app: App, way: str) -> float:
    workers = await workers_of(app.machine)
    workers.checkpoints.after = 0 if way == "kept" else AFTER_SECONDS
    started = time.perf_counter()
    result = await app.manager.execute("apply_recipe", {"plan_path": f"{way}.yaml"}, app.context)
    assert result.structured["engine"] == ("dj-process" if way == "dj-process" else "direct")
    return time.perf_counter() - started


def _plan(way: str, keys: dict[str, Any]) -> Plan:
    operators = [Step(name=name, params=params) for name, params in STEPS.items()]
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
