"""The proxy in the settings, through which requests are made."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from tools.sandbox.web.guard import AddressGuard
from tools.sandbox.web.url import Url


@dataclass(frozen=True, slots=True)
class ForwardProxy:
    """A proxy that forwards our requests.

    Attributes:
        auth: Its user and password; None if it needs none.
    """

    url: Url
    auth: tuple[bytes, bytes] | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> ForwardProxy | None:
        """Parses `http://user:password@host:port`; returns None for an empty text."""
        if not text:
            return None
        credentials, at, _ = urlsplit(text).netloc.rpartition("@")
        url = Url.parse(text.replace(credentials + at, "", 1))
        user, _, password = credentials.partition(":")
        auth = (unquote(user).encode(), unquote(password).encode()) if at else None
        return cls(url, auth)

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Returns the headers that a request to it needs (RFC 7617)."""
        if self.auth is None:
            return []
        token = b64encode(b":".join(self.auth)).decode("ascii")
        return [("Proxy-Authorization", f"Basic {token}")]

    @property
    def guard(self) -> AddressGuard:
        """Returns a guard that allows the proxy itself to be private."""
        return AddressGuard((self.url.host_port,))

    def options(self) -> dict[str, Any]:
        """Returns the proxy options of an httpcore2 pool."""
        import httpcore2

        options: dict[str, Any] = {
            "proxy_url": f"{self.url.scheme}://{self.url.authority}",
            "proxy_auth": self.auth,
        }
        if self.url.scheme == "https":
            options["proxy_ssl_context"] = httpcore2.default_ssl_context()
        return options
