"""The HTTP endpoint as an OAuth 2.1 resource server: an issuer's access tokens open it."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls
from mcp.server.auth.handlers.metadata import ProtectedResourceMetadataHandler
from mcp.server.auth.routes import build_resource_metadata_url, cors_middleware
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.auth import ProtectedResourceMetadata
from mcp.shared.inbound import MCP_METHOD_HEADER
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from server.settings.http import HttpSettings
from server.transport.middleware import CLOSE, Caller, accounts_of, bearer_token, challenge
from server.upstream.sign_in.provider import check_address
from tools.core.errors import UnavailableError

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Signatures that only the issuer can make: never none, never one with a shared secret."""

LEEWAY_SECONDS = 30
"""Maximum difference between the clocks of the issuer and this server."""

REQUEST_SECONDS = 10.0
KEYS_SECONDS = 600.0
"""Age up to which the issuer's keys are used."""

RETRY_SECONDS = 10.0
"""Minimum time between two requests for the keys, also if tokens name unknown ones."""

MOST_CHARACTERS = 16_384
"""Length of the longest token that is parsed."""

WELL_KNOWN = "/.well-known/oauth-protected-resource"
LISTEN = "subscriptions/listen"
"""The request whose response is a stream of notifications; the SDK compares it with the header."""

MakeClient = Callable[[str], Awaitable[httpx2.AsyncClient]]
"""Builds an HTTP client for requests to a URL."""

_logger = logging.getLogger("toolcrib.http")


class Issuer:
    """Checks access tokens with the keys of the authorization server that issues them."""

    def __init__(self, url: str, make_client: MakeClient) -> None:
        self._url = url
        self._make_client = make_client
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._lock = anyio.Lock()
        self._fetched = self._tried = -math.inf
        self._problem = ""

    async def claims_of(self, token: str, resource: str) -> dict[str, Any]:
        """Returns the claims of a valid token for a resource.

        Raises:
            jwt.PyJWTError: If it is not valid, or for another resource.
            UnavailableError: If it cannot be checked now.
        """
        bare = resource.removesuffix("/")
        return jwt.decode(
            token,
            await self._key(jwt.get_unverified_header(token).get("kid")),
            ALGORITHMS,
            audience=(bare, f"{bare}/"),
            issuer=self._url,
            leeway=LEEWAY_SECONDS,
            options={"require": ["iss", "aud", "exp"], "enforce_minimum_key_length": True},
        )

    async def _key(self, key_id: str | None) -> jwt.PyJWK:
        """Returns a key; fetches all again if they are old, or this one is not among them."""
        if not self._has(key_id):
            async with self._lock:
                if not self._has(key_id) and time.monotonic() - self._tried > RETRY_SECONDS:
                    self._tried = time.monotonic()
                    await self._fetch()
        if time.monotonic() - self._fetched > KEYS_SECONDS:
            raise UnavailableError(self._problem)
        if key_id not in self._keys:
            raise jwt.InvalidTokenError("it is not signed with a key of the issuer")
        return self._keys[key_id]

    def _has(self, key_id: str | None) -> bool:
        return key_id in self._keys and time.monotonic() - self._fetched <= KEYS_SECONDS

    async def _fetch(self) -> None:
        try:
            with anyio.fail_after(REQUEST_SECONDS):
                async with await self._make_client(self._url) as client:
                    url = await self._discover(client)
                    check_address(url, self._url)
                    answer = (await client.get(url)).raise_for_status()
            keys = jwt.PyJWKSet.from_dict(answer.json())
        except Exception as error:  # noqa: BLE001  # whatever it answers, its keys are unknown
            reason = str(error) or type(error).__name__
            self._problem = f"Tokens of {self._url} cannot be checked now: {reason}."
            _logger.warning("%s", self._problem)
        else:
            self._keys = {key.key_id: key for key in keys if key.public_key_use in {"sig", None}}
            self._fetched = time.monotonic()

    async def _discover(self, client: httpx2.AsyncClient) -> str:
        """Returns the address of the keys."""
        named = None
        for url in build_oauth_authorization_server_metadata_discovery_urls(self._url, self._url):
            answer = await client.get(url)
            with suppress(ValueError, AttributeError):
                metadata = answer.json()
                named = metadata.get("issuer")
                if answer.is_success and named == self._url and "jwks_uri" in metadata:
                    return str(metadata["jwks_uri"])
        raise ValueError(f"{url} ({answer.status_code}) names no keys, or the issuer {named!r}")


class ResourceServer:
    """ASGI middleware that passes on requests with an access token for this resource.

    Tells other clients where to get one (RFC 9728).
    """

    def __init__(  # the transport hands over what it knows of its address
        self,
        app: ASGIApp,
        http: HttpSettings,
        resource: str,
        security: TransportSecuritySettings,
        make_client: MakeClient,
    ) -> None:
        self._app = app
        self._http = http
        self._resource = resource
        self._issuer = Issuer(http.issuer, make_client)
        self._accounts = accounts_of(http)
        metadata = ProtectedResourceMetadata.model_validate(
            {
                "resource": resource,
                "authorization_servers": [http.issuer],
                "scopes_supported": http.scopes or None,
            }
        )
        url = str(build_resource_metadata_url(metadata.resource))
        asked = {"scope": " ".join(http.scopes)} if http.scopes else {}
        self._challenge = {"resource_metadata": url, **asked}
        check = TransportSecurityMiddleware(security)
        handler = ProtectedResourceMetadataHandler(metadata)

        async def answer(request: Request) -> Response:
            return await check.validate_request(request) or await handler.handle(request)

        public = cors_middleware(answer, ["GET"])
        paths = (WELL_KNOWN, urlsplit(url).path)
        self._public = {path: Route(path, public, methods=["GET", "OPTIONS"]) for path in paths}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers an HTTP request."""
        if scope["path"] in self._public:
            await self._public[scope["path"]](scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            claims = await self._claims_of(bearer_token(headers))
            caller = self._admit(claims, headers)
        except jwt.PyJWTError as error:
            caller = challenge(headers, f"No valid access token: {error}.", self._challenge)
        except UnavailableError as error:
            caller = PlainTextResponse(f"{error.message}\n", 503, {"Retry-After": "10", **CLOSE})
        if isinstance(caller, Response):
            await caller(scope, receive, send)
            return
        # A call may outlast its token; a stream, which might never end, may not.
        is_stream = scope["method"] == "GET" or headers.get(MCP_METHOD_HEADER) == LISTEN
        seconds = min(int(claims["exp"]), 2**40) + LEEWAY_SECONDS - time.time()
        with anyio.move_on_after(seconds if is_stream else None):
            await self._app({**scope, "user": caller}, receive, send)

    async def _claims_of(self, token: str) -> dict[str, Any]:
        if 0 < len(token) <= MOST_CHARACTERS:
            return await self._issuer.claims_of(token, self._resource)
        raise jwt.InvalidTokenError(
            f"the Authorization header needs one of {self._http.issuer}, of at most "
            f"{MOST_CHARACTERS} characters"
        )

    def _admit(self, claims: Mapping[str, Any], headers: Headers) -> Caller | Response:
        """Returns the caller with a valid token, or why it is refused."""
        given = claims.get("scope") or claims.get("scp") or ""
        granted = given if isinstance(given, list) else str(given).split()
        if missing := [each for each in self._http.scopes if each not in granted]:
            text = f"The access token lacks the scope {' '.join(missing)}."
            return challenge(headers, text, {**self._challenge, "error": "insufficient_scope"})
        name, subject = self._http.claim, claims.get(self._http.claim)
        if isinstance(subject, str) and subject in self._accounts:
            return self._accounts[subject]
        text = f"No entry in [http.tokens] has this account as its subject: {name} is {subject!r}."
        _logger.warning("Refused an account at %s. %s", self._http.issuer, text)
        return PlainTextResponse(f"{text}\n", 403, CLOSE)
