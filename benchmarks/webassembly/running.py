"""Starts Node with CPython for WebAssembly on this checkout and the packages of this Python."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def run(folder: Path) -> dict[str, Any]:
    """Returns what Toolcrib misses of each shape there, as `inside.main` prints it."""
    # The folder has npm's `pyodide`, and `pydantic-core` for it in `modules`.
    command = ["node", str(HERE / "run.mjs"), str(folder / "node_modules/pyodide")]
    folders = [folder / "modules", HERE.parents[1], Path(sysconfig.get_path("purelib"))]
    command += map(str, folders)
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    report: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return report
