"""Upstream tools on their way into the registry."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest

from server.settings.gateway import ServerSettings
from server.upstream.safety.admission import Admission
from server.upstream.safety.conversion import Invoke
from server.upstream.safety.review import Review
from storage.catalog.catalog import Pins
from storage.database import Database
from tools.core.context import RequestContext
from tools.core.errors import PermissionDeniedError, UnknownToolError
from tools.core.registry import ToolRegistry, check_admitted
from tools.core.result import ToolResult

SETTINGS = ServerSettings(command="x")
HIDDEN = "Adds.\u200b"


@pytest.fixture
def pins(tmp_path: Path) -> Iterator[Pins]:
    with closing(Database(tmp_path / "toolcrib.db")) as database:
        yield Pins(database)


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry()


@pytest.fixture
def admission(registry: ToolRegistry, pins: Pins) -> Admission:
    return Admission(registry, pins, ["git", "mail"])


async def call(_name: str, _arguments: dict[str, Any], _context: RequestContext) -> ToolResult:
    raise NotImplementedError


def invoke(name: str) -> Invoke:
    return partial(call, name)


def a_tool(name: str = "add", description: str = "Adds.") -> types.Tool:
    return types.Tool(name=name, description=description, input_schema={"type": "object"})


def approve(pins: Pins, tool: types.Tool) -> None:
    review = Review(["git"], pins)
    review.put("git", [tool], ())
    (judged,) = review.judge("git", trusts=False)
    pins.approve("git", tool.name, judged.definition.sha256, judged.definition.text)


async def test_what_a_server_lists_is_in_the_registry(
    admission: Admission, registry: ToolRegistry
) -> None:
    await admission.put("git", SETTINGS, [a_tool(), a_tool("sub")], invoke)
    assert [spec.name for spec in registry.specs()] == ["git__add", "git__sub"]
    await admission.put("git", SETTINGS, [a_tool("sub")], invoke)
    assert [spec.name for spec in registry.specs()] == ["git__sub"]


async def test_what_has_not_changed_stays_the_same_tool(
    admission: Admission, registry: ToolRegistry
) -> None:
    await admission.put("git", SETTINGS, [a_tool(), a_tool("sub", HIDDEN)], invoke)
    before, changes = registry.specs(), registry.changes
    await admission.put("git", SETTINGS, [a_tool(), a_tool("sub", HIDDEN)], invoke)
    assert all(one is other for one, other in zip(before, registry.specs(), strict=True))
    assert registry.changes == changes


async def test_only_what_the_settings_let_through_is_there(
    admission: Admission, registry: ToolRegistry
) -> None:
    settings = ServerSettings(command="x", allow=("get_*", "add"), deny=("get_k?y",))
    tools = [a_tool(name) for name in ("get_key", "get_all", "add", "sub")]
    await admission.put("git", settings, tools, invoke)
    assert [spec.bare for spec in registry.specs()] == ["add", "get_all"]


async def test_a_tool_may_speak_of_one_that_the_settings_leave_out(
    admission: Admission, registry: ToolRegistry
) -> None:
    await admission.put("mail", SETTINGS, [a_tool("get_all")], invoke)
    tools = [a_tool("add", "Adds what get_all finds."), a_tool("get_all")]
    settings = ServerSettings(command="x", deny=("get_all",))
    await admission.put("git", settings, tools, invoke)
    assert registry.find("git__add").quarantine_reason == ""


async def test_a_neighbour_that_comes_has_tools_judged_anew(
    admission: Admission, registry: ToolRegistry
) -> None:
    await admission.put("git", SETTINGS, [a_tool("add", "Call me before send_mail.")], invoke)
    assert registry.find("git__add").quarantine_reason == ""
    await admission.put("mail", SETTINGS, [a_tool("send_mail")], invoke)
    assert "mail__send_mail" in registry.find("git__add").quarantine_reason


async def test_a_call_that_began_before_is_refused(
    admission: Admission, registry: ToolRegistry
) -> None:
    await admission.put("git", SETTINGS, [a_tool(), a_tool("sub")], invoke)
    check_admitted(registry.find("git__add", None), None)
    await admission.put("git", SETTINGS, [a_tool(description="Else.")], invoke)
    with pytest.raises(PermissionDeniedError, match="changed after it was accepted"):
        check_admitted(registry.find("git__add", None), None)
    with pytest.raises(UnknownToolError):
        registry.find("git__sub", None)


async def test_an_approval_of_another_process_frees_a_tool(
    admission: Admission, registry: ToolRegistry, pins: Pins
) -> None:
    hidden = a_tool(description=HIDDEN)
    await admission.put("git", SETTINGS, [hidden], invoke)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(admission.watch)
            approve(pins, hidden)
            while registry.find("git__add").quarantine_reason:  # noqa: ASYNC110  # the registry tells nobody
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    assert registry.find("git__add").description == HIDDEN


async def test_thousands_of_tools_are_taken_in(
    admission: Admission, registry: ToolRegistry, pins: Pins
) -> None:
    tools = [a_tool(f"tool_{number}", f"Does {number}.") for number in range(5_000)]
    await admission.put("git", SETTINGS, tools, invoke)
    assert len(registry.specs()) == len(pins.of("git")) == 5_000
