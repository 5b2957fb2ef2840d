"""What grep costs beside plain ripgrep on a checkout of a thousand files.

    python -m benchmarks.filesearch [--files N] [--rounds N] [--json]

The tree is made of this repository's own files, copied until there are enough, with a .git and an
ignored build directory. In each round both ways are asked once, in turn, so that what else the
machine does meets them alike: plain `rg` as a program, from its start to its end, and the tool
through the manager. Figures are medians in milliseconds, and of the quotients within each round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from server.app import App, build
from server.settings.sources import load

TARGET = 1.5
"""How many times as long as plain ripgrep the tool may take."""

REPOSITORY = Path(__file__).parents[1]
FOLDERS = ("server", "tools", "storage", "tests", "docs", "benchmarks")
WARM_UP = 3
"""Rounds that are not counted."""

PATTERNS = {
    "a name": "Sandbox",
    "nothing": "no_such_name_anywhere",
    "a class": r"^class \w+\(",
    "either": "def (glob|grep|search_files)",
    "any case": "(?i)todo",
    "everywhere": "return",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One pattern, searched in two ways; milliseconds.

    Attributes:
        what: Which pattern.
        plain: Median of plain ripgrep.
        tool: Median of the tool.
        ratio: Median of the quotient of the two within a round.
    """

    what: str
    plain: float
    tool: float
    ratio: float


async def compare(files: int, rounds: int) -> list[Row]:
    """Every pattern in every way."""
    program = shutil.which("rg")
    assert program, "ripgrep is not installed"
    with tempfile.TemporaryDirectory() as home:
        root = Path(home, "root")
        grow(root, files)
        settings = load(
            {"root": root, "data_dir": Path(home, "data")}, environ={"TOOLCRIB_CONFIG": ""}
        )
        app = build(settings)
        async with app.running():
            plain = partial(_plain, program, root)
            return [await _row(app, plain, what, rounds) for what in PATTERNS]


def grow(root: Path, files: int) -> None:
    """Makes the tree."""
    (root / ".git").mkdir(parents=True)
    (root / "build").mkdir()
    (root / ".gitignore").write_text("build/\n__pycache__/\n*.pyc\n")
    sources = [
        path
        for folder in FOLDERS
        for path in sorted((REPOSITORY / folder).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    for number in range(files - 1):
        copies, at = divmod(number, len(sources))
        target = root / f"copy{copies}" / sources[at].relative_to(REPOSITORY)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sources[at], target)
    for number in range(100):
        shutil.copyfile(sources[number], root / "build" / str(number))


async def _row(app: App, plain: Callable[[str], None], what: str, rounds: int) -> Row:
    pattern = PATTERNS[what]
    times: dict[str, list[float]] = {"plain": [], "tool": []}
    for _ in range(rounds + WARM_UP):
        times["plain"].append(await _timed(lambda: asyncio.to_thread(plain, pattern)))
        times["tool"].append(await _timed(lambda: _tool(app, pattern)))
    counted = {name: taken[WARM_UP:] for name, taken in times.items()}
    return Row(
        what,
        statistics.median(counted["plain"]),
        statistics.median(counted["tool"]),
        _ratio(counted["tool"], counted["plain"]),
    )


def _plain(program: str, root: Path, pattern: str) -> None:
    command = [program, "--no-config", "--hidden", "-n", "-e", pattern]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    assert done.returncode in {0, 1}


async def _tool(app: App, pattern: str) -> None:
    result = await app.manager.execute("grep", {"pattern": pattern}, app.context)
    assert not result.is_error, result.text


async def _timed(way: Callable[[], Awaitable[None]]) -> float:
    start = time.perf_counter()
    await way()
    return (time.perf_counter() - start) * 1000


def _ratio(ours: list[float], plain: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, plain, strict=True))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = asyncio.run(compare(given.files, given.rounds))
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(f"{given.files} files, {os.cpu_count()} cores; milliseconds, target {TARGET} x plain rg")
    print(f"{'pattern':12} {'plain rg':>9} {'grep':>9} {'ratio':>6}")
    for row in rows:
        print(f"{row.what:12} {row.plain:9.1f} {row.tool:9.1f} {row.ratio:6.2f}")


if __name__ == "__main__":
    main()
