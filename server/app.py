"""The composition root: the only place where settings are read and parts are put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from mcp.server.lowlevel import Server

import tools
from server.protocol import build_server
from server.resources import DocumentResources
from server.settings import Settings
from storage.embed import MiniLMEmbedder
from storage.library import Library
from storage.models import Identity
from tools.core.manager import SandboxToolManager
from tools.core.registry import ToolRegistry
from tools.core.sandbox import Sandbox

__all__ = ["App", "build", "open_library"]

INSTRUCTIONS = (
    "Toolcrib keeps this user's context and gives you tools on their machine. Before you say that"
    " you do not know something about the user, their files or their work, ask `query`. Store what"
    " is worth finding again with `add_document`. File paths are relative to one root directory."
    " A failed call says what was wrong and what to do next."
)
"""The first 512 characters are what every client shows to its model."""


@dataclass(frozen=True, slots=True)
class App:
    """The assembled product.

    Attributes:
        settings: What it was built from.
        library: What is stored.
        registry: The tools.
        manager: The call path.
        server: The MCP server that every transport runs.
    """

    settings: Settings
    library: Library
    registry: ToolRegistry
    manager: SandboxToolManager
    server: Server[Any]

    @property
    def identity(self) -> Identity:
        """Whose calls these are when a call does not say."""
        return identity_of(self.settings)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the background work; entered once a process, around everything that is served."""
        self.library.indexer.start()
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.library.close)


def build(settings: Settings) -> App:
    """Puts the product together.

    Raises:
        SettingsError: If a directory of the settings cannot be made.
        StorageError: If the data directory cannot be used.
    """
    library = open_library(settings)
    registry = ToolRegistry()
    registry.discover(tools)
    registry.discover_installed()
    protected = (settings.data_dir, settings.log_file)
    manager = SandboxToolManager(
        registry,
        sandbox=Sandbox(settings.root, protected=protected),
        library=library,
        text_budget=settings.limits.text_budget,
    )
    identity = identity_of(settings)
    server = build_server(
        registry,
        manager,
        name="toolcrib",
        version=version("toolcrib"),
        instructions=INSTRUCTIONS,
        identity=identity,
        resources=DocumentResources(library, identity),
    )
    return App(settings, library, registry, manager, server)


def open_library(settings: Settings) -> Library:
    """Opens what is stored.

    Raises:
        SettingsError: If a directory of the settings cannot be made.
        StorageError: If the data directory cannot be used.
    """
    settings.create_directories()
    return Library(
        settings.data_dir,
        MiniLMEmbedder(),
        alpha=settings.search.alpha,
        max_document_bytes=settings.limits.max_document_bytes,
    )


def identity_of(settings: Settings) -> Identity:
    """The default identity of the settings."""
    return Identity(**settings.identity.model_dump())
