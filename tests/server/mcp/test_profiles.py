"""Profiles: what single clients find, call and are shown, asked by real clients of both eras."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import Implementation
from pydantic import ValidationError

from server.app import App, build
from server.mcp.profiles import Profiles
from server.settings import Settings, SettingsError
from server.settings.gateway import ProfileSettings
from server.settings.http import HttpSettings
from tests.conftest import told
from tests.server.serving import running
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.spec import Effect, ToolScope


def file_issue(title: str) -> str:
    """Files an issue."""
    return title


@asynccontextmanager
async def opened(
    directory: Path, profiles: Mapping[str, Mapping[str, Any]], **options: Any
) -> AsyncIterator[App]:
    theirs = replace(
        FunctionToMCP.convert(file_issue),
        name="hub__file_issue",
        bare="file_issue",
        scope=ToolScope.MCP,
        effects=frozenset({Effect.READ}),
        tags=("hub",),
        source="upstream:hub",
    )
    named = {name: ProfileSettings(**each) for name, each in profiles.items()}
    async with running(directory, profiles=named, **options) as app:
        app.registry.replace_source("upstream:hub", [theirs])
        yield app


def client_of(app: App, mode: str, name: str = "desk") -> Client:
    return Client(app.server, mode=mode, client_info=Implementation(name=name, version="1"))


async def listed(client: Client) -> list[str]:
    return [each.name for each in (await client.list_tools()).tools]


async def text_of(client: Client, name: str, /, **arguments: Any) -> tuple[bool, str]:
    result = await client.call_tool(name, arguments)
    return bool(result.is_error), told(result)


async def test_a_profile_holds_on_every_path(tmp_path: Path, mode: str) -> None:
    denied = {"desk": {"clients": "desk", "deny": ("write_file", "server:h*", "tag:directory")}}
    wrote = {"file_path": "a.txt", "content": "a"}
    async with opened(tmp_path, denied) as app, client_of(app, mode) as client:
        assert "write_file" not in await listed(client)
        assert "read_file" in await listed(client)
        for name, arguments in (
            ("write_file", wrote),
            ("write_text_file", wrote),
            ("file_issue", {"title": "a"}),
        ):
            paths: tuple[tuple[str, dict[str, Any]], ...] = (
                (name, arguments),
                ("call_tool", {"name": name, "arguments": arguments}),
                ("describe_tool", {"name": name}),
            )
            for called, sent in paths:
                is_error, text = await text_of(client, called, **sent)
                assert is_error
                assert text.startswith("permission_denied: ")
                assert "profile 'desk'" in text
            calls = [{"name": name, "arguments": arguments}]
            _, text = await text_of(client, "call_tools", calls=calls)
            assert text.startswith(f"1. {name} failed:\npermission_denied: ")
        assert not (tmp_path / "root" / "a.txt").exists()
        for query in ("write_file", "write a file", "file_issue", "researcher_search"):
            _, text = await text_of(client, "search_tools", query=query, top_k=50)
            assert "write_file(" not in text
            assert "hub__" not in text
            assert "researcher_search(" not in text


async def test_nothing_that_a_profile_leaves_out_is_counted_or_suggested(
    tmp_path: Path, mode: str
) -> None:
    profiles = {"desk": {"clients": "desk", "allow": ("tag:toolsearch", "tag:files")}}
    async with opened(tmp_path, profiles) as app, client_of(app, mode) as client:
        (search,) = [
            each for each in (await client.list_tools()).tools if each.name == "search_tools"
        ]
        admitted = [spec for spec in app.registry.specs() if {"toolsearch", "files"} & {*spec.tags}]
        assert f"among all {len(admitted)}: files " in (search.description or "")
        assert "hub" not in (search.description or "")
        _, described = await text_of(client, "describe_tool", name="search_tools")
        assert f"among all {len(admitted)}: " in described
        for name in ("querry", "hub__file_isue", "add_documents"):
            for called, sent in ((name, {}), ("call_tool", {"name": name})):
                _, text = await text_of(client, called, **sent)
                assert text.startswith("unknown_tool: ")
                for hidden in ("query", "hub__file_issue", "add_document"):
                    assert hidden not in text.replace(name, "")
        _, nothing = await text_of(client, "search_tools", query="xylophone")
        assert "context" not in nothing


async def test_others_see_everything(tmp_path: Path, mode: str) -> None:
    profiles = {"desk": {"clients": "desk*", "deny": "read_file"}}
    async with opened(tmp_path, profiles) as app:
        async with client_of(app, mode, "Desktop") as client:
            assert "read_file" not in await listed(client)
        async with client_of(app, mode, "other") as client:
            assert "read_file" in await listed(client)
            assert not (await text_of(client, "file_issue", title="a"))[0]


async def test_what_reaches_other_tools_can_be_denied_too(tmp_path: Path, mode: str) -> None:
    profiles = {"desk": {"clients": "*", "deny": ("call_tool*", "search_tools")}}
    async with opened(tmp_path, profiles) as app, client_of(app, mode) as client:
        assert {"call_tool", "search_tools"}.isdisjoint(await listed(client))
        for name, arguments in (
            ("call_tool", {"name": "list_directory"}),
            ("call_tools", {"calls": [{"name": "list_directory"}]}),
            ("search_tools", {"query": "a"}),
        ):
            is_error, text = await text_of(client, name, **arguments)
            assert is_error
            assert text.startswith("permission_denied: ")


async def test_pinned_tools_are_listed_and_others_as_far_as_the_budget_goes(
    tmp_path: Path, mode: str
) -> None:
    profile = {"clients": "desk", "pinned": ("delete_document", "hub__file_issue", "grep")}
    profiles = {"desk": {**profile, "token_budget": 1_500, "deny": "grep"}}
    async with opened(tmp_path, profiles) as app, client_of(app, mode) as client:
        result = await client.list_tools()
        names = [each.name for each in result.tools]
        wire = result.model_dump(mode="json", by_alias=True, exclude_none=True)["tools"]
    assert len(json.dumps({"tools": wire}, separators=(",", ":"), ensure_ascii=False)) <= 6_000
    assert names == sorted(names)
    assert {"delete_document", "hub__file_issue", "search_tools", "call_tool"} <= {*names}
    assert "grep" not in names
    assert 5 < len(names) < 13


async def test_pinned_tools_are_listed_beyond_the_budget(tmp_path: Path) -> None:
    profiles = {"desk": {"clients": "desk", "pinned": ("query", "read_file"), "token_budget": 1}}
    async with opened(tmp_path, profiles) as app, client_of(app, "2026-07-28") as client:
        assert await listed(client) == ["query", "read_file"]


async def test_the_list_is_the_same_on_every_connection_and_after_every_call(
    tmp_path: Path, mode: str
) -> None:
    profiles = {"desk": {"clients": "desk", "token_budget": 1_200}}
    async with opened(tmp_path, profiles) as app:
        async with client_of(app, mode) as client:
            before = (await client.list_tools()).tools
            await client.call_tool("search_tools", {"query": "delete"})
            await client.call_tool("call_tool", {"name": "delete_document"})
            app.registry.remove_source("upstream:hub")
            after = (await client.list_tools(cache_mode="bypass")).tools
        async with client_of(app, mode) as client:
            assert (await client.list_tools()).tools == after == before


@pytest.mark.parametrize(
    ("profiles", "scope"), [({}, "public"), ({"desk": {"clients": "x"}}, "private")]
)
async def test_a_list_that_depends_on_who_asks_is_cached_for_them_alone(
    tmp_path: Path, profiles: dict[str, dict[str, Any]], scope: str
) -> None:
    async with opened(tmp_path, profiles) as app, client_of(app, "2026-07-28") as client:
        assert (await client.list_prompts()).cache_scope == scope
        assert (await client.list_tools()).cache_scope == "private"  # by the client's name too


@pytest.mark.parametrize(
    ("token", "client", "expected"),
    [
        ("ann", "Cursor", "by_token"),
        ("", "Cursor", "cursor"),
        ("eve", "cursor-vscode", "cursor"),
        ("", "claude-ai", "rest"),
        ("", "", "rest"),
    ],
)
def test_a_token_goes_before_a_name_and_the_first_profile_before_others(
    token: str, client: str, expected: str
) -> None:
    settings = {
        "cursor": ProfileSettings(clients=("cursor*",)),
        "rest": ProfileSettings(clients=("*",)),
        "by_token": ProfileSettings(tokens=("ann", "bob")),
    }
    profiles = Profiles(lambda: settings)
    chosen = profiles.choose(token, client)
    assert chosen is not None
    assert chosen.tool_set.name == expected


def test_where_no_profile_fits_none_holds() -> None:
    settings = {"ann": ProfileSettings(tokens=("ann",), clients=("cursor",))}
    profiles = Profiles(lambda: settings)
    assert profiles.choose("", "claude-ai") is None
    assert profiles.choose("bob", "") is None


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ({"tokens": ("ann", "eve")}, r"profiles\.desk\.tokens: 'eve' .*http\.tokens.*ann"),
        ({"clients": "*", "deny": ("server:hubb",)}, r"profiles\.desk: 'hubb' .*servers.*none"),
    ],
)
def test_names_that_the_settings_have_nowhere_are_refused(
    tmp_path: Path, profile: dict[str, Any], told: str
) -> None:
    ann = {"token": "a" * 32, "user_id": "ann"}
    settings = Settings(
        data_dir=tmp_path / "data",
        root=tmp_path,
        http=HttpSettings(tokens={"ann": ann}),
        profiles={"desk": ProfileSettings(**profile)},
    )
    with pytest.raises(SettingsError, match=told):
        build(settings)


def test_a_profile_for_nobody_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs clients or tokens"):
        ProfileSettings(deny=("bash",))
