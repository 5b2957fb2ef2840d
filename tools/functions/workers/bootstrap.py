"""The first lines of a worker process: finds our packages, wherever its interpreter is from.

Run as a script with the interpreter of the function file's environment, which need not have
Toolcrib installed; with the argument `confined` it is a cell's, whose stdin is a socket.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

OURS = Path(__file__).resolve().parents[3]
"""The directory that holds our packages; the rest of it is not for the worker."""

OUR_PACKAGES = ("tools", "storage")
"""Those that it runs on."""


class OurFinder:
    """Finds the packages that a worker runs on, and nothing else of what lies beside them."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder`; submodules are found by their package's path."""
        if name not in OUR_PACKAGES:
            return None
        package = OURS / name  # by its path: a cell may not list what is above it
        return spec_from_file_location(
            name, package / "__init__.py", submodule_search_locations=[str(package)]
        )


if __name__ == "__main__":
    sys.meta_path.insert(0, OurFinder)
    import storage  # noqa: F401  # as tools it is found from here on
    from tools.functions.workers.channel import Channel

    if sys.argv[1:] == ["confined"]:
        from tools.functions.programs.cell import main
        from tools.functions.workers.bounds import OF_CELLS

        channel = Channel(0, 0, output=1, bounds=OF_CELLS)
    else:
        from tools.functions.workers.host import main

        channel = Channel(0, 1, output=2)
    sys.meta_path.remove(OurFinder)
    main(channel)
