"""`dj-process`, for recipes that need more of it than its operators."""

from __future__ import annotations

import json
import multiprocessing
import re
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any

from .channel import Call
from .failures import MISSING, MissingPackageError, NotHereError, OperatorError, RecipeError
from .keeping import Keeper, Kept
from .keeping_program import GOES_ON, can_keep, keep_between, kept_by
from .preparing import adapt, switch_off
from .reading import NO_TEXT, UNREADABLE
from .steps import as_step

_START = (
    "import json, sys; sys.path.append(sys.argv.pop(1)); from worker.program import main;"
    " main(**json.loads(sys.argv.pop(1)))"
)
"""Starts it, with where this is and what `main` takes."""

_SKIPPED = re.compile(r"\[lenient jsonl\] skip .*:(\d+): (.*)")
_READ = re.compile(r"There are (\d+) sample\(s\) in the original dataset")
_LEFT = re.compile(r"(\d+) samples left after filtering empty text")
_STEP = re.compile(r"\[\d+/\d+\] OP \[(\w+)\] Done in ([\d.]+)s\. Left (\d+) samples")
_FAILED = re.compile(r"An error occurred (?:during Op \[|in )(\w+)")

_LAST_LINES = 60


def main(on_cluster: bool, keeping: dict[str, Any] | None) -> None:
    """Runs `dj-process` in this process; `keeping` is what `keep_between` takes, if it is kept."""
    adapt()
    if on_cluster:
        switch_off_on_cluster()
    if keeping is not None:
        keep_between(**keeping)
    from tools.process_data import main as process  # of Data-Juicer's own package of that name

    process()


def switch_off_on_cluster() -> None:
    """Has each worker of a Ray cluster that this process uses install nothing either."""
    import ray
    from ray import cloudpickle
    from ray._private import services

    from . import failures, preparing

    for module in (failures, preparing):  # they are not installed there
        cloudpickle.register_pickle_by_value(module)
    # Ray would ask the system for the way to 8.8.8.8 to learn what else 127.0.0.1 is called.
    services.node_ip_address_from_perspective = lambda _address=None: "127.0.0.1"
    init = ray.init

    def init_switched_off(
        *arguments: Any, runtime_env: dict[str, Any] | None = None, **options: Any
    ) -> Any:
        hooked = {**(runtime_env or {}), "worker_process_setup_hook": switch_off}
        return init(*arguments, runtime_env=hooked, **options)

    ray.init = init_switched_off


def run_program(
    config: dict[str, Any], directory: Path, keeper: Keeper, kept: Kept | None, call: Call
) -> dict[str, Any]:
    """Runs a recipe in a process of its own."""
    try:
        multiprocessing.Lock()
    except OSError as error:  # under Landlock there is no shared memory for it
        raise NotHereError(
            "The recipe needs dj-process, which cannot run where Landlock alone confines programs."
        ) from error
    file = directory / "recipe.yaml"
    work = {"work_dir": str(directory / "work"), "ds_cache_dir": str(directory / "cache")}
    file.write_text(json.dumps({"open_monitor": False, **config, **work}), encoding="utf-8")
    executor = str(config.get("executor_type", "default"))
    keeping = keeper.options(kept) if can_keep(config) else None
    options = {"on_cluster": executor != "default", "keeping": keeping}
    command = [sys.executable, "-s", "-E", "-c", _START, str(Path(__file__).parents[1])]
    process = subprocess.Popen(  # noqa: S603  # ourselves
        [*command, json.dumps(options), "--config", str(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    told = _Told(executor, len(config["process"]), kept)
    try:
        for line in process.stdout or ():
            if (done := kept_by(line)) is not None:
                keeper.finish(told.kept(done))
                call.report(*told.far("kept what is done"))
            elif (said := told.take(line)) is not None:
                call.report(*said)
            call.check()
        if process.wait() != 0:
            raise told.failure()
    finally:
        process.kill()
        process.wait()
    export = Path(config["export_path"])
    for statistics in export.parent.glob(f"{export.stem}_stats.jsonl"):  # it always writes them
        statistics.unlink()
    report = told.report()
    return report if executor == "default" else {**report, **_rows_on_cluster(directory / "work")}


class _Told:
    """What the program says of its way; `kept` is what an earlier run left, if it goes on."""

    def __init__(self, executor: str, operators: int, kept: Kept | None) -> None:
        self._operators = operators
        self._kept = kept
        self._went_on = False
        self._done = 0
        self._engine = "dj-process" if executor == "default" else "ray"
        self._rows_in = 0
        self._rows = 0
        self._steps: list[dict[str, Any]] = []
        self._errors: dict[str, list[str]] = {}
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def take(self, line: str) -> tuple[float, float | None, str] | None:
        """Takes a line; returns how far it is, where the line says that."""
        self._last.append(line.rstrip())
        if found := MISSING.search(line):  # it would go on, without the rows that failed of it
            raise MissingPackageError(found[1])
        if self._kept is not None and GOES_ON in line:
            self._went_on, self._done = True, self._kept.done
            self._steps = [*self._kept.steps]
            self._rows_in, self._rows = self._kept.rows_in, self._steps[-1]["rows_out"]
            return self.far(f"Went on after {self._kept.last}")
        if found := _SKIPPED.search(line):
            self._errors.setdefault(UNREADABLE, []).append(f"line {found[1]}: {found[2]}")
        elif found := _READ.search(line):
            broken = len(self._errors.get(UNREADABLE, []))
            self._rows_in = self._rows = int(found[1]) + broken
            if broken:
                self._steps.append(self._step(UNREADABLE, int(found[1]), 0.0))
            return 1, None, f"Read {found[1]} rows"
        if found := _LEFT.search(line):
            if int(found[1]) < self._rows:
                self._steps.append(self._step(NO_TEXT, int(found[1]), 0.0))
        elif found := _FAILED.search(line):
            self._errors.setdefault(found[1], []).append(line.strip()[-500:])
        elif found := _STEP.search(line):
            name, seconds, left = found[1], float(found[2]), int(found[3])
            self._steps.append(self._step(name, left, seconds))
            self._done += 1
            return self.far(f"{name}: {left} rows")
        return None

    def far(self, message: str) -> tuple[float, float | None, str]:
        return self._done + 1, self._operators + 2, message

    def kept(self, done: int) -> dict[str, Any]:
        return {"done": done, "rows_in": self._rows_in, "steps": self._steps, "gone": {}}

    def report(self) -> dict[str, Any]:
        went_on = {"went_on_after": self._kept.last} if self._kept and self._went_on else {}
        return {
            **went_on,
            "engine": self._engine,
            "rows_in": self._rows_in,
            "rows_out": self._rows,
            "steps": self._steps,
            "kept": [],
            "dropped": [],
        }

    def failure(self) -> Exception:
        last = next((line for line in reversed(self._last) if line.strip()), "it said nothing")
        if failed := [name for name in self._errors if name != UNREADABLE]:
            return OperatorError(failed[-1], RuntimeError(last))
        return RecipeError(f"dj-process ended with: {last}")

    def _step(self, name: str, left: int, seconds: float) -> dict[str, Any]:
        before, self._rows = self._rows, left
        errors = self._errors.get(name, [])
        return as_step(name, before, left, seconds=seconds, failed=len(errors), errors=errors)


def _rows_on_cluster(work: Path) -> dict[str, int]:
    """Rows in and out of a run on a cluster, which tells no more of them than these two."""
    rows_in = rows_out = 0
    for file in work.rglob("events_*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            told = json.loads(line).get("metadata") or {}
            rows_in = rows_in or told.get("input_rows", 0)
            rows_out = told.get("output_rows", rows_out)
    return {"rows_in": rows_in, "rows_out": rows_out}
