from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

MODERN = "2026-07-28"
BY_ERA = pytest.mark.parametrize("mode", ["legacy", MODERN])
ACROSS_ERAS = pytest.mark.parametrize(("mode", "era"), [("legacy", "both"), (MODERN, "legacy")])
BY_BOTH_ERAS = pytest.mark.parametrize(
    ("mode", "era"), [(mode, era) for mode in ("legacy", MODERN) for era in ("legacy", "both")]
)


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


@BY_ERA
async def test_a_bare_name_works_where_no_other_prompt_has_it(app_before: Any, mode: str) -> None:
    async with (
        app_before(("ann", "both"), ("bob", "both")) as app,
        Client(app.server, mode=mode) as client,
    ):
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


async def test_completion_finds_the_template_of_the_server_that_is_named(app_before: Any) -> None:
    template = "shared://{key}/data"
    async with app_before(("bob", "both"), ("ann", "both")) as app, Client(app.server) as client:
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


async def test_a_prompt_of_a_server_that_is_not_started_yet_starts_it(app_before: Any) -> None:
    async with app_before(("ann", "both"), lazy=True) as app, Client(app.server) as client:
        before = [each.name for each in (await client.list_prompts()).prompts]
        got = await client.get_prompt("ann__greet", {"who": "Bea"})
        after = [each.name for each in (await client.list_prompts(cache_mode="refresh")).prompts]
    assert "ann__greet" not in before
    assert _text(got).startswith("ann greets Bea")
    assert "ann__greet" in after
