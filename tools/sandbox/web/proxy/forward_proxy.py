"""The proxy of the settings, which asks instead of us."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from tools.sandbox.web.guard import AddressGuard
from tools.sandbox.web.url import Url


@dataclass(frozen=True, slots=True)
class ForwardProxy:
    """A proxy.

    Attributes:
        url: Where it is.
        auth: User and password for it; None where it wants none.
    """

    url: Url
    auth: tuple[bytes, bytes] | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> ForwardProxy | None:
        """Reads `http://user:password@host:port`; None of an empty text."""
        if not text:
            return None
        credentials, at, _ = urlsplit(text).netloc.rpartition("@")
        url = Url.parse(text.replace(credentials + at, "", 1))
        user, _, password = credentials.partition(":")
        auth = (unquote(user).encode(), unquote(password).encode()) if at else None
        return cls(url, auth)

    @property
    def headers(self) -> list[tuple[str, str]]:
        """What it wants to be told with a request (RFC 7617)."""
        if self.auth is None:
            return []
        token = b64encode(b":".join(self.auth)).decode("ascii")
        return [("Proxy-Authorization", f"Basic {token}")]

    @property
    def guard(self) -> AddressGuard:
        """What connects to it alone may be private."""
        return AddressGuard((self.url.host_port,))

    def options(self) -> dict[str, Any]:
        """What a pool of httpcore2 is to know of it."""
        import httpcore2

        options: dict[str, Any] = {
            "proxy_url": f"{self.url.scheme}://{self.url.authority}",
            "proxy_auth": self.auth,
        }
        if self.url.scheme == "https":
            options["proxy_ssl_context"] = httpcore2.default_ssl_context()
        return options
