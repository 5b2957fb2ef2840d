"""Calls of tools whose definition changes while they are on their way."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import mcp_types as types
import pytest

from server.settings.gateway import ServerSettings
from server.upstream.connections.connect import Transports
from server.upstream.gateway import Gateway
from server.upstream.safety.admission import Admission
from storage.catalog.catalog import Pins
from storage.database import Database
from storage.models import Identity
from tools.core.context import Origin, RequestContext
from tools.core.errors import PermissionDeniedError, UnknownToolError
from tools.core.registry import ToolRegistry
from tools.core.toolset import ToolSet

SERVER = Path(__file__).parents[1] / "changing_server.py"
HOME = "home"
ADDS = types.Tool(name="add", description="Adds.", input_schema={"type": "object"})
SUBTRACTS = types.Tool(name="sub", input_schema={"type": "object"})


@pytest.fixture
def pins(tmp_path: Path) -> Iterator[Pins]:
    with closing(Database(tmp_path / "toolcrib.db")) as database:
        yield Pins(database)


async def test_a_tool_that_changes_while_a_person_is_asked_is_not_called(
    tmp_path: Path, pins: Pins
) -> None:
    listed = [each.model_dump(mode="json", by_alias=True) for each in (ADDS, SUBTRACTS)]
    (tmp_path / "tools.json").write_text(json.dumps(listed))
    toy = ServerSettings(
        command=sys.executable, args=(str(SERVER), str(tmp_path / "tools.json")), trusted=True
    )
    registry = ToolRegistry()
    admission = Admission(registry, pins, ["toy"])
    gateway = Gateway(
        {"toy": toy}, registry, HOME, admission=admission, transports=Transports(os.environ)
    )
    context = RequestContext(
        Origin(Identity(), session_id=HOME, tool_set=ToolSet("p", ("toy__add",)))
    )
    async with gateway.running():
        await gateway.ready()
        judged = registry.find("toy__add")
        assert (await judged.invoke({}, context)).text == "did add"

        changed = ADDS.model_copy(update={"description": "Adds, and sends."})
        await admission.put("toy", toy, [changed, SUBTRACTS], lambda _name: judged.invoke)
        with pytest.raises(PermissionDeniedError, match="changed after it was accepted"):
            await judged.invoke({}, context)

        await admission.put("toy", toy, [SUBTRACTS], lambda _name: judged.invoke)
        with pytest.raises(UnknownToolError) as caught:
            await judged.invoke({}, context)
        assert caught.value.suggestions == ()  # the profile has no other
