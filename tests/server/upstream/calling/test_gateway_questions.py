"""Questions of another server, taken to the client, over all pairs of eras."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError

from server.app import App
from tests.conftest import told

pytestmark = pytest.mark.slow

AppOf = Callable[..., AbstractAsyncContextManager[App]]
ClientOf = Callable[..., Client]
Toy = Callable[..., AbstractAsyncContextManager[Client]]

UPSTREAM = pytest.mark.parametrize("upstream", ["handshake", "modern"])
ACROSS_ERAS = pytest.mark.parametrize(
    ("era", "upstream"), [("legacy", "modern"), ("modern", "handshake")]
)
ERA = pytest.mark.parametrize("era", ["legacy", "modern"])


class Person:
    """Answers what is asked, and keeps what it was shown."""

    def __init__(self, action: Any = "accept") -> None:
        self.shown: list[Any] = []
        self.action = action

    async def elicit(self, _context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.shown.append(params)
        is_approval = " wants to call " in params.message
        content: Any = {"answer": "once"} if is_approval else {"name": "Ann"}
        accepts = self.action == "accept" and not isinstance(params, types.ElicitRequestURLParams)
        return types.ElicitResult(action=self.action, content=content if accepts else None)

    async def sample(
        self, _context: Any, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        self.shown.append(params)
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(text="four"), model="m"
        )

    async def roots(self, _context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])

    @property
    def can(self) -> dict[str, Any]:
        return {
            "elicitation_callback": self.elicit,
            "sampling_callback": self.sample,
            "list_roots_callback": self.roots,
        }


@UPSTREAM
@ERA
async def test_all_that_a_server_asks_in_one_call_reaches_the_client(
    toy: Toy, journal: Any, upstream: str, era: str
) -> None:
    person = Person()
    async with toy(upstream, era, **person.can) as client:
        kinds = ["form", "url", "model", "roots", "form"]
        result = await client.call_tool("toy__asking", {"kinds": kinds})
    answers = [line[line.index("{") :] for line in told(result).split("\n")]
    form, url, model, roots, _ = map(json.loads, answers)
    assert (form["action"], form["content"]) == ("accept", {"name": "Ann"})
    assert url["action"] == "accept"
    assert model["content"]["text"] == "four"
    assert roots["roots"][0]["uri"] == "file:///work"
    if upstream == "handshake":
        assert journal.lines.count("asking") == 1  # the call went on while the client was asked


@ACROSS_ERAS
async def test_what_a_person_is_shown_says_who_asks_and_hides_nothing(
    toy: Toy, upstream: str, era: str
) -> None:
    person = Person()
    async with toy(upstream, era, **person.can) as client:
        await client.call_tool("toy__asking", {"kinds": ["form", "url", "model"]})
    form, url, model = person.shown
    assert form.message == "The server 'toy' asks: Who are<U+202E> you?"
    assert form.requested_schema["properties"]["name"]["title"] == "Your na<U+200B>me"
    assert url.message == "The server 'toy' asks: Sign in."
    assert url.url == "https://example.com/in"
    assert model.system_prompt.startswith("The MCP server 'toy' asks this, through Toolcrib.")
    assert model.system_prompt.endswith("Add.")
    assert model.include_context == "none"


PAGE = {
    "mode": "url",
    "message": "Sign\u202e in.",
    "url": "https://e.example/in",
    "elicitationId": "7",
}


async def test_a_call_refused_until_a_page_was_seen_says_who_sends_the_person_there(
    toy: Toy,
) -> None:
    arguments = {"code": types.URL_ELICITATION_REQUIRED, "data": {"elicitations": [PAGE]}}
    async with toy(elicitation_callback=Person().elicit) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("toy__refusing", arguments)
    (page,) = UrlElicitationRequiredError.from_error(refused.value.error).elicitations
    assert "'toy'" in refused.value.error.message
    assert page.message == "The server 'toy' asks: Sign<U+202E> in."
    assert (page.url, page.elicitation_id) == ("https://e.example/in", "toy:7")


@pytest.mark.parametrize(
    ("data", "can"),
    [
        ({"elicitations": [{**PAGE, "url": "javascript:x"}]}, True),
        ({}, True),
        (None, True),
        ({"elicitations": [PAGE]}, False),
    ],
)
async def test_a_call_refused_for_no_page_or_to_a_client_that_opens_none_fails(
    toy: Toy, data: Any, can: bool
) -> None:
    arguments = {"code": types.URL_ELICITATION_REQUIRED, "data": data}
    async with toy(elicitation_callback=Person().elicit if can else None) as client:
        result = await client.call_tool("toy__refusing", arguments)
    assert result.is_error
    assert "No, not this" in told(result)


@ACROSS_ERAS
async def test_a_person_who_declines_is_told_to_the_server(
    toy: Toy, upstream: str, era: str
) -> None:
    person = Person("decline")
    async with toy(upstream, era, **person.can) as client:
        result = await client.call_tool("toy__asking", {})
    assert '"action":"decline"' in told(result)


@ACROSS_ERAS
async def test_a_server_is_told_what_the_client_can_be_asked_and_no_more(
    app_of: AppOf, client_of: ClientOf, upstream: str, era: str
) -> None:
    person = Person()
    async with app_of(upstream) as app:
        async with client_of(app, era) as client:
            nothing = json.loads(told(await client.call_tool("toy__abilities", {})))
        async with client_of(app, era, elicitation_callback=person.elicit) as client:
            some = json.loads(told(await client.call_tool("toy__abilities", {})))
        async with client_of(app, era, **person.can) as client:
            everything = json.loads(told(await client.call_tool("toy__abilities", {})))
    assert not {"elicitation", "sampling", "roots"} & nothing.keys()
    assert {"elicitation", "sampling", "roots"} & some.keys() == {"elicitation"}
    assert {"elicitation", "sampling", "roots"} <= everything.keys()


@ERA
async def test_a_client_that_cannot_be_asked_is_not(toy: Toy, era: str) -> None:
    async with toy("handshake", era) as client:
        assert told(await client.call_tool("toy__asking", {})).startswith("error -32")
    async with toy("modern", era) as client:
        result = await client.call_tool("toy__asking", {})
        assert result.is_error
        assert "a request this client does not support" in told(result)


@ACROSS_ERAS
async def test_a_server_asks_in_a_call_that_another_tool_passes_on(
    toy: Toy, upstream: str, era: str
) -> None:
    person = Person()
    async with toy(upstream, era, **person.can) as client:
        given = {"name": "toy__asking", "arguments": {"kinds": ["form", "model"]}}
        result = await client.call_tool("call_tool", given)
    assert "four" in told(result)


@ACROSS_ERAS
@pytest.mark.parametrize("way", ["directly", "call_tool"])
async def test_the_person_approves_first_and_then_answers_the_server(
    app_of: AppOf, client_of: ClientOf, upstream: str, era: str, way: str
) -> None:
    person = Person()
    arguments: dict[str, Any] = {"kinds": ["form", "form"]}
    name = "toy__asking"
    if way == "call_tool":
        name, arguments = way, {"name": name, "arguments": arguments}
    async with (
        app_of(upstream, allow=("call_tool",)) as app,
        client_of(app, era, **person.can) as client,
    ):
        result = await client.call_tool(name, arguments)
    assert told(result).count("Ann") == 2
    first, *others = (params.message for params in person.shown)
    assert "wants to call toy__asking" in first
    assert len(others) == 2
    assert all(message.startswith("The server 'toy' asks") for message in others)


async def test_a_server_that_asks_without_end_is_stopped(toy: Toy) -> None:
    person = Person()
    async with toy("modern", **person.can) as client:
        result = await client.call_tool("toy__endless", {})
    assert result.is_error
    assert "more than 10 times" in told(result)
    assert len(person.shown) <= 11
