import httpx2
import pytest
from pydantic import SecretStr
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from server.settings.http import HttpSettings, TokenSettings
from server.transport.middleware import BearerTokens, Caller, callers_of
from storage.models import Identity

TOKEN = "open-sesame"  # noqa: S105  # guards nothing
HTTP = HttpSettings(
    token=SecretStr(TOKEN),
    tokens={
        "ann": TokenSettings(token=SecretStr("anns"), user_id="Ann", device_id="phone"),
        "bob": TokenSettings(token=SecretStr("bobs"), user_id="Bob", agent_id="coder"),
    },
)


async def behind(scope: Scope, receive: Receive, send: Send) -> None:
    caller = scope["user"]
    assert isinstance(caller, Caller)
    identity = caller.speaks_for or Identity("own")
    text = f"{identity.user_id} {identity.device_id} {identity.agent_id}"
    await PlainTextResponse(text)(scope, receive, send)


async def get(*authorizations: bytes) -> httpx2.Response:
    headers = [(b"authorization", each) for each in authorizations]
    transport = httpx2.ASGITransport(BearerTokens(behind, callers_of(HTTP)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://toy") as client:
        return await client.get("/", headers=headers)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_token_is_let_in(scheme: str) -> None:
    response = await get(f"{scheme} {TOKEN}".encode())
    assert (response.status_code, response.text) == (200, "own  ")


async def test_each_token_stands_for_its_own_caller() -> None:
    assert (await get(b"Bearer anns")).text == "Ann phone "
    assert (await get(b"Bearer bobs")).text == "Bob  coder"


def test_the_callers_of_two_tokens_are_never_one() -> None:
    names = [caller.access_token.client_id for _token, caller in callers_of(HTTP)]
    assert len(set(names)) == len(names) == 3


def test_without_tokens_there_are_no_callers() -> None:
    assert callers_of(HttpSettings()) == []


async def test_a_token_is_not_carried_past_the_door() -> None:
    callers = [caller for _token, caller in callers_of(HTTP)]
    assert not any(TOKEN in str(vars(caller)) or "anns" in str(vars(caller)) for caller in callers)


async def test_without_credentials_the_challenge_names_the_scheme() -> None:
    response = await get()
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer realm="toolcrib"'


@pytest.mark.parametrize(
    "authorization",
    [
        *(b"Bearer", b"Bearer ", b"Bearer open", b"Bearer anns bobs", b"Bearer ann"),
        *(b"Basic open-sesame", b"open-sesame", b"Bearer \xff"),
    ],
)
async def test_wrong_credentials_are_refused_as_such(authorization: bytes) -> None:
    response = await get(authorization)
    assert response.status_code == 401
    assert 'error="invalid_token"' in response.headers["www-authenticate"]
    assert TOKEN not in response.text


async def test_of_two_tokens_neither_is_let_in() -> None:
    for both in ((b"Bearer anns", b"Bearer bobs"), (b"Bearer anns", b"Bearer anns")):
        assert (await get(*both)).status_code == 401


async def test_the_lifespan_passes() -> None:
    seen = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    async def receive() -> Message:
        raise NotImplementedError

    async def send(_message: Message) -> None:
        raise NotImplementedError

    await BearerTokens(app, callers_of(HTTP))({"type": "lifespan"}, receive, send)
    assert seen == ["lifespan"]
