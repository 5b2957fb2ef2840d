"""The systems that are compared: each makes an MCP server of one function in its own way."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import anyio
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from benchmarks.function_shapes.shape import Kit, Options

Function = Callable[..., Any]


class System(Kit, Protocol):
    """What is measured."""

    name: str

    def convert(self, function: Function) -> object:
        """Makes the tool of a function, with its schema, and no server."""

    def close(self) -> None:
        """Lets go of what is open."""


class Toolcrib:
    """FunctionToMCP, the registry, the call path and the server that the product runs."""

    name = "Toolcrib"

    def __init__(self, directory: Path) -> None:
        # Each system loads its own parts only.
        from storage.index.embedders.bundled import MiniLMEmbedder
        from storage.library import Library
        from tools.authoring import Depends, Media, RequestContext
        from tools.conversion.function_to_mcp import FunctionToMCP

        self.context = RequestContext
        self._depends, self._media = Depends, Media
        self._convert = FunctionToMCP.convert
        self._directory = directory
        self._library = Library(directory / "data", MiniLMEmbedder())

    def image(self, data: bytes) -> object:
        """A picture of ours."""
        return self._media("image", data, "image/png")

    def audio(self, data: bytes) -> object:
        """A sound of ours."""
        return self._media("audio", data, "audio/wav")

    def depends(self, function: Function) -> Any:  # noqa: ANN401  # as Kit has it
        """Our Depends."""
        return self._depends(function)

    def convert(self, function: Function) -> object:
        """The ToolSpec."""
        return self._convert(function)

    def serve(self, function: Function, options: Options) -> Server[Any]:
        """The real server around the one tool."""
        from server.mcp.protocol import build_server  # each system loads its own only
        from server.mcp.sessions import ClientRequests, Sessions
        from server.mcp.surface import FULL, Surface
        from storage.models import Identity
        from tools.core.manager import SandboxToolManager
        from tools.core.registry import ToolRegistry
        from tools.core.spec import ToolOptions
        from tools.sandbox.files.sandbox import Sandbox

        said = ToolOptions(hidden=options.hidden)
        if options.name is not None:
            said["name"] = options.name
        if options.description is not None:
            said["description"] = options.description
        spec = self._convert(function, **said)
        registry = ToolRegistry()
        registry.add(spec)
        sandbox = Sandbox(self._directory)
        requests = ClientRequests(Sessions(), Identity())
        return build_server(
            registry,
            SandboxToolManager(registry, sandbox=sandbox, library=self._library, permissions=None),
            name="toolcrib",
            version="0",
            instructions="",
            surface=Surface([FULL]),
            browsing=None,
            requests=requests,
            ready=anyio.lowlevel.checkpoint,
        )

    def close(self) -> None:
        """Closes the library."""
        self._library.close()


class SDK:
    """`MCPServer` of the MCP Python SDK."""

    name = "mcp"

    def __init__(self, _directory: Path) -> None:
        from mcp.server.mcpserver import Audio, Context, Image, Resolve  # its own
        from mcp.server.mcpserver.tools import Tool

        self.context = Context
        self._image, self._audio, self._resolve, self._tool = Image, Audio, Resolve, Tool

    def image(self, data: bytes) -> object:
        """A picture of the SDK's."""
        return self._image(data=data, format="png")

    def audio(self, data: bytes) -> object:
        """A sound of the SDK's."""
        return self._audio(data=data, format="wav")

    def depends(self, function: Function) -> Any:  # noqa: ANN401  # as Kit has it
        """The SDK's Resolve."""
        return self._resolve(function)

    def convert(self, function: Function) -> object:
        """The SDK's own tool."""
        return self._tool.from_function(function)

    def serve(self, function: Function, options: Options) -> MCPServer:
        """The server, with the function added; a hidden parameter is resolved to its default."""
        defaults = getattr(function, "__kwdefaults__", None) or {}
        for name in options.hidden:
            resolve = self._resolve(_constant(defaults[name]))
            function.__annotations__[name] = Annotated[function.__annotations__[name], resolve]
        server = MCPServer("mcp")
        server.add_tool(function, name=options.name, description=options.description)
        return server

    def close(self) -> None:
        """Nothing is open."""


class Fast:
    """FastMCP."""

    name = "FastMCP"

    def __init__(self, _directory: Path) -> None:
        from fastmcp import Context, FastMCP  # each system loads its own only
        from fastmcp.dependencies import Depends
        from fastmcp.tools import Tool
        from fastmcp.tools.tool_transform import ArgTransform
        from fastmcp.utilities.types import Audio, Image

        self.context = Context
        self._depends = Depends
        self._image, self._audio, self._tool = Image, Audio, Tool
        self._server, self._transform = FastMCP, ArgTransform

    def image(self, data: bytes) -> object:
        """A picture of FastMCP's."""
        return self._image(data=data, format="png")

    def audio(self, data: bytes) -> object:
        """A sound of FastMCP's."""
        return self._audio(data=data, format="wav")

    def depends(self, function: Function) -> Any:  # noqa: ANN401  # as Kit has it
        """FastMCP's Depends."""
        return self._depends(function)

    def convert(self, function: Function) -> object:
        """FastMCP's own tool."""
        return self._tool.from_function(function)

    def serve(self, function: Function, options: Options) -> Server[Any]:
        """The server inside FastMCP's, which its own in-memory transport takes too."""
        tool: Any = self._tool.from_function(
            function, name=options.name, description=options.description
        )
        if options.hidden:
            hide = {name: self._transform(hide=True) for name in options.hidden}
            tool = self._tool.from_tool(tool, transform_args=hide)
        server: Any = self._server("fastmcp")
        server.add_tool(tool)
        inner: Server[Any] = server._mcp_server  # noqa: SLF001  # as its own transport does
        return inner

    def close(self) -> None:
        """Nothing is open."""


SYSTEMS: dict[str, Callable[[Path], System]] = {each.name: each for each in (Toolcrib, SDK, Fast)}
"""How each system is opened; the directory is its own to write in."""


@contextmanager
def opened(name: str) -> Iterator[System]:
    """A system, with a directory of its own while it is open."""
    with tempfile.TemporaryDirectory(prefix="toolcrib-shapes-") as directory:
        system = SYSTEMS[name](Path(directory))
        try:
            yield system
        finally:
            system.close()


def _constant(value: object) -> Callable[[], object]:
    def constant() -> object:
        return value

    return constant
