"""ripgrep beside the worker: what it finds nothing in is skipped from then on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from tools.core.filesearch.place import SearchPlace
from tools.core.filesearch.ripgrep import Ripgrep

__all__ = ["Finder", "Hunt", "Scope"]

MAX_KNOWN = 64
"""Places of which it is remembered what is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which files are searched.

    Attributes:
        path: A directory, or one file, relative to the root.
        names: Pattern of their paths, relative to that directory; empty for all.
        include_ignored: Whether those that git leaves out are searched too.
    """

    path: str = "."
    names: str = ""
    include_ignored: bool = False


class Hunt:
    """One run of ripgrep beside one search.

    What git leaves out, such as node_modules, ripgrep is told, since its own reading of ignore
    rules is another than git's. Which directories that are is known after the walk; the last
    walk's are told meanwhile, and if one of them has come back, ripgrep is asked again.

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
        self._key = (str(place.sandbox.root), place.prefix, scope.include_ignored)
        self._run: asyncio.Task[list[str] | None] | None = None
        self._told = finder.left_out.get(self._key) if finder else None
        if finder and self._told is not None:
            self._run = finder.start(pattern, place, scope, self._told)

    def walked(self, tree: dict[str, Any]) -> None:
        """Takes note of what the walk left out."""
        if self._finder is None:
            return
        left_out = frozenset((*tree["left_out"], *tree["unreadable"]))
        self._finder.remember(self._key, left_out)
        if self._told is None or not self._told <= left_out:
            self.end()
            self._run = self._finder.start(self._pattern, self._place, self._scope, left_out)

    @property
    def is_on(self) -> bool:
        """Whether `candidates` may still tell something."""
        return self._run is not None

    def candidates(self) -> list[str] | None:
        """The files in which something can match, once; None before they are known, and after."""
        run = self._run
        if run is None or not run.done():
            return None
        self._run = None
        return run.result()

    def end(self) -> None:
        """Ends ripgrep, if it still runs."""
        if self._run is not None:
            self._run.cancel()
            self._run = None


class Finder:
    """Runs ripgrep beside searches.

    Args:
        ripgrep: Says in which files something can match.

    Attributes:
        left_out: What the last walk of a place left out.
    """

    def __init__(self, ripgrep: Ripgrep) -> None:
        self.left_out: dict[tuple[str, str, bool], frozenset[str]] = {}
        self._ripgrep = ripgrep
        self._runs: set[asyncio.Task[list[str] | None]] = set()

    def start(
        self, pattern: str, place: SearchPlace, scope: Scope, left_out: frozenset[str]
    ) -> asyncio.Task[list[str] | None]:
        """Starts ripgrep in a task of its own: nobody has to wait for its end."""
        run = asyncio.create_task(
            self._ripgrep.candidates(
                pattern, place.sandbox.root, place.prefix, scope.names, left_out
            )
        )
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)
        return run

    def remember(self, key: tuple[str, str, bool], left_out: frozenset[str]) -> None:
        """Remembers what a walk left out."""
        if len(self.left_out) >= MAX_KNOWN:
            self.left_out.clear()
        self.left_out[key] = left_out

    async def aclose(self) -> None:
        """Ends every run."""
        for run in tuple(self._runs):
            run.cancel()
        await asyncio.gather(*self._runs, return_exceptions=True)
