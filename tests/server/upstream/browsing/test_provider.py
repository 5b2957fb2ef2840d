"""Resources and prompts of other servers, to clients of both eras."""

import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from server.mcp.browsing.answers import PAGE_SIZE
from server.settings.gateway import ProfileSettings, ServerSettings
from server.settings.settings import FunctionSettings
from storage.models import Identity, NewContext

pytestmark = pytest.mark.slow

MODERN = "2026-07-28"
ACROSS_ERAS = pytest.mark.parametrize(("mode", "era"), [("legacy", "both"), (MODERN, "legacy")])
BY_BOTH_ERAS = pytest.mark.parametrize(
    ("mode", "era"), [(mode, era) for mode in ("legacy", MODERN) for era in ("legacy", "both")]
)


async def _all_resources(client: Client) -> dict[str, types.Resource]:
    """Every resource by its address, page by page; none is listed twice."""
    found: list[types.Resource] = []
    cursor = None
    while found == [] or cursor is not None:
        page = await client.list_resources(cursor=cursor)
        assert len(page.resources) <= PAGE_SIZE
        found += page.resources
        cursor = page.next_cursor
    listed = {each.uri: each for each in found}
    assert len(listed) == len(found)
    return listed


def _texts(result: types.ReadResourceResult) -> list[str]:
    return [each.text for each in result.contents if isinstance(each, types.TextResourceContents)]


@ACROSS_ERAS
async def test_resources_are_listed_after_ours_just_as_their_server_lists_them(
    client_before: Any, mode: str, era: str
) -> None:
    async with client_before(mode, era) as client:
        listed = await _all_resources(client)
        templates = (await client.list_resource_templates()).resource_templates
    one = listed["ann://one"]
    assert next(iter(listed)) == "context://relevant"
    assert (one.name, one.title, one.description) == ("one", "One of ann", "The first.\u200b")
    assert (one.mime_type, one.size) == ("text/plain", 3)
    assert one.icons == [
        types.Icon(src="https://example.com/icon.png", mime_type="image/png", sizes=["1x1"])
    ]
    assert one.annotations == types.Annotations(audience=["user"], priority=0.5)
    assert one.meta == {"example.com/mark": "ann", "toolcrib/server": "ann"}
    assert [each.uri_template for each in templates][-2:] == [
        "ann://{key}/data{?part}",
        "shared://{key}/data",
    ]
    assert templates[-1].meta == {"toolcrib/server": "ann"}


@BY_BOTH_ERAS
async def test_a_resource_is_read_as_its_server_gives_it(
    client_before: Any, mode: str, era: str
) -> None:
    async with client_before(mode, era) as client:
        result = await client.read_resource("ann://one", meta={"example.com/ask": "x"})
    text, picture = result.contents
    assert isinstance(text, types.TextResourceContents)
    assert isinstance(picture, types.BlobResourceContents)
    assert (text.uri, text.text) == ("ann://one", "ann://one of ann\u202e")
    assert text.meta == {"example.com/asked": "x", "example.com/mark": "ann"}
    assert (picture.uri, picture.mime_type) == ("ann://one#picture", "image/png")
    assert result.meta is not None
    assert result.meta["example.com/whole"] is True
    if mode == MODERN:
        assert result.meta[types.SERVER_INFO_META_KEY]["name"] == "toolcrib"


@ACROSS_ERAS
async def test_what_is_not_there_is_not_found_in_the_code_of_the_clients_era(
    client_before: Any, mode: str, era: str
) -> None:
    async with client_before(mode, era) as client:
        for uri in ("ann://missing", "nobody://has/this", "toolcrib://nobody/ann://one"):
            with pytest.raises(MCPError) as failure:
                await client.read_resource(uri)
            assert failure.value.code == (types.INVALID_PARAMS if mode == MODERN else -32002)
            assert failure.value.error.data == {"uri": uri}


async def test_every_other_error_of_a_server_stays_as_it_is(client_before: Any, mode: str) -> None:
    async with client_before(mode, "both") as client:
        with pytest.raises(MCPError) as failure:
            await client.read_resource("ann://broken")
    error = failure.value.error
    assert (error.code, error.message, error.data) == (-32050, "It is broken.", {"why": "a test"})


@pytest.mark.parametrize("uri", ["ann://b%20c/data?part=2", "ann://unlisted"])
async def test_an_address_goes_to_whose_template_makes_it_else_to_whose_scheme_it_has(
    browsed: Any, uri: str
) -> None:
    async with browsed(("bob", "both"), ("ann", "both")) as client:
        assert _texts(await client.read_resource(uri)) == [f"{uri} of ann\u202e"]


async def test_an_address_of_two_servers_belongs_to_the_first_and_the_others_is_namespaced(
    browsed: Any,
) -> None:
    async with browsed(("bob", "both"), ("ann", "legacy")) as client:
        listed = await _all_resources(client)
        templates = (await client.list_resource_templates()).resource_templates
        first = await client.read_resource("shared://all")
        second = await client.read_resource("toolcrib://ann/shared://all")
        made = await client.read_resource("toolcrib://ann/shared://x/data")
    assert listed["shared://all"].meta == {"toolcrib/server": "bob"}
    assert listed["toolcrib://ann/shared://all"].meta == {"toolcrib/server": "ann"}
    assert {each.uri_template for each in templates[-4:]} == {
        "bob://{key}/data{?part}",
        "shared://{key}/data",
        "ann://{key}/data{?part}",
        "toolcrib://ann/shared://{key}/data",
    }
    assert _texts(first) == ["shared://all of bob\u202e"]
    assert _texts(second) == ["shared://all of ann\u202e"]
    assert second.contents[0].uri == "toolcrib://ann/shared://all"
    assert _texts(made) == ["shared://x/data of ann\u202e"]


async def test_addresses_of_ours_stay_ours_whoever_lists_them(client_before: Any) -> None:
    async with client_before(MODERN, "both") as client:
        listed = await _all_resources(client)
        ours = await client.read_resource("context://documents")
        theirs = await client.read_resource("toolcrib://ann/context://documents")
    assert listed["context://documents"].meta is None
    assert listed["toolcrib://ann/context://documents"].meta == {"toolcrib/server": "ann"}
    assert "of ann" not in _texts(ours)[0]
    assert "of ann" in _texts(theirs)[0]
    named = "toolcrib://ann/context://documents"
    assert [each.uri for each in theirs.contents] == [named, f"{named}#picture"]


async def test_lists_are_paged_through_ours_and_theirs(app_before: Any, mode: str) -> None:
    async with app_before(("ann", "both"), ("bob", "legacy")) as app:
        shelf = app.library.shelf(Identity())
        for number in range(PAGE_SIZE - 3):
            name = f"{number}.md"
            shelf.add(NewContext(raw_type="file", raw_id=name, title=name, text="x", sha256=name))
        async with Client(app.server, mode=mode, cache=None) as client:
            first = await client.list_resources()
            listed = await _all_resources(client)
            with pytest.raises(MCPError) as failure:
                await client.list_prompts(cursor=first.next_cursor)
    assert first.next_cursor is not None
    assert {"ann://one", "bob://one", "context://documents/file/0.md"} <= listed.keys()
    assert failure.value.code == types.INVALID_PARAMS


async def test_a_server_that_is_down_is_left_out_and_one_that_hangs_holds_nobody_up(
    browsed: Any,
) -> None:
    dead = ServerSettings(command=sys.executable, args=("-c", "raise SystemExit(1)"))
    asleep = ServerSettings(command=sys.executable, args=("-c", "import time; time.sleep(600)"))
    more = {"dead": dead, "asleep": asleep}
    async with browsed(("ann", "both"), more=more) as client:
        listed = await _all_resources(client)
        read = await client.read_resource("ann://one")
    assert "ann://one" in listed
    assert _texts(read) == ["ann://one of ann\u202e"]


async def test_a_server_that_went_down_is_listed_as_it_was_and_says_so_when_read(
    browsed: Any, tmp_path: Path
) -> None:
    async with browsed(("ann", "both")) as client:
        await _all_resources(client)
    (tmp_path / "root" / "down").touch()
    async with browsed(("ann", "both")) as client:
        listed = await _all_resources(client)
        with pytest.raises(MCPError) as failure:
            await client.read_resource("ann://one")
    assert "ann://one" in listed
    assert failure.value.code == types.INTERNAL_ERROR
    assert "The server 'ann' exited" in failure.value.message
    assert "`/opt/toolcrib servers`" in failure.value.message  # as it works when it is copied


async def test_a_profile_hides_what_a_denied_server_offers(browsed: Any, mode: str) -> None:
    profiles = {"careful": ProfileSettings(clients=("mcp",), deny=("server:ann",))}
    servers = (("ann", "both"), ("bob", "both"))
    async with browsed(*servers, profiles=profiles, mode=mode) as client:
        listed = await _all_resources(client)
        templates = (await client.list_resource_templates()).resource_templates
        prompts = (await client.list_prompts()).prompts
        shared = await client.read_resource("shared://all")
        for uri in ("ann://one", "toolcrib://ann/ann://one"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        with pytest.raises(MCPError):
            await client.get_prompt("ann__greet", {"who": "x"})
    named = [*(each.meta for each in listed.values()), *(each.meta for each in templates)]
    named += [each.meta for each in prompts]
    assert {meta["toolcrib/server"] for meta in named if meta} == {"bob"}
    assert _texts(shared) == ["shared://all of bob\u202e"]


async def test_what_a_function_offers_at_an_address_comes_before_a_servers(
    browsed: Any, tmp_path: Path
) -> None:
    file = tmp_path / "garden.py"
    file.write_text(
        "from tools.authoring import prompt, resource\n"
        "@resource('ann://one')\n"
        "def one() -> str: return 'of a function'\n"
    )
    functions = FunctionSettings(paths=(file,))
    async with browsed(("ann", "both"), functions=functions, mode="legacy") as client:
        listed = await _all_resources(client)
        assert _texts(await client.read_resource("ann://one")) == ["of a function"]
        named = await client.read_resource("toolcrib://ann/ann://one")
    assert next(iter(listed)) == "ann://one"
    assert listed["ann://one"].meta is None
    assert listed["toolcrib://ann/ann://one"].name == "one"
    assert _texts(named) == ["ann://one of ann\u202e"]


def _text(result: types.GetPromptResult) -> str:
    (text,) = (
        each.content.text for each in result.messages if isinstance(each.content, types.TextContent)
    )
    return text


@ACROSS_ERAS
async def test_prompts_are_listed_after_ours_under_the_name_of_their_server(
    client_before: Any, mode: str, era: str
) -> None:
    async with client_before(mode, era) as client:
        prompts = (await client.list_prompts()).prompts
    named = {each.name: each for each in prompts}
    greet = named["ann__greet"]
    assert list(named)[:3] == ["recall", "remember", "what_happened"]
    assert (greet.title, greet.description) == ("Greet", "Greets as ann does.")
    assert greet.arguments == [types.PromptArgument(name="who", required=True)]
    assert greet.icons is not None
    assert greet.meta == {"toolcrib/server": "ann"}


@ACROSS_ERAS
async def test_a_prompt_comes_as_its_server_gives_it(
    client_before: Any, mode: str, era: str
) -> None:
    async with client_before(mode, era) as client:
        result = await client.get_prompt("ann__greet", {"who": "Bea"})
    contents = [each.content for each in result.messages]
    assert result.description == "From ann."
    assert result.meta is not None
    assert result.meta["example.com/whole"] is True
    assert _text(result) == "ann greets Bea\u200b"
    assert contents[0].meta == {"example.com/mark": "ann"}
    assert [each.type for each in contents] == ["text", "image", "resource", "resource_link"]
    assert {each.role for each in result.messages} == {"assistant"}


async def test_a_bare_name_works_where_no_other_prompt_has_it(browsed: Any, mode: str) -> None:
    async with browsed(("ann", "both"), ("bob", "both"), mode=mode) as client:
        assert _text(await client.get_prompt("ann_only")).startswith("ann greets")
        assert _text(await client.get_prompt("bob__recall")).startswith("bob greets")
        assert "stored context" in _text(await client.get_prompt("recall"))
        for name in ("greet", "ann__nothing"):
            with pytest.raises(MCPError) as failure:
                await client.get_prompt(name)
            assert failure.value.code == types.INVALID_PARAMS


@BY_BOTH_ERAS
async def test_a_server_asks_the_person_before_it_gives_a_prompt(
    client_before: Any, mode: str, era: str
) -> None:
    asked: list[str] = []

    async def answer(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"who": "Bea"})

    async with client_before(mode, era, elicitation_callback=answer) as client:
        result = await client.get_prompt("ann__greet", {"who": "ask"})
    assert len(asked) == 1
    assert "Who?" in asked[0]
    assert _text(result).startswith("ann greets Bea")


@ACROSS_ERAS
async def test_completion_comes_from_the_server_that_has_the_prompt_or_the_template(
    client_before: Any, mode: str, era: str
) -> None:
    async with client_before(mode, era) as client:
        prompt = await client.complete(
            types.PromptReference(name="ann__greet"),
            {"name": "who", "value": "B"},
            {"other": "given"},
        )
        template = await client.complete(
            types.ResourceTemplateReference(uri="ann://{key}/data{?part}"),
            {"name": "key", "value": "1"},
        )
        ours = await client.complete(
            types.PromptReference(name="what_happened"), {"name": "when", "value": "yester"}
        )
    assert prompt.completion.values == ["ann greet who=B {'other': 'given'}"]
    assert template.completion.values == ["ann ann://{key}/data{?part} key=1 {}"]
    assert ours.completion.values == ["yesterday"]


async def test_completion_finds_the_template_of_the_server_that_is_named(browsed: Any) -> None:
    template = "shared://{key}/data"
    async with browsed(("bob", "both"), ("ann", "both")) as client:
        said = [
            await client.complete(
                types.ResourceTemplateReference(uri=uri), {"name": "key", "value": ""}
            )
            for uri in (template, f"toolcrib://ann/{template}", "nobody://{key}")
        ]
    assert [each.completion.values for each in said] == [
        [f"bob {template} key= {{}}"],
        [f"ann {template} key= {{}}"],
        [],
    ]


async def test_a_prompt_of_a_server_that_is_not_started_yet_starts_it(browsed: Any) -> None:
    async with browsed(("ann", "both"), lazy=True) as client:
        before = [each.name for each in (await client.list_prompts()).prompts]
        got = await client.get_prompt("ann__greet", {"who": "Bea"})
        after = [each.name for each in (await client.list_prompts(cache_mode="refresh")).prompts]
    assert "ann__greet" not in before
    assert _text(got).startswith("ann greets Bea")
    assert "ann__greet" in after
