"""Runs recipes in Data-Juicer's environment, by its own executor and by our worker.

It takes requests as lines of JSON and answers each with a line: a process of `dj-process` for every
recipe would take seconds each.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def ignore(*_progress: object) -> None:
    """Does nothing with what is reported."""


def run_data_juicer(config: dict[str, Any], work: Path) -> None:
    """Does what `dj-process --config` does in a process of its own."""
    from data_juicer.config import init_configs
    from data_juicer.core import DefaultExecutor
    from loguru import logger

    recipe = work / "recipe.yaml"
    own = {"open_monitor": False, "use_cache": False, "skip_op_error": False, "np": 1}
    places = {"work_dir": str(work / "work"), "ds_cache_dir": str(work / "cache")}
    recipe.write_text(json.dumps({**own, **config, **places}), encoding="utf-8")
    executor = DefaultExecutor(init_configs(["--config", str(recipe)]))
    logger.remove()
    executor.run()


def main() -> None:
    """Answers requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.append(sys.argv[1])
    preparing, running = (import_module(f"worker.{name}") for name in ("preparing", "running"))

    preparing.prepare()
    for line in sys.stdin:
        asked = json.loads(line)
        made: dict[str, Any] = {}
        for engine in asked["engines"]:
            work = Path(asked["directory"]) / engine
            work.mkdir()
            config = {**asked["config"], "export_path": str(work / "out.jsonl")}
            message = {"config": config, "directory": str(work), "sample": 3, "limit": None}
            try:
                if engine == "direct":
                    running.run({**message, "keep_after": None, "kept": None}, ignore)
                else:
                    run_data_juicer(config, work)
                text = (work / "out.jsonl").read_bytes().decode()
                made[engine] = text.split("\n")[:-1]
            except BaseException as error:  # noqa: BLE001  # whatever it is, it is the answer
                made[engine] = f"{type(error).__name__}: {error}"
        answers.write(json.dumps(made) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
