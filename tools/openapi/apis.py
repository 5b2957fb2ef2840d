"""Reads the descriptions of the APIs in the settings, once and in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.to_thread

from storage.keeping.atomic import atomic_file
from tools.conversion.naming import SEPARATOR
from tools.core.errors import InvalidArgumentsError, ToolError
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec
from tools.openapi.api import Api, ApiOptions
from tools.openapi.description import Description
from tools.openapi.tool import SOURCE

LONGEST_WAIT = 10.0
"""Seconds that a list of tools, a search or an unknown name waits for descriptions."""

MOST_BYTES = 50_000_000
"""Maximum bytes of a description."""

MOST_PROBLEMS = 50
"""Maximum problems of one description that are logged."""

_logger = logging.getLogger("toolcrib")


class Descriptions:
    """Reads descriptions: files at each start, URLs once.

    The first response of a URL is stored and used until the user fetches it again, so that a server
    cannot change tools later.
    """

    def __init__(self, directory: Path, fetch: Callable[[str], Awaitable[bytes]]) -> None:
        self._directory = directory
        self._fetch = fetch

    async def read(self, options: ApiOptions) -> bytes:
        """Returns the description of an API."""
        if not options.url:
            return await anyio.to_thread.run_sync(_file, Path(options.address))
        copy = self._copy(options)
        with suppress(FileNotFoundError):
            return await anyio.Path(copy).read_bytes()
        data = await self.fetched(options)
        Description.parse(data)  # only usable descriptions are stored
        await anyio.to_thread.run_sync(self.keep, options, data)
        return data

    async def fetched(self, options: ApiOptions) -> bytes:
        """Returns the current description at a URL."""
        return await self._fetch(options.url)

    def keep(self, options: ApiOptions, data: bytes) -> None:
        """Stores a description for use from now on."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_file(self._copy(options), replace=True) as copy:
            copy.write_bytes(data)

    def _copy(self, options: ApiOptions) -> Path:
        digest = sha256(options.url.encode()).hexdigest()[:16]
        return self._directory / f"{options.name}-{digest}"


class Apis:
    """Keeps the tools of APIs in a registry.

    Args:
        vet: Replaces a tool that needs review by what may be shown of it.
    """

    def __init__(
        self,
        apis: Sequence[ApiOptions],
        registry: ToolRegistry,
        descriptions: Descriptions,
        *,
        vet: Callable[[ToolSpec], ToolSpec],
    ) -> None:
        self._waiting = {each.name: each for each in apis}
        self._registry = registry
        self._descriptions = descriptions
        self._vet = vet
        self._listeners: list[Callable[[], None]] = []
        self._turns = {each.name: anyio.Lock() for each in apis}
        self._settled = threading.Event()
        self._settled.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Reads the descriptions in the background."""
        self._settled.clear()
        async with anyio.create_task_group() as group:
            group.start_soon(self._load_first)
            yield
            group.cancel_scope.cancel()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Registers a listener for new tools."""
        self._listeners.append(listener)

    def settle(self) -> None:
        """Waits until every description was tried once, up to a limit; blocks."""
        self._settled.wait(LONGEST_WAIT)

    async def load(self) -> None:
        """Reads the remaining descriptions; failures are logged and tried again next time."""
        async with anyio.create_task_group() as group:
            for name in self._waiting:
                group.start_soon(self._load, name)

    async def find(self, name: str) -> None:
        """Loads the API that may have a tool of that name."""
        api = name.partition(SEPARATOR)[0]
        if api in self._waiting:
            with anyio.move_on_after(LONGEST_WAIT):
                await self._load(api)

    async def _load_first(self) -> None:
        try:
            await self.load()
        finally:
            self._settled.set()

    async def _load(self, name: str) -> None:
        async with self._turns[name]:
            options = self._waiting.get(name)
            if options is None:  # another task has read it meanwhile
                return
            try:
                data = await self._descriptions.read(options)
                specs = await anyio.to_thread.run_sync(self._tools, options, data)
            except ToolError as error:
                _logger.warning("OpenAPI %s: %s", name, error.message)
                return
            except Exception:  # one bad description must not stop the server
                _logger.exception("OpenAPI %s: its description cannot be used", name)
                return
            self._registry.replace_source(f"{SOURCE}{name}", specs)
            del self._waiting[name]
            for listener in self._listeners:
                listener()

    def _tools(self, options: ApiOptions, data: bytes) -> list[ToolSpec]:
        api = Api(options, data)
        specs = [self._vet(each) for each in api.tools]
        for problem in api.problems[:MOST_PROBLEMS]:
            _logger.warning("OpenAPI %s: %s", options.name, problem)
        if (more := len(api.problems) - MOST_PROBLEMS) > 0:
            _logger.warning("OpenAPI %s: and %d problems more", options.name, more)
        return specs


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidArgumentsError(
            f"The description {path} cannot be read: {error.strerror}.",
            next_actions=["Name a file or an address with an OpenAPI 3 description."],
        ) from error
    if len(data) > MOST_BYTES:
        raise InvalidArgumentsError(
            f"The description {path} has more than {MOST_BYTES:,} bytes.",
            next_actions=["Name a smaller one."],
        )
    return data
