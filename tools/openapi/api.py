"""Reads the descriptions of APIs in the background, once each, and builds their tools."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.to_thread

from storage.keeping.atomic import atomic_file
from tools.conversion.naming import SEPARATOR
from tools.core.errors import InvalidArgumentsError, ToolError
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec
from tools.openapi.arguments import arguments_of
from tools.openapi.description import (
    Description,
    Operation,
    Selection,
    UnusableError,
    names_of,
    operations_of,
    pairs,
    text_of,
)
from tools.openapi.schemas import Schemas
from tools.openapi.tool import SOURCE, OperationCalls
from tools.sandbox.web.url import Url


@dataclass(frozen=True, slots=True)
class Scheme:
    """The form in which a request carries a credential."""

    kind: str
    place: str  # header, query or cookie
    name: str
    form: str = "{secret}"  # template of its value, with `{secret}` or `{base64}`

    @property
    def parameter(self) -> str:
        """Its key among hidden parameters, as in `arguments_of`."""
        return f"{self.place}:{self.name.lower()}"

    def settings(self) -> dict[str, str]:
        """Returns the entries that `[secrets.NAME]` needs for it, without defaults."""
        match self.place:
            case "query":
                return {"query": self.name}
            case "cookie":
                return {"header": "Cookie", "format": self.form}
        is_usual = self.form == "Bearer {secret}"
        named = {} if self.name == "Authorization" else {"header": self.name}
        return named if is_usual or self.form == "{secret}" else {**named, "format": self.form}


def schemes_of(description: Description) -> Iterator[Scheme]:
    """Yields the schemes that a secret of the settings can serve."""
    components = pairs(description.document.get("components"))
    for given in pairs(components.get("securitySchemes")).values():
        scheme = description.follow(given)
        name = text_of(scheme.get("name"))
        match text_of(scheme.get("type")), text_of(scheme.get("scheme")).lower():
            case "apiKey", _ if name and scheme.get("in") == "cookie":
                yield Scheme("an API key", "cookie", name, f"{name}={{secret}}")
            case "apiKey", _ if name and text_of(scheme.get("in")) in {"header", "query"}:
                yield Scheme("an API key", text_of(scheme.get("in")), name)
            case "http", "basic":
                yield Scheme("user:password", "header", "Authorization", "Basic {base64}")
            case "http", "bearer":
                yield Scheme("a bearer token", "header", "Authorization", "Bearer {secret}")
            case "oauth2" | "openIdConnect" as kind, _:
                token = "an access token of OAuth" if kind == "oauth2" else "an access token"
                yield Scheme(token, "header", "Authorization", "Bearer {secret}")


def is_open(operation: Operation) -> bool:
    """Returns whether an operation is declared to need no credentials."""
    return operation.content.get("security") == []


MOST_OPERATIONS = 10_000  # maximum operations of a description; its tools are searched together


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOptions:
    """The settings of an API."""

    name: str
    address: str  # the path or URL of its description
    base_url: str = ""  # its own address; empty for the one in its description
    selection: Selection = field(default_factory=Selection)
    secret: str = ""  # name of the secret that is sent to it; empty for none

    @property
    def url(self) -> str:
        """The URL of its description; empty for a file."""
        is_url = self.address.lower().startswith(("http://", "https://"))
        return self.address if is_url else ""


class Api:
    """The tools of an API."""

    def __init__(self, options: ApiOptions, data: bytes) -> None:
        self._options = options
        self.description = Description.parse(data)
        try:
            self.operations = operations_of(self.description)
            self.schemes: Sequence[Scheme] = tuple(schemes_of(self.description))
        except UnusableError as error:
            raise InvalidArgumentsError(
                f"The description cannot be used: {error}.",
                next_actions=["Bundle it into one file: `npx @redocly/cli bundle FILE`."],
            ) from error
        if len(self.operations) > MOST_OPERATIONS:
            raise InvalidArgumentsError(
                f"The description has more than {MOST_OPERATIONS:,} operations.",
                next_actions=["Name a smaller one with only the wanted operations."],
            )

    @cached_property
    def wanted(self) -> dict[str, Operation]:
        """The operations that the settings select, by tool name."""
        named = names_of(self._options.name, self.operations)
        return {name: each for name, each in named.items() if self._options.selection.admits(each)}

    @property
    def tools(self) -> list[ToolSpec]:
        """The tools of the selected operations, without those that cannot become tools."""
        return [spec for _, spec in self._calls_and_tools]

    @property
    def addresses(self) -> list[str]:
        """The distinct addresses that their requests go to."""
        return list(dict.fromkeys(calls.base_url for calls, _ in self._calls_and_tools))

    @cached_property
    def problems(self) -> list[str]:
        """The problems found in the description so far."""
        idle = self._options.selection.idle(self.operations)
        return [f"{pattern!r} matches no operation" for pattern in idle]

    @cached_property
    def _calls_and_tools(self) -> list[tuple[OperationCalls, ToolSpec]]:
        return [made for name, each in self.wanted.items() for made in self._tool(name, each)]

    def _tool(self, name: str, operation: Operation) -> Iterator[tuple[OperationCalls, ToolSpec]]:
        try:
            base_url = self._base_url(operation)
            arguments = arguments_of(operation, self._schemas, self._hidden)
            schema = arguments.schema(self._schemas)
        except UnusableError as error:
            self.problems.append(f"{operation} is skipped: {error}")
        else:
            secret = None if is_open(operation) else self._options.secret or None
            calls = OperationCalls(name, operation, base_url, arguments, schema, secret)
            yield calls, calls.tool(self._options.name)

    def _base_url(self, operation: Operation) -> str:
        options = self._options
        given = options.base_url or self.description.base_url(
            options.url, operation.content, operation.item
        )
        try:
            return str(Url.parse(given)).rstrip("/")
        except InvalidArgumentsError as error:
            raise UnusableError(error.message) from error

    @cached_property
    def _schemas(self) -> Schemas:
        return Schemas(self.description)

    @cached_property
    def _hidden(self) -> frozenset[str]:
        return frozenset(each.parameter for each in self.schemes)


LONGEST_WAIT = 10.0
"""Seconds that a list of tools, a search or an unknown name waits for descriptions."""

MOST_BYTES = 50_000_000  # maximum bytes of a description
MOST_PROBLEMS = 50  # maximum problems of one description that are logged

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

    `vet` replaces a tool that needs review by what may be shown of it.
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
