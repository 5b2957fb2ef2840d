"""What plans and to-do lists cost: processor time of a call with a thousand steps.

    python -m benchmarks.plans [--steps N] [--rounds N]

The calls take the whole path in this process: validation, policy, storage, audit and the record of
calls. What `done` keeps as an event is embedded in the background: with that, and without. Three in
four steps wait for the one before. Beside each: the characters that its reader gets.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from server.app import App, build
from server.opening.uncollected import uncollected
from server.settings.sources import load
from storage.models import Identity
from tools.core.context import RequestContext

ROUNDS = 20
STEPS = 1_000
TODOS = 200


def main() -> None:
    """Prints the cost of each operation."""
    parser = argparse.ArgumentParser(description="What plans and to-do lists cost.")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(_measure, Path(folder), arguments.steps, arguments.rounds)


async def _measure(folder: Path, count: int, rounds: int) -> None:
    with uncollected():  # as the server does
        app = build(load({"data_dir": folder, "root": folder}, environ={"TOOLCRIB_CONFIG": ""}))
    steps = [
        {
            "id": f"s{number}",
            "title": f"Translate chapter {number} of the handbook",
            "detail": "Keep the names of the tools, and the numbers of the figures. " * 3,
            "blocked_by": [f"s{number - 1}"] if number % 4 else [],
        }
        for number in range(count)
    ]
    todos = [{"content": f"Chapter {number}", "status": "pending"} for number in range(TODOS)]
    async with app.running():
        print(f"{'':28} CPU ms  characters")
        await _row(app, "get_plan", [{}] * rounds, "none there")
        await _row(app, "todo", [{"todos": todos}] * rounds)
        await _row(app, "read_todos", [{}] * rounds)
        await _row(app, "create_plan", [{"goal": "Translate it", "steps": steps}] * rounds)
        begun = [{"step": f"s{at - at % 4}", "status": "in_progress"} for at in range(rounds)]
        await _row(app, "update_plan", begun, "a step")
        added = [{"steps": [{"id": f"s{count - 1}", "detail": f"{at}"}]} for at in range(rounds)]
        await _row(app, "update_plan", added, "replanning")
        await _row(app, "get_plan", [{}] * rounds)
        await _row(app, "get_plan", [{"detail": True}] * rounds, "a page of details")
        await _row(app, "get_plan", [{"step": "s1"}] * rounds, "one step")
        closing = [{"abandon": True, "message": "Enough"}] * (rounds // 2)
        await _row(app, "done", closing, "embedding its event")
        app.library.indexer.stop()
        await _row(app, "done", closing)


async def _row(app: App, name: str, calls: list[dict[str, Any]], what: str = "") -> None:
    context = RequestContext(Identity("ann"), session_id="s")
    taken, text = [], ""
    for arguments in calls:
        began = time.process_time()
        result = await app.manager.execute(name, arguments, context)
        taken.append((time.process_time() - began) * 1000)
        assert not result.is_error, result.text
        text = result.text
    said = f"{name}, {what}" if what else name
    print(f"{said:28} {statistics.median(taken):6.1f}  {len(text):10}")


if __name__ == "__main__":
    main()
