"""Transports: builds links to servers as their settings require."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio.to_thread
from pydantic import SecretStr

from server.settings.gateway import ServerSettings
from server.upstream.connections.environment import expand, inherited_variables
from server.upstream.connections.flow import Tail
from server.upstream.connections.http_link import Endpoint, HttpLink
from server.upstream.connections.link import Link
from server.upstream.depth import VARIABLE, depth_of
from tools.core.errors import UnavailableError

if TYPE_CHECKING:
    from tools.sandbox.processes.launching.launcher import Launcher

_HEADER = re.compile(r"[\t\x20-\x7e]*")
"""The characters of a header value (RFC 9110, section 5.5)."""


class Transports:
    """Builds links; close it with `aclose`.

    Args:
        environ: The variables for expansion in settings.
        proxy: URL of the proxy for servers on other machines; empty for none.
    """

    def __init__(self, environ: Mapping[str, str], *, proxy: str = "") -> None:
        self._environ = environ
        self._proxy = proxy
        self._launcher: Launcher | None = None

    async def link(self, name: str, settings: ServerSettings, *, sse: bool = False) -> Link:
        """Builds a link to a server.

        Args:
            name: The name of the server in the settings.
            settings: The settings of the server.
            sse: Whether to use the older HTTP transport.
        """
        if settings.url:
            return HttpLink(await self._endpoint(settings), sse=sse)
        return self._program(name, settings)

    async def aclose(self) -> None:
        """Stops all remaining programs."""
        if self._launcher is not None:
            await self._launcher.aclose()

    def _program(self, name: str, settings: ServerSettings) -> Link:
        from server.upstream.connections.stdio_link import Program, StdioLink
        from tools.sandbox.processes.launching.launcher import Launcher

        if self._launcher is None:
            self._launcher = Launcher(privileged=True)
        program = Program(
            expand(settings.command, self._environ, "command"),
            [expand(each, self._environ, "args") for each in settings.args],
            {
                **inherited_variables(self._environ),
                **self._secrets(settings.env, "env"),
                VARIABLE: str(depth_of(self._environ) + 1),
            },
            settings.cwd or Path.cwd(),
        )
        return StdioLink(program, self._launcher, Tail(name))

    async def _endpoint(self, settings: ServerSettings) -> Endpoint:
        headers = self._secrets(settings.headers, "headers")
        token = expand(settings.token.get_secret_value(), self._environ, "token")
        if token:
            headers["authorization"] = f"Bearer {token}"
        for name, value in headers.items():
            if not _HEADER.fullmatch(value):  # the HTTP client would quote it in its error
                raise UnavailableError(
                    f"its header {name!r} contains characters that are not allowed in headers"
                )
        url = expand(settings.url, self._environ, "url")
        proxy = "" if _is_local(url) else self._proxy
        if "_tls" not in vars(self):
            await anyio.to_thread.run_sync(lambda: self._tls)  # reads all certificates
        return Endpoint(url, headers, self._tls, proxy)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        import httpx2

        return httpx2.create_ssl_context()

    def _secrets(self, values: Mapping[str, SecretStr], where: str) -> dict[str, str]:
        return {
            name: expand(value.get_secret_value(), self._environ, f"{where}.{name}")
            for name, value in values.items()
        }


def _is_local(url: str) -> bool:
    """Returns whether an address is on this machine, which a proxy cannot reach."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
