"""The real server around some functions, on a real library, for the user ann."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server.lowlevel import Server

import tools
from server.mcp.browsing.provider import Browsing
from server.mcp.prompts import PromptProvider
from server.mcp.protocol import build_server
from server.mcp.resources import ContextProvider, DocumentProvider
from server.mcp.sessions import ClientRequests, Sessions
from server.mcp.surface import FULL, Surface
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from storage.models import Identity
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.discovery import discover
from tools.core.manager import SandboxToolManager
from tools.core.registry import ToolRegistry
from tools.sandbox.files.sandbox import Sandbox

IDENTITY = Identity(user_id="ann")


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path / "data", MiniLMEmbedder())
    yield library
    library.close()


@pytest.fixture
def server_of(tmp_path: Path, library: Library) -> Callable[..., Server[Any]]:
    """Makes the real server around some functions."""

    def make(*functions: Callable[..., Any], builtin: bool = False) -> Server[Any]:
        registry = ToolRegistry()
        if builtin:
            discover(registry, tools)
        for function in functions:
            registry.add(FunctionToMCP.convert(function))
        manager = SandboxToolManager(
            registry, sandbox=Sandbox(tmp_path), library=library, permissions=None
        )
        requests = ClientRequests(Sessions(), IDENTITY)
        contexts = ContextProvider(library, IDENTITY)
        prompts = PromptProvider(contexts, registry, requests.sessions)
        browsing = Browsing([prompts, contexts, DocumentProvider(contexts)])
        return build_server(
            registry,
            manager,
            name="toolcrib",
            version="1.2.3",
            instructions="Ask the crib.",
            surface=Surface([FULL]),
            browsing=browsing,
            requests=requests,
            ready=anyio.lowlevel.checkpoint,
        )

    return make
