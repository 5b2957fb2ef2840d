"""Runs the shapes of functions in CPython 3.14 for WebAssembly.

    python -m benchmarks.webassembly FOLDER

The folder has npm's `pyodide` in `node_modules`, and in `modules` the build of the installed
`pydantic-core` for it; `.ci/run` makes such a folder. It needs Node.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.webassembly.running import run


def main() -> None:
    """Prints what passed, and why the others could not run."""
    report = run(Path(sys.argv[1]))
    for name in ("as_written", "without_future"):
        rows = report[name]
        print(f"CPython {report['python']}, {name}: {sum(not row['misses'] for row in rows)} pass.")
        for row in rows:
            if row["misses"]:
                why = ", ".join(row["lacks"]) or "; ".join(row["misses"])
                print(f"    {row['title']}: {why}")


if __name__ == "__main__":
    main()
