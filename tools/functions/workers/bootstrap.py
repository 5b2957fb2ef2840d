"""Starts a worker process: makes our packages importable in any interpreter.

Runs as a script in the function file's environment, which need not have Toolcrib installed. With
the argument `confined` it runs in a code worker, whose stdin is a socket.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

OURS = Path(__file__).resolve().parents[3]
"""The parent directory of our packages; the worker must not import anything else from it."""

OUR_PACKAGES = ("tools", "storage")  # the packages that the worker runs on


class OurFinder:
    """Finds the packages that a worker runs on, and nothing else in their directory."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Implements `importlib.abc.MetaPathFinder`; submodules are found through their package."""
        if name not in OUR_PACKAGES:
            return None
        package = OURS / name  # by path, since a code worker may not list the parent
        return spec_from_file_location(
            name, package / "__init__.py", submodule_search_locations=[str(package)]
        )


if __name__ == "__main__":
    sys.meta_path.insert(0, OurFinder)
    import storage  # noqa: F401  # found by the path, as tools is, from here on
    from tools.functions.workers.channel import Channel

    if sys.argv[1:] == ["confined"]:
        from tools.functions.programs.code_worker import main
        from tools.functions.workers.messages import OF_CONFINED

        channel = Channel(0, 0, output=1, bounds=OF_CONFINED)
    else:
        from tools.functions.workers.host import main

        channel = Channel(0, 1, output=2)
    sys.meta_path.remove(OurFinder)
    main(channel)
