"""The SDK's OAuth provider, with the tokens and the registration of a sign-in."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from server.upstream.sign_in.redirect import Redirect
from server.upstream.sign_in.sign_ins import SignIn

LOCAL = {"127.0.0.1", "localhost", "::1"}

# The SDK logs answers that contain tokens.
logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL + 1)


class _Memory:
    """A storage for the SDK: the sign-in is stored once it is complete."""

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        pass

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass


class Provider(OAuthClientProvider):
    """The SDK's provider, of which only the requests and answers are used."""

    def __init__(
        self,
        url: str,
        client: OAuthClientInformationFull | None,
        redirect: Redirect | None = None,
        document: str = "",
    ) -> None:
        super().__init__(
            url,
            OAuthClientMetadata(
                client_name="Toolcrib",
                redirect_uris=[AnyUrl(redirect.uri if redirect else "http://127.0.0.1/callback")],
                token_endpoint_auth_method="none",  # noqa: S106  # a method
            ),
            _Memory(),
            redirect_handler=redirect.visit if redirect else None,
            callback_handler=redirect.answer if redirect else None,
            client_metadata_url=document or None,
        )
        self.context.client_info = client
        self._initialized = True

    @classmethod
    def of(cls, sign_in: SignIn) -> Provider:
        """Returns a provider that can refresh and revoke the tokens of a sign-in."""
        provider = cls(sign_in.url, sign_in.client)
        provider.context.current_tokens = sign_in.tokens
        provider.context.oauth_metadata = sign_in.metadata
        provider.context.protected_resource_metadata = sign_in.resource
        return provider

    @property
    def sign_in(self) -> SignIn:
        """What a flow has led to."""
        context = self.context
        if context.current_tokens is None or context.client_info is None:
            raise OAuthFlowError("it gave no tokens")
        return SignIn(
            url=context.server_url,
            tokens=context.current_tokens,
            client=context.client_info,
            metadata=context.oauth_metadata,
            resource=context.protected_resource_metadata,
        ).with_tokens(context.current_tokens)

    async def refresh_request(self) -> httpx2.Request:
        """Builds the request for new tokens."""
        return await self._refresh_token()

    def revocation_request(self, url: str, token: str) -> httpx2.Request:
        """Builds the request that revokes a token (RFC 7009)."""
        client = self.context.client_info
        # The SDK's own servers require a secret of each client, if only an empty one.
        data = {
            "token": token,
            "client_id": client.client_id if client else "",
            "client_secret": "",
        }
        data, headers = self.context.prepare_token_auth(data, {})
        return httpx2.Request("POST", url, data=data, headers=headers)


def check_address(url: str, server_url: str) -> None:
    """Raises OAuthFlowError unless it is https, or on this machine like the server itself."""
    is_local = {urlsplit(url).hostname, urlsplit(server_url).hostname} <= LOCAL
    if urlsplit(url).scheme != "https" and not (urlsplit(url).scheme == "http" and is_local):
        raise OAuthFlowError(f"its authorization server has an address without https: {url[:200]}")
