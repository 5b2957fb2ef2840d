"""A server that requires sign-in, and its authorization server, made of the SDK's parts.

Prints its port, and answers each page of sign-in at once with consent. `POST /now` changes what
it does: the `lifetime` of tokens, `broken` refreshing, the scope that it `needs`, `forgets` tokens,
the `subject` of tokens, the `key` that signs them. `POST /sign` signs claims as a token.
"""

import json
import secrets
import socket
import sys
import time
from typing import Any

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from mcp.server.auth import routes
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

DOCUMENT = "https://example.com/toolcrib.json"
"""A client id metadata document, which it knows without looking."""


class Known(OAuthClientInformationFull):
    """A client that registered loopback, without a port (RFC 8252, section 7.3)."""

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        assert redirect_uri is not None
        assert redirect_uri.host == "127.0.0.1"
        return redirect_uri


class Provider:
    """Signs everybody in, and rotates refresh tokens, each of which works once."""

    def __init__(self) -> None:
        self.now: dict[str, Any] = {"lifetime": 3600, "broken": False, "needs": "use"}
        self.now |= {"subject": "ann@toy", "key": "first"}
        self.keys: dict[str, rsa.RSAPrivateKey] = {}
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.seen: list[str] = []

    def sign(self, claims: dict[str, Any]) -> str:
        """Returns a token for a user, as a JSON web token (RFC 9068)."""
        key_id = self.now["key"]
        if key_id not in self.keys:
            self.keys[key_id] = rsa.generate_private_key(65537, 2048)
        standard = {
            "iss": issuer,
            "sub": self.now["subject"],
            "exp": int(time.time()) + self.now["lifetime"],
            "jti": secrets.token_hex(8),
        }
        return jwt.encode(standard | claims, self.keys[key_id], "RS256", {"kid": key_id})

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client: OAuthClientInformationFull) -> None:
        assert client.client_id
        self.clients[client.client_id] = client
        self.seen.append("registered")

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = AuthorizationCode(
            code=secrets.token_hex(16),
            scopes=params.scopes or ["use"],
            expires_at=time.time() + 60,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        self.seen.append(f"{client.client_id} for {' '.join(code.scopes)}")
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, _client: object, code: str) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[code.code]
        return self._tokens(client, code.scopes, code.resource)

    async def load_refresh_token(self, _client: object, token: str) -> RefreshToken | None:
        return self.refresh.get(token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(token.token, None) is None:
            raise TokenError("invalid_grant")
        self.seen.append("refreshed")
        return self._tokens(client, scopes, token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        return found if found and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, _token: object) -> None:
        self.access.clear()
        self.refresh.clear()

    async def exchange_identity_assertion(self, *_given: object) -> OAuthToken:
        raise NotImplementedError

    def _tokens(
        self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None
    ) -> OAuthToken:
        access = self.sign({"aud": resource, "scope": " ".join(scopes)})
        refresh = secrets.token_hex(16)
        client_id, lifetime = client.client_id or "", self.now["lifetime"]
        self.access[access] = AccessToken(
            token=access,
            client_id=client_id,
            scopes=scopes,
            expires_at=int(time.time()) + lifetime,
            resource=resource,
        )
        self.refresh[refresh] = RefreshToken(
            token=refresh, client_id=client_id, scopes=scopes, resource=resource
        )
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=lifetime, scope=" ".join(scopes)
        )


listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
issuer = f"http://127.0.0.1:{port}/"
provider = Provider()
server = MCPServer(
    "toy",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(f"http://127.0.0.1:{port}/mcp"),
        validate_token_resource=True,
        required_scopes=["use"],
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["use", "write"], default_scopes=["use"]
        ),
        revocation_options=RevocationOptions(enabled=True),
    ),
)
for client_id, secret in (("known", "hush"), (DOCUMENT, None)):
    provider.clients[client_id] = Known(
        client_id=client_id,
        client_secret=secret,
        redirect_uris=[AnyUrl("http://127.0.0.1/callback")],
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
        scope="use write",
    )


class Metadata(OAuthMetadata):
    """The metadata of the SDK's server, which says that it reads documents, and has keys."""

    client_id_metadata_document_supported: bool | None = True
    jwks_uri: str = f"{issuer}keys"


def metadata(*given: Any, **named: Any) -> OAuthMetadata:
    return Metadata.model_validate(build_metadata(*given, **named).model_dump(exclude_none=True))


build_metadata, routes.build_metadata = routes.build_metadata, metadata


@server.tool()
def seen() -> str:
    """Returns what clients did."""
    return json.dumps(provider.seen)


@server.custom_route("/now", methods=["GET", "POST"])  # type: ignore[untyped-decorator]
async def change(request: Request) -> Response:
    """Changes what it does, and says what clients did."""
    if request.method == "POST":
        provider.now |= await request.json()
        if provider.now.pop("forgets", False):
            await provider.revoke_token(None)
    return JSONResponse(provider.seen)


@server.custom_route("/sign", methods=["POST"])  # type: ignore[untyped-decorator]
async def sign(request: Request) -> Response:
    """Signs claims, with what they leave out."""
    return Response(provider.sign(await request.json()))


@server.custom_route("/keys", methods=["GET"])  # type: ignore[untyped-decorator]
async def keys(_request: Request) -> Response:
    """Returns the keys that are in use."""
    provider.seen.append("keys")
    given = {key_id: key.public_key() for key_id, key in provider.keys.items()}
    found = [RSAAlgorithm.to_jwk(key, as_dict=True) | {"kid": name} for name, key in given.items()]
    return JSONResponse({"keys": found})


class Front:
    """Answers in the server's place where it would not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path == "/token" and provider.now["broken"]:
            await Response(status_code=503)(scope, receive, send)
        elif path == "/mcp" and provider.now["needs"] != "use":
            needs = provider.now["needs"]
            challenge = f'Bearer error="insufficient_scope", scope="{needs}"'
            answer = Response(status_code=403, headers={"WWW-Authenticate": challenge})
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)


sys.stdout.write(f"{port}\n")
sys.stdout.flush()
app = Front(server.streamable_http_app())
uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listener])
