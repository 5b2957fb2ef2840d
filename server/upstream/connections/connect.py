"""Connects to servers as their settings require, in several ways if necessary."""

from __future__ import annotations

import os
import re
import shutil
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from pydantic import SecretStr

from server.settings.gateway import ServerSettings
from server.upstream.connections.connection import Callbacks, Connection, MakeCallbacks, Mode
from server.upstream.connections.environment import VARIABLE, depth_of, inherited_variables
from server.upstream.connections.http_link import Endpoint, HttpLink, has_token
from server.upstream.connections.link import Link, SignInRequiredError, last_words_text, problem_of
from tools.core.errors import UnavailableError
from tools.sandbox.secrets.references import References

if TYPE_CHECKING:
    import httpx2

    from server.upstream.connections.server_log import ServerLog
    from server.upstream.sign_in.account import Account
    from server.upstream.sign_in.sign_ins import SignIns
    from tools.sandbox.processes.lasting import LastingProcesses
    from tools.sandbox.processes.launching.launcher import Launcher

    Confine = Callable[[str, ServerSettings, str, Launcher], LastingProcesses]


_HEADER = re.compile(r"[\t\x20-\x7e]*")
"""The characters of a header value (RFC 9110, section 5.5)."""


class Transports:
    """Builds links, with a proxy for servers on other machines; close it with `aclose`.

    `confine` builds the confined launcher of a server from its name, settings and program.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        proxy: Callable[[], str] = str,
        references: References | None = None,  # those in the settings; by default without secrets
        data_dir: Path | None = None,  # of logs and sign-ins; without it, there are none
        confine: Confine | None = None,
    ) -> None:
        self._data_dir = data_dir
        self._environ = environ
        self._proxy = proxy
        self._references = references or References(environ)
        self._confine = confine
        self._launcher: Launcher | None = None
        self._confining = anyio.Lock()
        self._confined_launcher: Launcher | None = None  # its programs gain no privileges
        self._confined: dict[tuple[object, ...], LastingProcesses] = {}

    async def link(self, name: str, settings: ServerSettings, *, sse: bool = False) -> Link:
        """Builds a link to a server, with the current values of what its settings refer to."""
        current = await self._current(settings)
        if current.url:
            endpoint = await self._endpoint(current)
            if self._data_dir is not None and not has_token(endpoint.headers):
                endpoint = replace(endpoint, auth=self._account(name, current, endpoint))
            link: Link = HttpLink(endpoint, sse=sse)
        else:
            link = await self._program(name, current)
        link.redaction = self._references.redaction
        return link

    async def _current(self, settings: ServerSettings) -> ServerSettings:
        # The keyring may wait for the user.
        expand = partial(self._expanded, settings)
        return await anyio.to_thread.run_sync(expand, abandon_on_cancel=True)

    def _expanded(self, settings: ServerSettings) -> ServerSettings:
        """Returns the settings with values instead of references; blocks."""
        expand = self._references.expand

        def secrets(field: str, values: Mapping[str, SecretStr]) -> dict[str, SecretStr]:
            is_secret = field == "headers"
            return {
                name: SecretStr(
                    expand(each.get_secret_value(), f"its {field}.{name}", is_secret=is_secret)
                )
                for name, each in values.items()
            }

        secret = self._references.secret
        client_secret = secret(settings.oauth.client_secret, "its oauth.client_secret")
        oauth = {"client_secret": SecretStr(client_secret)}
        return settings.model_copy(
            update={
                "command": expand(settings.command, "its command"),
                "args": tuple(expand(each, "its args") for each in settings.args),
                "env": secrets("env", settings.env),
                "url": expand(settings.url, "its url"),
                "headers": secrets("headers", settings.headers),
                "token": SecretStr(secret(settings.token, "its token")),
                "oauth": settings.oauth.model_copy(update=oauth),
            }
        )

    async def account(self, name: str, settings: ServerSettings) -> Account:
        """Returns the account at a server with a URL."""
        current = await self._current(settings)
        return self._account(name, current, await self._endpoint(current))

    async def client(self, url: str) -> httpx2.AsyncClient:
        """Builds a client for requests to a URL, through the proxy unless it is on this machine."""
        return HttpLink(await self._endpoint(ServerSettings(url=url))).client()

    def _account(self, name: str, settings: ServerSettings, endpoint: Endpoint) -> Account:
        from server.upstream.sign_in.account import Account

        bare = replace(endpoint, headers={})
        make_client = HttpLink(bare).client
        return Account(name, bare.url, settings.oauth, self._sign_ins, make_client)

    def sign_in_version(self, name: str, settings: ServerSettings) -> str:
        """Returns a text that differs once a person has signed in or out."""
        return self._sign_ins.version(name) if settings.url and self._data_dir else ""

    @cached_property
    def _sign_ins(self) -> SignIns:
        from server.upstream.sign_in.sign_ins import SignIns

        assert self._data_dir is not None  # noqa: S101  # the callers check that
        return SignIns(self._data_dir)

    async def aclose(self) -> None:
        """Stops all remaining programs."""
        if self._launcher is not None:
            await self._launcher.aclose()
        for processes in self._confined.values():
            await processes.aclose()

    async def _program(self, name: str, settings: ServerSettings) -> Link:
        from server.upstream.connections.server_log import ServerLog, log_path
        from server.upstream.connections.stdio_link import StdioLink
        from tools.sandbox.processes.launching.launcher import Launcher
        from tools.sandbox.processes.models import Prepared

        own = {**_plain_values(settings.env), VARIABLE: str(depth_of(self._environ) + 1)}
        cwd = settings.cwd or Path.cwd()
        variables = {**inherited_variables(self._environ), **own}
        path = _find_program(settings.command, cwd, variables.get("PATH", os.defpath))
        argv = (path, *settings.args)
        path_of_log = self._data_dir and log_path(self._data_dir, name)
        log = ServerLog(path_of_log, self._references.redaction)
        if settings.sandbox:
            return await self._confined_link(name, settings, argv, own, log)
        program = Prepared(argv=argv, cwd=str(cwd), environment=variables)
        if self._launcher is None:
            self._launcher = Launcher(privileged=True)
        launcher = self._launcher
        return StdioLink(lambda stdin: launcher.start(program, stdin=stdin), log, None)

    async def _confined_link(
        self,
        name: str,
        settings: ServerSettings,
        argv: tuple[str, ...],
        variables: Mapping[str, str],
        log: ServerLog,
    ) -> Link:
        from server.upstream.connections.stdio_link import StdioLink
        from tools.sandbox.processes.launching.launcher import Launcher
        from tools.sandbox.processes.models import Command

        if self._confine is None:
            raise UnavailableError("nothing confines servers here, and its sandbox is true")
        reach = (settings.readable, settings.writable, settings.hosts, settings.max_connections)
        key = (name, argv[0], *reach)  # an edit changes it, and other connections may still be used
        async with self._confining:
            confined = self._confined.get(key)
            if confined is None:
                self._confined_launcher = self._confined_launcher or Launcher()
                confined = self._confined[key] = await anyio.to_thread.run_sync(
                    self._confine, name, settings, argv[0], self._confined_launcher
                )
        command = Command(
            argv=argv,
            cwd="." if settings.cwd is None else str(settings.cwd),
            environment=variables,
            session=(name, uuid4().hex),  # no other process shares its network
        )
        return StdioLink(
            lambda stdin: confined.start(replace(command, channel=stdin)), log, confined
        )

    async def _endpoint(self, settings: ServerSettings) -> Endpoint:
        headers = _plain_values(settings.headers)
        if token := settings.token.get_secret_value():
            headers["authorization"] = f"Bearer {token}"
        for name, value in headers.items():
            if not _HEADER.fullmatch(value):  # the HTTP client would quote it in its error
                raise UnavailableError(
                    f"its header {name!r} contains characters that are not allowed in headers"
                )
        url = settings.url
        if not url.lower().startswith(("http://", "https://")):
            raise UnavailableError("its url refers to something that is not an http address")
        proxy = ""
        if not _is_local(url):
            proxy = await anyio.to_thread.run_sync(self._proxy, abandon_on_cancel=True)
        if "_tls" not in vars(self):
            await anyio.to_thread.run_sync(lambda: self._tls)  # reads all certificates
        return Endpoint(url, headers, self._tls, proxy)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        import httpx2

        return httpx2.create_ssl_context()


def _plain_values(values: Mapping[str, SecretStr]) -> dict[str, str]:
    return {name: each.get_secret_value() for name, each in values.items()}


def _find_program(command: str, cwd: Path, search_path: str) -> str:
    if os.sep in command:
        return str(cwd / Path(command).expanduser())
    path = shutil.which(command, path=search_path)
    if path is None:
        raise UnavailableError(
            f"the command {command!r} was not found: install it, or give its path"
        )
    return path


def _is_local(url: str) -> bool:
    """Returns whether an address is on this machine, which a proxy cannot reach."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to connect to a server."""

    mode: Mode
    sse: bool = False  # the older HTTP transport, which belongs to the older era


_OLDER_TRANSPORT = _Way("legacy", sse=True)


class Opener:
    """Opens connections to one server, starting with the way that last worked."""

    def __init__(
        self,
        server: str,
        settings: ServerSettings,
        transports: Transports,
        make_callbacks: MakeCallbacks,
    ) -> None:
        self.server = server
        self.settings = settings
        self._transports = transports
        self._make_callbacks = make_callbacks
        self._worked: dict[bool, _Way] = {}
        """The way that worked, with and without a handshake."""

    async def account(self) -> Account:
        """Returns the account at the server."""
        return await self._transports.account(self.server, self.settings)

    def sign_in_version(self) -> str:
        """Returns a text that differs once a person has signed in or out."""
        return self._transports.sign_in_version(self.server, self.settings)

    async def open(self, session_id: str, group: TaskGroup) -> Connection:
        """Opens a connection, which runs in a task of the group."""
        seconds = self.settings.start_timeout
        tried: list[Link] = []
        try:
            with anyio.fail_after(seconds):
                return await self._open(session_id, group, tried)
        except TimeoutError:
            said = last_words_text(tried[-1]) if tried else ""
            raise UnavailableError(
                f"did not answer within {seconds:g} s, its start_timeout{said}"
            ) from None

    async def _open(self, session_id: str, group: TaskGroup, tried: list[Link]) -> Connection:
        callbacks = self._make_callbacks(self.server, session_id)
        problem, failed = "", None
        for way in self._ways(callbacks):
            if problem and not _helps(way, failed):
                continue
            failed = None
            try:
                failed = await self._transports.link(self.server, self.settings, sse=way.sse)
                tried.append(failed)
                connection = Connection(self.server, session_id, failed, callbacks, way.mode)
                await connection.open(group)
            except Exception as error:  # any failure to connect
                if failed is not None and failed.sign_in_problem:
                    raise SignInRequiredError(failed.sign_in_problem) from error
                problem = problem or await problem_of(error, failed)
            else:
                self._worked[callbacks.handshake] = way
                return connection
        raise UnavailableError(problem)

    def _ways(self, callbacks: Callbacks) -> Iterator[_Way]:
        """Yields all ways; those after the first are for servers that did not understand it."""
        if self.settings.transport == "sse":
            yield _OLDER_TRANSPORT
            return
        ways = [_Way("legacy"), _Way("auto")] if callbacks.handshake else [_Way("auto")]
        if self.settings.command and not callbacks.handshake:
            ways.append(_Way("legacy"))  # some exit on an unknown first message
        if self.settings.url and self.settings.transport == "auto":
            ways.append(_OLDER_TRANSPORT)
        worked = self._worked.get(callbacks.handshake, ways[0])
        yield worked
        yield from (each for each in ways if each != worked)


def _helps(way: _Way, failed: Link | None) -> bool:
    """Returns whether another way may succeed where the last one failed."""
    if failed is None:  # the settings are invalid
        return False
    if way.sse:
        return isinstance(failed, HttpLink) and failed.is_not_streamable
    return failed.ended.is_set() or way.mode == "auto"
