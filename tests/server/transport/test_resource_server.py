"""Tests of access tokens, with a real authorization server on loopback."""

import base64
import hashlib
import hmac
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, SecretStr
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from server.settings.http import HttpSettings, TokenSettings
from server.transport import resource_server
from server.transport.middleware import BearerTokens, Caller, Drain, callers_of
from server.transport.resource_server import LEEWAY_SECONDS, ResourceServer
from server.upstream.connections.connect import Transports
from tests.server.serving import environ, serving

pytestmark = pytest.mark.slow

AUTHORIZATION_SERVER = Path(__file__).parents[1] / "upstream/sign_in/authorization_server.py"
RESOURCE = "https://crib.example/mcp"
METADATA = "https://crib.example/.well-known/oauth-protected-resource/mcp"
ANN = {"ann": TokenSettings(subject="ann@toy", user_id="Ann")}
BOB = {"bob": TokenSettings(token=SecretStr("bobs"), user_id="Bob")}


class Issuer:
    """The authorization server, in a process of its own."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/"

    def change(self, **now: object) -> list[str]:
        """Changes what it does; returns what it did."""
        seen: list[str] = httpx2.post(f"{self.url}now", json=now).json()
        return seen

    def sign(self, **claims: object) -> str:
        claims = {"aud": RESOURCE, **claims}
        return httpx2.post(f"{self.url}sign", json=claims).raise_for_status().text

    def public_key(self) -> dict[str, Any]:
        self.sign()
        keys: list[dict[str, Any]] = httpx2.get(f"{self.url}keys").json()["keys"]
        return keys[0]


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with subprocess.Popen(
        [sys.executable, str(AUTHORIZATION_SERVER)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield Issuer(int(process.stdout.readline()))
        process.kill()


async def behind(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers whose request it is, and whether it has an end."""
    caller = scope["user"]
    assert isinstance(caller, Caller)
    assert caller.speaks_for is not None
    ends = anyio.current_effective_deadline() < math.inf
    await PlainTextResponse(f"{caller.speaks_for.user_id} {ends}")(scope, receive, send)


def endpoint(issuer_url: str, app: ASGIApp = behind, **settings: Any) -> ASGIApp:
    http = HttpSettings(issuer=issuer_url, **{"tokens": ANN | BOB, **settings})
    security = TransportSecuritySettings(allowed_hosts=["crib.example"])
    otherwise = ResourceServer(app, http, RESOURCE, security, Transports({}).client)
    return Drain(BearerTokens(app, callers_of(http), otherwise))


async def ask(app: ASGIApp, *tokens: str, **request: Any) -> httpx2.Response:
    """Sends a request with some tokens, by default a POST to the endpoint."""
    headers = [("authorization", f"Bearer {each}") for each in tokens]
    headers += request.pop("headers", [])
    request = {"method": "POST", "url": "/mcp", **request}
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="https://crib.example") as client:
        return await client.request(headers=headers, **request)


@pytest.mark.parametrize("audience", [RESOURCE, f"{RESOURCE}/", ["account", RESOURCE]])
async def test_a_token_for_this_server_stands_for_its_account(
    issuer: Issuer, audience: object
) -> None:
    response = await ask(endpoint(issuer.url), issuer.sign(aud=audience))
    assert (response.status_code, response.text) == (200, "Ann False")


async def test_tokens_in_the_settings_are_let_in_too(issuer: Issuer) -> None:
    assert (await ask(endpoint(issuer.url), "bobs")).text == "Bob False"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": "https://crib.example/other"}, "Audience doesn't match"),
        ({"aud": "https://crib.example/mcp/deeper"}, "Audience doesn't match"),
        ({"aud": "https://crib.example"}, "Audience doesn't match"),
        ({"aud": [RESOURCE, 1]}, "Invalid claim format"),
        ({"aud": None}, 'missing the "aud" claim'),
        ({"iss": "https://other.example/"}, "Invalid issuer"),
        ({"exp": int(time.time()) - LEEWAY_SECONDS - 1}, "expired"),
        ({"exp": None}, 'missing the "exp" claim'),
        ({"exp": "later"}, "must be an integer"),
        ({"nbf": int(time.time()) + 9_000}, "not yet valid"),
    ],
)
async def test_a_token_for_another_server_or_time_is_refused(
    issuer: Issuer, claims: dict[str, object], reason: str
) -> None:
    token = issuer.sign(**claims)
    response = await ask(endpoint(issuer.url), token)
    assert response.status_code == 401
    assert reason in response.text
    assert token not in response.text + str(response.headers)
    challenge = response.headers["www-authenticate"]
    assert challenge == (
        f'Bearer realm="toolcrib", error="invalid_token", resource_metadata="{METADATA}"'
    )


def part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def test_a_token_that_the_issuer_did_not_sign_is_refused(issuer: Issuer) -> None:
    app, public = endpoint(issuer.url), issuer.public_key()
    claims = {"iss": issuer.url, "aud": RESOURCE, "sub": "ann@toy", "exp": int(time.time()) + 900}
    named, own = {"kid": public["kid"]}, rsa.generate_private_key(65537, 2048)
    shared = f"{part({'alg': 'HS256', **named})}.{part(claims)}"
    mac = hmac.digest(json.dumps(public).encode(), shared.encode(), hashlib.sha256)
    jwk = RSAAlgorithm.to_jwk(own.public_key(), as_dict=True)
    forged = {
        "unsigned": f"{part({'alg': 'none', **named})}.{part(claims)}.",
        "signed with the public key": (
            f"{shared}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
        ),
        "signed with another key": jwt.encode(claims, own, "RS256", named),
        "with a key of its own": jwt.encode(claims, own, "RS256", {"kid": "own", "jwk": jwk}),
        "without a key": jwt.encode(claims, own, "RS256"),
        "changed": issuer.sign(sub="eve").replace(".", f".{part(claims)}.", 1).rpartition(".")[0],
        "encrypted": "a.b.c.d.e",
        "opaque": "0123456789abcdef",
        "empty": "",
        "not ASCII": "ÿÿ.ÿÿ.ÿÿ",
        "huge": issuer.sign(more="x" * 20_000),
        "deep": f"{base64.urlsafe_b64encode(b'[' * 9_000).decode().rstrip('=')}.e30.e30",
    }
    for name, token in forged.items():
        headers = [("authorization", f"Bearer {token}".encode("latin-1"))]
        response = await ask(app, headers=headers)
        assert response.status_code == 401, name
    assert (await ask(app, issuer.sign())).status_code == 200


async def test_a_token_is_taken_from_one_authorization_header_alone(issuer: Issuer) -> None:
    app, token = endpoint(issuer.url, scopes=("use", "write")), issuer.sign(scope="write use more")
    assert (await ask(app, token)).status_code == 200
    assert (await ask(app, token, token)).status_code == 401
    assert (await ask(app, token, "bobs")).status_code == 401
    response = await ask(app, url=f"/mcp?access_token={token}", data={"access_token": token})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == (
        f'Bearer realm="toolcrib", resource_metadata="{METADATA}", scope="use write"'
    )
    assert f"needs one of {issuer.url}" in response.text


@pytest.mark.parametrize("claims", [{"scope": "use"}, {"scp": ["use"]}, {}, {"scope": 1}])
async def test_missing_scopes_are_named(issuer: Issuer, claims: dict[str, object]) -> None:
    response = await ask(endpoint(issuer.url, scopes=("use", "write")), issuer.sign(**claims))
    assert response.status_code == 403
    assert "write" in response.text
    challenge = response.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="use write"' in challenge


@pytest.mark.parametrize("subject", ["eve@toy", "", "ANN@toy", None, ["ann@toy"]])
async def test_an_account_that_the_settings_do_not_name_is_refused(
    issuer: Issuer, subject: object
) -> None:
    response = await ask(endpoint(issuer.url, claim="mail"), issuer.sign(mail=subject))
    assert response.status_code == 403
    assert f"mail is {subject!r}" in response.text
    assert "www-authenticate" not in response.headers


async def test_new_keys_of_the_issuer_are_found_and_others_do_not_flood_it(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = endpoint(issuer.url)
    assert (await ask(app, issuer.sign())).status_code == 200
    before = issuer.change(key="second").count("keys")
    for _ in range(5):
        assert (await ask(app, issuer.sign())).status_code == 401
    assert issuer.change().count("keys") == before
    monkeypatch.setattr(resource_server, "RETRY_SECONDS", 0)
    assert (await ask(app, issuer.sign())).status_code == 200
    assert (await ask(app, issuer.sign())).status_code == 200
    assert issuer.change(key="first").count("keys") == before + 1


async def test_without_the_issuer_no_token_of_it_is_let_in(issuer: Issuer) -> None:
    token = issuer.sign()
    for url in ("http://127.0.0.1:9/", f"{issuer.url}elsewhere"):
        app = endpoint(url)
        for _ in range(2):
            response = await ask(app, token)
            assert response.status_code == 503
            assert response.headers["retry-after"] == "10"
            assert f"Tokens of {url} cannot be checked now: " in response.text
        assert (await ask(app, "bobs")).status_code == 200


async def test_everybody_may_read_where_to_get_a_token(issuer: Issuer) -> None:
    app = endpoint(issuer.url, scopes=("use",))
    for url in (METADATA, METADATA.removesuffix("/mcp")):
        metadata = (await ask(app, method="GET", url=url)).json()
        assert metadata["resource"] == RESOURCE
        assert metadata["authorization_servers"] == [issuer.url]
        assert metadata["scopes_supported"] == ["use"]
        rebound = [("host", "evil.example")]
        assert (await ask(app, method="GET", url=url, headers=rebound)).status_code == 421
        assert (await ask(app, url=url)).status_code == 405


async def test_streams_end_with_their_token_and_calls_do_not(issuer: Issuer) -> None:
    app, token = endpoint(issuer.url), issuer.sign()
    for valid in (token, issuer.sign(exp=10**400)):
        assert (await ask(app, valid, method="GET")).text == "Ann True"
    listen = [("mcp-method", "subscriptions/listen")]
    assert (await ask(app, token, headers=listen)).text == "Ann True"
    assert (await ask(app, token, headers=[("mcp-method", "tools/call")])).text == "Ann False"

    async def endless(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await anyio.sleep_forever()

    almost_over = issuer.sign(exp=int(time.time()) - LEEWAY_SECONDS + 2)
    with anyio.fail_after(20):
        response = await ask(endpoint(issuer.url, endless), almost_over, method="GET")
    assert response.status_code == 200
    assert (await ask(app, almost_over, method="GET")).status_code == 401


class Storage:
    """What a client keeps of its sign-in."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def signing_in(url: str, storage: Storage) -> OAuthClientProvider:
    """The SDK's sign-in, with a browser in which everybody consents at once."""
    redirects: list[str] = []

    async def visit(page: str) -> None:
        async with httpx2.AsyncClient() as browser:
            redirects.append((await browser.get(page)).headers["location"])

    async def answer() -> AuthorizationCodeResult:
        given = parse_qs(urlsplit(redirects[-1]).query)
        return AuthorizationCodeResult(code=given["code"][0], state=given["state"][0])

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1/callback")])
    return OAuthClientProvider(url, metadata, storage, visit, answer)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_client_signs_in_by_itself(issuer: Issuer, tmp_path: Path, era: str) -> None:
    tokens = {"ann": {"subject": "ann@toy", "user_id": "ann"}}
    variables = {"HTTP__ISSUER": issuer.url, "HTTP__SCOPES": "use"}
    env = environ(tmp_path, HTTP__TOKENS=json.dumps(tokens), **variables)
    storage = Storage()
    with serving("http", env) as url:
        auth = signing_in(url, storage)
        with anyio.fail_after(60):
            async with httpx2.AsyncClient(auth=auth) as web:
                streams = streamable_http_client(url, http_client=web)
                async with Client(streams, mode=era) as client:
                    stored = await client.call_tool(
                        "add_document", {"text": "A pump.", "title": "p"}
                    )
                    assert not stored.is_error, stored
                    other = await client.call_tool("query", {"query": "pump", "user_id": "bob"})
    assert "permission_denied" in str(other)
    assert storage.tokens is not None
    access = storage.tokens.access_token.encode()
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert any("ann" in path.read_text() for path in files if path.suffix == ".jsonl")
    assert not [path for path in files if access in path.read_bytes()]
