"""Signs in to another server, sends the tokens with requests, refreshes and revokes them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from http import HTTPStatus

import anyio
import anyio.to_thread
import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth, union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, ValidationError

from server.settings.gateway import OAuthSettings
from server.upstream.connections.http_link import TokenAuth, needs_more
from server.upstream.sign_in.provider import Provider, check_address
from server.upstream.sign_in.redirect import Redirect
from server.upstream.sign_in.sign_ins import SignIn, SignIns

REQUEST_SECONDS = 30.0
"""Time for an authorization server to answer."""

_POLL_SECONDS = 0.05
_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


class Account(TokenAuth):
    """The account at one server, whose tokens go to that server alone.

    Args:
        oauth: How to sign in, with the secret itself.
        make_client: Builds a client without the server's headers.
    """

    def __init__(  # the composition hands over every part
        self,
        server: str,
        url: str,
        oauth: OAuthSettings,
        sign_ins: SignIns,
        make_client: Callable[[], httpx2.AsyncClient],
    ) -> None:
        self._server = server
        self._url = httpx2.URL(url)
        self._oauth = oauth
        self._sign_ins = sign_ins
        self._make_client = make_client
        self._known: tuple[str, SignIn | None] = ("", None)  # with its version
        self._refused = ""  # a refresh token that is not accepted any more

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Adds the token; refreshes it once if it was rejected."""
        if _origin(request.url) != _origin(self._url):
            yield request
            return
        sign_in = await self._current()
        if sign_in is not None:
            _put_into(request, sign_in)
        response = yield request
        if sign_in is None:
            return
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            sign_in = await self._current(rejected=sign_in.tokens.access_token)
            if sign_in is not None:
                _put_into(request, sign_in)
                yield request
        elif needs_more(response):
            await self._note_missing(extract_field_from_www_auth(response, "scope") or "")

    async def sign_in(self, show: Callable[[str], Awaitable[object]]) -> None:
        """Signs in, with the scopes of an earlier sign-in too, and stores the tokens.

        Args:
            show: Shows the address of the page to a person.

        Raises:
            OAuthFlowError: If it fails, or the person declines.
            TimeoutError: If the authorization server or the person takes too long.
        """
        url, oauth = str(self._url), self._oauth
        before = await self._read()
        redirect = Redirect(show)
        async with self._make_client() as client, redirect.listening(oauth.redirect_port):
            registered = _registered(oauth, redirect.uri)
            provider = Provider(url, registered, redirect, oauth.client_metadata_url)
            request = client.build_request("POST", url, json=_PING, headers=_HEADERS)
            refused = await _send(client, request)
            flow = provider.async_auth_flow(request)
            await flow.__anext__()
            step = await flow.asend(_challenge(refused, oauth.scopes, before))
            while step is not request:
                check_address(str(step.url), url)
                step = await flow.asend(await _send(client, step))
            await flow.aclose()
        await self._write(provider.sign_in)

    async def revoke(self) -> bool:
        """Revokes the tokens and removes them; returns whether the server confirmed it."""
        sign_in = await self._read()
        await anyio.to_thread.run_sync(self._sign_ins.remove, self._server)
        url = sign_in and sign_in.metadata and sign_in.metadata.revocation_endpoint
        if sign_in is None or not url:
            return False
        provider = Provider.of(sign_in)
        tokens = filter(None, (sign_in.tokens.refresh_token, sign_in.tokens.access_token))
        try:
            async with self._make_client() as client:
                sent = [
                    await _send(client, provider.revocation_request(str(url), token))
                    for token in tokens
                ]
        except httpx2.HTTPError:
            return False
        return all(each.is_success for each in sent)

    async def _current(self, rejected: str = "") -> SignIn | None:
        """Returns the sign-in with a token that has neither expired nor been rejected.

        Raises:
            httpx2.TransportError: If it could not be refreshed now, but perhaps later.
        """
        while (found := await self._read()) is not None:
            token = found.tokens
            if found.is_fresh and token.access_token != rejected:
                return found
            if token.refresh_token in {None, self._refused}:
                return None
            with self._sign_ins.turn(self._server) as is_ours:
                # A cancelled call must not lose tokens that the server has replaced.
                with anyio.CancelScope(shield=is_ours):
                    if is_ours and await self._read() == found:
                        return await self._refresh(found)
            await anyio.sleep(0 if is_ours else _POLL_SECONDS)
        return None

    async def _refresh(self, sign_in: SignIn) -> SignIn | None:
        try:
            async with self._make_client() as client:
                response = await _send(client, await Provider.of(sign_in).refresh_request())
            if response.is_server_error or response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
                raise httpx2.ReadError(f"it answered {response.status_code}")
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            self.problem = f"is signed in, but its authorization server does not answer: {reason}"
            raise
        self.problem = ""
        try:
            tokens = OAuthToken.model_validate_json(response.content)
        except ValidationError:
            tokens = None
        if tokens is None or not response.is_success:
            self._refused = sign_in.tokens.refresh_token or ""
            return None
        renewed = sign_in.with_tokens(tokens)
        await self._write(renewed)
        return renewed

    async def _note_missing(self, scope: str) -> None:
        """Stores the scopes that the next sign-in asks for."""
        with self._sign_ins.turn(self._server) as is_ours:
            if not is_ours or (sign_in := await self._read()) is None:
                return
            missing = union_scopes(sign_in.missing, scope) or ""
            if missing != sign_in.missing:
                await self._write(sign_in.model_copy(update={"missing": missing}))

    async def _read(self) -> SignIn | None:
        version = self._sign_ins.version(self._server)
        if version != self._known[0]:
            get = partial(self._sign_ins.get, self._server, str(self._url))
            self._known = (version, await anyio.to_thread.run_sync(get))
        return self._known[1]

    async def _write(self, sign_in: SignIn) -> None:
        await anyio.to_thread.run_sync(self._sign_ins.put, self._server, sign_in)


async def _send(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    # A request that no client built has no timeouts.
    request.extensions["timeout"] = httpx2.Timeout(REQUEST_SECONDS).as_dict()
    try:
        with anyio.fail_after(REQUEST_SECONDS):
            return await client.send(request)
    except TimeoutError:
        raise httpx2.ReadTimeout("it took too long") from None


def _registered(oauth: OAuthSettings, redirect_uri: str) -> OAuthClientInformationFull | None:
    """Returns the client in the settings; None if there is none."""
    if not oauth.client_id:
        return None
    secret = oauth.client_secret.get_secret_value()
    return OAuthClientInformationFull(
        client_id=oauth.client_id,
        client_secret=secret or None,
        redirect_uris=[AnyUrl(redirect_uri)],
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
    )


def _challenge(
    refused: httpx2.Response, scopes: tuple[str, ...], before: SignIn | None
) -> httpx2.Response:
    """Returns the server's challenge, with the scopes in settings and of an earlier sign-in."""
    asked = union_scopes(extract_field_from_www_auth(refused, "scope"), " ".join(scopes))
    if before is not None:
        asked = union_scopes(union_scopes(asked, before.tokens.scope), before.missing)
    fields = {
        "scope": asked,
        "resource_metadata": extract_field_from_www_auth(refused, "resource_metadata"),
    }
    header = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)
    headers = {"WWW-Authenticate": f"Bearer {header}"}
    return httpx2.Response(HTTPStatus.UNAUTHORIZED, headers=headers, request=refused.request)


def _put_into(request: httpx2.Request, sign_in: SignIn) -> None:
    request.headers["Authorization"] = f"Bearer {sign_in.tokens.access_token}"


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
