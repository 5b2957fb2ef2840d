"""`dj-process`, for recipes that need more of it than its operators."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any

from .channel import Call
from .failures import MISSING, MissingPackageError, OperatorError, RecipeError

__all__ = ["main", "run_program"]

_START = "import sys; sys.path.append(sys.argv.pop(1)); from worker.program import main; main()"

_READ = re.compile(r"There are (\d+) sample\(s\) in the original dataset")
_LEFT = re.compile(r"(\d+) samples left after filtering empty text")
_STEP = re.compile(r"\[(\d+)/(\d+)\] OP \[(\w+)\] Done in ([\d.]+)s\. Left (\d+) samples")
_FAILED = re.compile(r"An error occurred (?:during Op \[|in )(\w+)")

_LAST_LINES = 60


def main() -> None:
    """Runs `dj-process` in this process, which installs nothing."""
    from .preparing import switch_off

    switch_off()
    from multiprocess import connection

    connection.default_family = "AF_INET"  # Unix sockets are closed to confined programs
    from tools.process_data import main as process  # of Data-Juicer's own package of that name

    process()


def run_program(config: dict[str, Any], directory: Path, call: Call) -> dict[str, Any]:
    """Runs a recipe in a process of its own.

    Args:
        config: The recipe.
        directory: For what is kept on the way.
        call: Hears how far it is.

    Raises:
        RecipeError: If the recipe or its data is wrong.
        OperatorError: If an operator fails.
        CancelledError: If nobody waits for it any more.
    """
    file = directory / "recipe.yaml"
    work = {"work_dir": str(directory / "work"), "ds_cache_dir": str(directory / "cache")}
    file.write_text(json.dumps({"open_monitor": False, **config, **work}), encoding="utf-8")
    command = [sys.executable, "-s", "-E", "-c", _START, str(Path(__file__).parents[1])]
    process = subprocess.Popen(  # noqa: S603  # ourselves
        [*command, "--config", str(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    told = _Told()
    try:
        for line in process.stdout or ():
            if (said := told.take(line)) is not None:
                call.report(*said)
            call.check()
        if process.wait() != 0:
            raise told.failure()
    finally:
        process.kill()
        process.wait()
    _without_statistics(Path(config["export_path"]))
    return told.report()


class _Told:
    """What the program says of its way."""

    def __init__(self) -> None:
        self._rows_in = 0
        self._rows = 0
        self._steps: list[dict[str, Any]] = []
        self._errors: dict[str, list[str]] = {}
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def take(self, line: str) -> tuple[float, float | None, str] | None:
        """Takes a line; returns how far it is, where the line says that.

        Raises:
            MissingPackageError: If a package is missing.
        """
        self._last.append(line.rstrip())
        if found := MISSING.search(line):  # it would go on, without the rows that failed of it
            raise MissingPackageError(found[1])
        if found := _READ.search(line):
            self._rows_in = self._rows = int(found[1])
            return 0, None, f"Read {found[1]} rows"
        if found := _LEFT.search(line):
            if int(found[1]) < self._rows:
                self._steps.append(self._step("(no text)", int(found[1]), 0.0))
        elif found := _FAILED.search(line):
            self._errors.setdefault(found[1], []).append(line.strip()[-500:])
        elif found := _STEP.search(line):
            name, seconds, left = found[3], float(found[4]), int(found[5])
            self._steps.append(self._step(name, left, seconds))
            return int(found[1]), int(found[2]), f"{name}: {left} rows"
        return None

    def report(self) -> dict[str, Any]:
        return {
            "engine": "dj-process",
            "rows_in": self._rows_in,
            "rows_out": self._rows,
            "steps": self._steps,
            "kept": [],
            "dropped": [],
        }

    def failure(self) -> Exception:
        """What it failed of, as its last words tell."""
        last = next((line for line in reversed(self._last) if line.strip()), "it said nothing")
        if self._errors:
            return OperatorError(next(reversed(self._errors)), RuntimeError(last))
        return RecipeError(f"dj-process ended with: {last}")

    def _step(self, name: str, left: int, seconds: float) -> dict[str, Any]:
        before, self._rows = self._rows, left
        errors = self._errors.get(name, [])
        return {
            "operator": name,
            "rows_in": before,
            "rows_out": left,
            "seconds": seconds,
            "failed": len(errors),
            "errors": errors[:3],
        }


def _without_statistics(export: Path) -> None:
    """Removes the file of statistics that it always writes beside its result."""
    for each in export.parent.glob(f"{export.stem}_stats.jsonl"):
        each.unlink()
