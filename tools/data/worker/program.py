"""`dj-process`, for recipes that need more of it than its operators."""

from __future__ import annotations

import json
import multiprocessing
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .failures import MISSING, MissingPackageError, NotHereError, OperatorError, RecipeError
from .preparing import adapt, switch_off
from .steps import NO_TEXT, UNREADABLE, as_step

_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); from worker.program import main;"
    " main(sys.argv.pop(1) != 'default')"
)
"""Starts it; its first arguments are where this is, and the executor."""

_SKIPPED = re.compile(r"\[lenient jsonl\] skip .*:(\d+): (.*)")
_READ = re.compile(r"There are (\d+) sample\(s\) in the original dataset")
_LEFT = re.compile(r"(\d+) samples left after filtering empty text")
_STEP = re.compile(r"\[\d+/\d+\] OP \[(\w+)\] Done in ([\d.]+)s\. Left (\d+) samples")
_FAILED = re.compile(r"An error occurred (?:during Op \[|in )(\w+)")

_LAST_LINES = 60

Report = Callable[[int, int, str], None]


def main(on_cluster: bool) -> None:
    """Runs `dj-process` in this process."""
    adapt()
    if on_cluster:
        switch_off_on_cluster()
    from tools.process_data import main as process  # of Data-Juicer's own package of that name

    process()


def switch_off_on_cluster() -> None:
    """Makes each worker of a Ray cluster that this process uses install nothing either."""
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


def run_program(config: dict[str, Any], directory: Path, report: Report) -> dict[str, Any]:
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
    start = [sys.executable, "-s", "-E", "-c", _START, str(Path(__file__).parents[1]), executor]
    process = subprocess.Popen(  # noqa: S603  # ourselves
        [*start, "--config", str(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    log = _Log(len(config["process"]))
    try:
        for line in process.stdout or ():
            if message := log.take(line):
                report(log.done + 1, log.operators + 2, message)
        if process.wait() != 0:
            raise log.failure()
    finally:
        process.kill()
        process.wait()
    export = Path(config["export_path"])
    for statistics in export.parent.glob(f"{export.stem}_stats.jsonl"):  # it always writes them
        statistics.unlink()
    on_cluster = executor != "default"
    return {
        "engine": "ray" if on_cluster else "dj-process",
        "rows_in": log.rows_in,
        "rows_out": log.rows,
        "steps": log.steps,
        "kept": [],
        "dropped": [],
        **(_rows_on_cluster(directory / "work") if on_cluster else {}),
    }


class _Log:
    """Reads the progress and the steps of a run from the program's log."""

    def __init__(self, operators: int) -> None:
        self.operators = operators
        self.done = self.rows_in = self.rows = 0
        self.steps: list[dict[str, Any]] = []
        self._errors: dict[str, list[str]] = {}
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def take(self, line: str) -> str | None:
        """Takes a line; returns the progress that it reports."""
        self._last.append(line.rstrip())
        if found := MISSING.search(line):  # it would continue without the rows that failed
            raise MissingPackageError(found[1])
        if found := _SKIPPED.search(line):
            self._errors.setdefault(UNREADABLE, []).append(f"line {found[1]}: {found[2]}")
        elif found := _READ.search(line):
            broken = len(self._errors.get(UNREADABLE, []))
            self.rows_in = self.rows = int(found[1]) + broken
            if broken:
                self._add(UNREADABLE, found[1])
            return f"Read {found[1]} rows"
        elif found := _LEFT.search(line):
            if int(found[1]) < self.rows:
                self._add(NO_TEXT, found[1])
        elif found := _FAILED.search(line):
            self._errors.setdefault(found[1], []).append(line.strip()[-500:])
        elif found := _STEP.search(line):
            name, seconds, left = found.groups()
            self._add(name, left, float(seconds))
            self.done += 1
            return f"{name}: {left} rows"
        return None

    def failure(self) -> Exception:
        last = next((line for line in reversed(self._last) if line.strip()), "no output")
        if failed := [name for name in self._errors if name != UNREADABLE]:
            return OperatorError(failed[-1], RuntimeError(last))
        return RecipeError(f"dj-process ended with: {last}")

    def _add(self, name: str, left: str, seconds: float = 0.0) -> None:
        before, self.rows = self.rows, int(left)
        errors = self._errors.get(name, [])
        step = as_step(name, before, self.rows, seconds=seconds, failed=len(errors), errors=errors)
        self.steps.append(step)


def _rows_on_cluster(work: Path) -> dict[str, int]:
    """Returns the rows in and out of a run on a cluster, of which nothing else is known."""
    rows_in = rows_out = 0
    for file in work.rglob("events_*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            event = json.loads(line).get("metadata") or {}
            rows_in = rows_in or event.get("input_rows", 0)
            rows_out = event.get("output_rows", rows_out)
    return {"rows_in": rows_in, "rows_out": rows_out}
