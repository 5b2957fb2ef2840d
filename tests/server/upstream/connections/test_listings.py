"""What other servers offer: listed within bounds, kept, and listed anew when it changes."""

import logging
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest
from mcp import Client

from server.upstream.connections import listing
from server.upstream.connections.listing import fingerprint
from server.upstream.upstream import State
from tests.conftest import told
from tests.server.serving import running as serving
from tools.core.errors import UnavailableError


@pytest.mark.parametrize("fault", ["endless", "same_cursor"])
async def test_a_list_without_an_end_is_cut(
    fault: str,
    frail: Any,
    gateway_of: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(listing, "MOST_PAGES", 20)
    async with gateway_of(toy=frail(**{fault: True}).settings()) as running:
        found = running.gateway.upstreams["toy"].listing.tools
        assert len({tool.name for tool in found}) == len(found) <= 21
        assert found
    assert "a list was cut" in caplog.text


async def test_a_list_beyond_all_bounds_is_cut(
    frail: Any, gateway_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_ITEMS", 30)
    toy = frail(tools=[f"tool_{number}" for number in range(100)])
    async with gateway_of(toy=toy.settings()) as running:
        assert len(running.gateway.upstreams["toy"].listing.tools) == 30


async def test_names_and_descriptions_have_bounds(frail: Any, gateway_of: Any) -> None:
    toy = frail(tools=["n" * 300], description="d" * 50_000)
    async with gateway_of(toy=toy.settings()) as running:
        found = running.gateway.upstreams["toy"].listing.tools
        assert {tool.name for tool in found} == {"echo", "crash"}
        assert {len(tool.description) for tool in found} == {listing.LONGEST_DESCRIPTION}


async def test_a_list_that_changed_is_asked_for_and_told(
    frail: Any, gateway_of: Any, until: Any
) -> None:
    told: list[tuple[str, frozenset[str]]] = []
    async with gateway_of(toy=frail().settings()) as running:
        running.gateway.on_change(lambda server, kinds: told.append((server, kinds)))
        before = running.registry.get("toy__echo")
        await running.call("toy", "grow", "newcomer")
        await until(lambda: "toy__newcomer" in running.names)
        assert running.registry.get("toy__echo") is before  # what stays the same, stays
    assert told == [("toy", frozenset({"tools"}))]


async def test_what_is_denied_is_no_tool_of_ours(frail: Any, gateway_of: Any) -> None:
    toy = frail(tools=["read_a", "read_b", "write_a"])
    settings = toy.settings(allow=("read_*", "write_*"), deny=("*_b",))
    async with gateway_of(toy=settings) as running:
        assert running.names == ["toy__read_a", "toy__write_a"]


async def test_a_server_that_is_down_has_its_last_tools(frail: Any, gateway_of: Any) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings()) as running:
        assert running.names == ["toy__crash", "toy__echo"]
    toy.switch(exits=3)
    async with gateway_of(toy=toy.settings()) as running:
        assert running.names == ["toy__crash", "toy__echo"]
        with pytest.raises(UnavailableError):
            await running.call("toy", "echo")


async def test_other_settings_make_another_server(frail: Any, gateway_of: Any) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings()):
        pass
    toy.switch(exits=3)
    async with gateway_of(toy=toy.settings(env={"REGION": "here"})) as running:
        assert running.names == []


def test_a_fingerprint_tells_no_secret(frail: Any) -> None:
    one, other = (frail().settings(env={"KEY": key}) for key in ("a", "b"))
    assert fingerprint(one) == fingerprint(other)


async def test_a_lazy_server_starts_when_it_is_used(
    frail: Any, gateway_of: Any, until: Any
) -> None:
    toy = frail()
    async with gateway_of(toy=toy.settings(lazy=True)) as running:
        assert running["toy"].state is State.OFF
        assert toy.pids == []
        await running.call("toy", "echo")
        await until(lambda: running.names == ["toy__crash", "toy__echo"])
    async with gateway_of(toy=toy.settings(lazy=True)) as running:
        assert running.names == ["toy__crash", "toy__echo"]
    assert len(toy.pids) == 1


async def test_a_tool_is_looked_for_at_the_server_of_its_name_else_everywhere(
    frail: Any, gateway_of: Any
) -> None:
    toy, other = frail("toy"), frail("other", tools=["rare"])
    servers = {"toy": toy.settings(), "other": other.settings()}
    async with gateway_of(eager=False, **servers) as running:
        await running.gateway.find("toy__echo")
        assert running.registry.get("toy__echo") is not None
        await running.gateway.find("toy__nothing")
        assert (len(toy.pids), len(other.pids)) == (1, 0)
        await running.gateway.find("rare")
        assert running.registry.find("rare").name == "other__rare"


async def test_a_server_whose_list_is_known_has_its_tools_in_the_registry(
    frail: Any, gateway_of: Any
) -> None:
    servers = {"toy": frail().settings()}
    async with gateway_of(eager=False, **servers) as running, anyio.create_task_group() as group:
        group.start_soon(running.gateway.find, "echo")
        with anyio.fail_after(20):
            while running.gateway.upstreams["toy"].listing is None:  # it is what is read
                await anyio.lowlevel.checkpoint()
        assert running.registry.find("echo").name == "toy__echo"


async def test_nothing_is_started_that_nobody_needs(frail: Any, gateway_of: Any) -> None:
    toy = frail()
    async with gateway_of(eager=False, toy=toy.settings()) as running:
        await running.gateway.ready()
    assert toy.pids == []


async def test_the_log_says_why_a_server_is_not_there(
    frail: Any, gateway_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "toolcrib")
    async with gateway_of(toy=frail(exits=3).settings()):
        pass
    assert "The server 'toy' exited with code 3; its last lines: no token was given" in caplog.text


async def test_a_search_waits_for_servers_that_start_and_says_which_it_misses(
    frail: Any, tmp_path: Path
) -> None:
    servers = {
        "quick": frail("quick").settings(),
        "stuck": frail("stuck", silent=True).settings(start_timeout=2),
        "later": frail("later").settings(lazy=True),
    }
    asked = {"query": "echo what is said"}
    async with serving(tmp_path, servers=servers) as app, Client(app.server) as client:
        first = await client.call_tool("search_tools", asked)
        await client.call_tool("call_tool", {"name": "later__echo", "arguments": {"text": "a"}})
        second = await client.call_tool("search_tools", asked)
    assert "quick__echo(" in told(first)
    missing = told(first).splitlines()[-1]
    assert missing.startswith("Servers whose tools are still unknown: stuck did not answer")
    assert missing.endswith("later was not needed yet")
    assert "later" not in told(second).splitlines()[-1]
