"""ripgrep beside the worker: files in which it finds nothing are skipped from then on.

A thousand files are searched sooner by the worker than ripgrep can be started and confined, so it
is called for help only where a search takes longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from tools.sandbox.search.place import SearchPlace
from tools.sandbox.search.ripgrep import Ripgrep
from tools.sandbox.search.scope import Scope

__all__ = ["Finder", "Hunt"]


class Hunt:
    """ripgrep beside one search, from when the search turns out to be a long one.

    Args:
        finder: Starts ripgrep; None where it is of no use.
        pattern: What `narrowed` made.
        place: Where to search.
        scope: Which files.
    """

    def __init__(
        self, finder: Finder | None, pattern: str, place: SearchPlace, scope: Scope
    ) -> None:
        self._finder = finder
        self._pattern = pattern
        self._place = place
        self._scope = scope
        self._run: asyncio.Task[list[str] | None] | None = None

    @property
    def is_on(self) -> bool:
        """Whether `candidates` may still tell something."""
        return self._finder is not None

    def begin(self, left_out: Collection[str]) -> None:
        """Starts ripgrep, once.

        Args:
            left_out: Directories that the walk left out. ripgrep is told them, since its own
                reading of ignore rules is another than git's.
        """
        if self._finder is not None and self._run is None:
            self._run = self._finder.start(self._pattern, self._place, self._scope, left_out)

    def candidates(self) -> list[str] | None:
        """The files in which something can match, once; None before they are known, and after."""
        if self._run is None or not self._run.done():
            return None
        self._finder = None
        run, self._run = self._run, None
        return run.result()

    def end(self) -> None:
        """Ends ripgrep, if it still runs."""
        if self._run is not None:
            self._run.cancel()


class Finder:
    """Runs ripgrep beside searches.

    Args:
        ripgrep: Says in which files something can match.
    """

    def __init__(self, ripgrep: Ripgrep) -> None:
        self._ripgrep = ripgrep
        self._runs: set[asyncio.Task[list[str] | None]] = set()

    def start(
        self, pattern: str, place: SearchPlace, scope: Scope, left_out: Collection[str]
    ) -> asyncio.Task[list[str] | None]:
        """Starts ripgrep in a task of its own: nobody has to wait for its end."""
        root = place.sandbox.root
        run = asyncio.create_task(
            self._ripgrep.candidates(pattern, root, place.prefix, scope.names, left_out)
        )
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)
        return run

    async def aclose(self) -> None:
        """Ends every run."""
        for run in tuple(self._runs):
            run.cancel()
        await asyncio.gather(*self._runs, return_exceptions=True)
