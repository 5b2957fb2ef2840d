"""Function files that are really served: real files, real worker processes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest

from storage.index.embedders.base import EmbedderOptions
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from tools.core.context import RequestContext
from tools.core.manager import SandboxToolManager
from tools.core.registry import ToolRegistry
from tools.core.result import ToolResult
from tools.functions.environment import Environments
from tools.functions.file import WorkerOptions
from tools.functions.files import FunctionFiles
from tools.functions.workers.store import StoreOptions
from tools.sandbox.files.openat import HeldRoot
from tools.sandbox.files.sandbox import Sandbox


@dataclass
class Served:
    """Function files in service."""

    folder: Path
    root: Path
    files: FunctionFiles
    registry: ToolRegistry
    manager: SandboxToolManager
    library: Library

    @property
    def names(self) -> list[str]:
        return [spec.name for spec in self.registry.specs()]

    def save(self, source: str, name: str = "crafts.py") -> Path:
        return save(self.folder, source, name)

    async def call(self, tool: str, /, **arguments: Any) -> ToolResult:
        return await self.manager.execute(tool, arguments, RequestContext())

    async def value(self, tool: str, /, **arguments: Any) -> Any:
        result = await self.call(tool, **arguments)
        assert not result.is_error, result.text
        return result.structured["result"]

    async def error(self, tool: str, /, **arguments: Any) -> tuple[str, str]:
        result = await self.call(tool, **arguments)
        assert result.is_error, result.text
        return result.structured["error_type"], result.structured["message"]


Serve = Callable[..., AbstractAsyncContextManager[Served]]


def save(folder: Path, source: str, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(source), encoding="utf-8")
    return path


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serves a folder, with one file of the given source in it."""
    folder, root = tmp_path / "functions", tmp_path / "root"
    folder.mkdir()
    root.mkdir()

    @asynccontextmanager
    async def served(
        source: str,
        *,
        name: str = "crafts.py",
        memory_bytes: int = 0,
        may_store: bool = False,
        **environ: str,
    ) -> AsyncIterator[Served]:
        save(folder, source, name)
        registry = ToolRegistry()
        environment = {**os.environ, **environ}
        store = StoreOptions(
            directory=tmp_path / "data",
            embedder=EmbedderOptions(),
            chroma_url="",
            private=(),
            proxy="",
            alpha=0.5,
            max_document_bytes=1_000,
        )
        options = WorkerOptions(
            environments=Environments(tmp_path / "environments", environ=environment),
            variables=environment,
            held=HeldRoot(str(root)),
            protected=(),
            read_only=(folder,),
            memory_bytes=memory_bytes,
            starts=anyio.CapacityLimiter(2),
            stores={folder / name: store} if may_store else {},
        )
        files = FunctionFiles([folder], registry, lambda: options)
        library = Library(tmp_path / "data", MiniLMEmbedder())
        manager = SandboxToolManager(
            registry,
            sandbox=Sandbox(root),
            library=library,
            permissions=None,
            find_more=lambda _name: files.refresh(),
        )
        try:
            async with files.running():
                await files.loaded()
                yield Served(folder, root, files, registry, manager, library)
        finally:
            library.close()

    return served
