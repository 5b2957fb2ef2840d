"""The first lines of a worker process: finds our packages, wherever its interpreter is from.

Run as a script with the interpreter of the function file's environment, which need not have
Toolcrib installed.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

__all__ = ["OurFinder"]

OURS = Path(__file__).resolve().parents[3]
"""The directory that holds our packages; the rest of it is not for the worker."""


class OurFinder:
    """Finds the packages that a worker runs on, and nothing else of what lies beside them."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder`; submodules are found by their package's path."""
        return PathFinder.find_spec(name, [str(OURS)]) if name in {"tools", "storage"} else None


if __name__ == "__main__":
    sys.meta_path.insert(0, OurFinder)
    from tools.functions.workers.host import main

    sys.meta_path.remove(OurFinder)
    main()
