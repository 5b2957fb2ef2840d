"""A root to search, and the search with and without ripgrep."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.processes.models import Level, Limits, SandboxMode
from tools.sandbox.processes.processes import Processes, inherited_variables
from tools.sandbox.search.conversation import Found
from tools.sandbox.search.search import FileSearch
from tools.sandbox.web.guard import AddressGuard

ENGINES = ("worker", "ripgrep")


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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@contextmanager
def searching(root: Path, engine: str, **options: Any) -> Iterator[Searcher]:
    """The search beneath a root by one of the engines."""
    data_dir = root.parent / "data"
    sandbox = Sandbox(root, protected=options.pop("protected", ()))
    processes = None
    if engine == "ripgrep":
        if shutil.which("rg") is None:
            pytest.skip("ripgrep is not installed")
        processes = Processes(
            root=root,
            protected=(),
            read_only=(),
            mode=SandboxMode.PREFERRED,
            limits=Limits(),
            environment=inherited_variables(os.environ, ()),
            readable=(),
            network=(),
            sandbox=sandbox,
            data_dir=data_dir,
            guard=AddressGuard,
        )
    with start_blocking_portal() as portal:
        search = FileSearch(processes, **options)
        try:
            if processes and portal.call(processes.level) is Level.NONE:
                pytest.skip("no confinement works here, so ripgrep is not used")
            yield Searcher(portal, search, sandbox)
        finally:
            portal.call(search.aclose)
            if processes:
                portal.call(processes.aclose)


@pytest.fixture
def open_search(root: Path) -> Callable[..., Any]:
    return lambda engine="worker", **options: searching(root, engine, **options)


@pytest.fixture(params=ENGINES)
def searcher(request: pytest.FixtureRequest, root: Path) -> Iterator[Searcher]:
    with searching(root, request.param) as found:
        yield found
