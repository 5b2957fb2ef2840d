"""What the event loop does between two beats of its heart, while tools have much to do."""

import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from server.app import App, build
from server.settings import Settings
from server.settings.safety import PolicySettings

pytestmark = [pytest.mark.slow, pytest.mark.alone]

MOST_ROUNDS = 3_000_000
"""Of an empty loop, 60 ms or more: the most work of the loop's own between two beats."""

LINES = "A line of notes that is as long as lines are in most files of text.\n"


def most_seconds() -> float:
    """The limit in processor time on this machine as it is now: that of others does not count."""
    began = time.thread_time()
    for _ in range(MOST_ROUNDS):
        pass
    return time.thread_time() - began


@asynccontextmanager
async def beating() -> AsyncIterator[Callable[[], float]]:
    """Beats as often as the loop lets it; tells the most work that stood between two beats."""
    worst, last = 0.0, time.thread_time()

    async def beat() -> None:
        nonlocal worst, last
        while True:
            await anyio.lowlevel.checkpoint()
            now = time.thread_time()
            worst, last = max(worst, now - last), now

    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        yield lambda: worst
        group.cancel_scope.cancel()


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "large.txt").write_text(LINES * 100_000)
    for folder in range(30):
        (root / f"folder{folder}").mkdir()
        for number in range(100):
            (root / f"folder{folder}" / f"notes{number}.md").write_text(LINES * 20)
    policy = PolicySettings(allow=("*",))
    app = build(Settings(data_dir=tmp_path / "data", root=root, policy=policy))
    async with app.running():
        gc.freeze()  # what the other tests keep is no garbage to look for
        yield app
        gc.unfreeze()


CALLS: dict[str, dict[str, Any]] = {
    "read_file": {"file_path": "large.txt"},
    "write_file": {"file_path": "written.txt", "content": LINES * 100_000},
    "edit_file": {
        "file_path": "large.txt",
        "old_text": "notes",
        "new_text": "verse and notes",
        "replace_all": True,
    },
    "list_directory": {"path": ".", "depth": 3},
    "glob": {"pattern": "**/*.md", "max_results": 1000},
    "grep": {"pattern": "as long as", "max_results": 1000, "context_lines": 5},
    "search_files": {"query": "notes files text", "max_results": 100},
    "bash": {"command": "yes | head -c 100000000; ls -R; echo done >&2"},
    "execute_python_code": {"code": "print('x' * 50_000_000)"},
    "todo": {"todos": [{"content": "c" * 200, "status": "pending"}] * 200},
    "add_document": {"path": "large.txt"},
}


@pytest.mark.parametrize("name", CALLS)
async def test_no_call_keeps_the_event_loop_from_its_other_work(app: App, name: str) -> None:
    async with beating() as most:
        for _ in range(2):  # with all that a first call imports, and without
            result = await app.manager.execute(name, CALLS[name], app.context)
            assert not result.is_error, result.text
    worst, limit = most(), most_seconds()
    assert worst <= limit, f"{1000 * worst:.0f} of {1000 * limit:.0f} ms of work in one piece"


async def test_the_heart_notices_work_that_is_too_long() -> None:
    limit = most_seconds()
    async with beating() as most:
        await anyio.lowlevel.checkpoint()
        began = time.thread_time()
        while time.thread_time() - began < 2 * limit:
            pass
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
    assert most() > limit
