from __future__ import annotations

import httpx2
import pytest
from pydantic import SecretStr
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from server.auth import BearerToken

TOKEN = "open-sesame"  # noqa: S105  # guards nothing

pytestmark = pytest.mark.anyio


async def behind(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("in")(scope, receive, send)


async def get(authorization: bytes | None) -> httpx2.Response:
    headers = {} if authorization is None else {b"authorization": authorization}
    transport = httpx2.ASGITransport(BearerToken(behind, SecretStr(TOKEN)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://toy") as client:
        return await client.get("/", headers=headers)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_token_is_let_in(scheme: str) -> None:
    response = await get(f"{scheme} {TOKEN}".encode())
    assert (response.status_code, response.text) == (200, "in")


async def test_without_credentials_the_challenge_names_the_scheme() -> None:
    response = await get(None)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer realm="toolcrib"'


@pytest.mark.parametrize(
    "authorization",
    [b"Bearer", b"Bearer ", b"Bearer open", b"Basic open-sesame", b"open-sesame", b"Bearer \xff"],
)
async def test_wrong_credentials_are_refused_as_such(authorization: bytes) -> None:
    response = await get(authorization)
    assert response.status_code == 401
    assert 'error="invalid_token"' in response.headers["www-authenticate"]
    assert TOKEN not in response.text


async def test_the_lifespan_passes() -> None:
    seen = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    async def receive() -> Message:
        raise NotImplementedError

    async def send(_message: Message) -> None:
        raise NotImplementedError

    await BearerToken(app, SecretStr(TOKEN))({"type": "lifespan"}, receive, send)
    assert seen == ["lifespan"]
