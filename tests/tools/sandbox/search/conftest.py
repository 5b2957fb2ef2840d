"""A root to search, and the search."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.search.search import FileSearch, Found


class Searcher:
    """A search that tests can call as a function, from their own thread.

    Attributes:
        sandbox: What it searches.
    """

    def __init__(self, portal: BlockingPortal, search: FileSearch, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.inner = search
        self._portal = portal

    def grep(self, pattern: str, scope: Any, **options: Any) -> Found:
        options = {"limit": 1000} | options
        return self._portal.call(lambda: self.inner.grep(self.sandbox, pattern, scope, **options))

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._portal.call(function, *arguments)

    def glob(self, scope: Any, *, limit: int = 1000) -> Found:
        return self._portal.call(lambda: self.inner.glob(self.sandbox, scope, limit=limit))

    def rank(self, words: list[str], scope: Any, *, limit: int = 1000) -> Found:
        return self._portal.call(lambda: self.inner.rank(self.sandbox, words, scope, limit=limit))


@contextmanager
def searching(root: Path, **options: Any) -> Iterator[Searcher]:
    """The search beneath a root."""
    sandbox = Sandbox(root, protected=options.pop("protected", ()))
    with start_blocking_portal() as portal:
        search = FileSearch(**options)
        try:
            yield Searcher(portal, search, sandbox)
        finally:
            portal.call(search.aclose)


@pytest.fixture
def open_search(root: Path) -> Callable[..., Any]:
    return partial(searching, root)


@pytest.fixture
def searcher(root: Path) -> Iterator[Searcher]:
    with searching(root) as found:
        yield found
