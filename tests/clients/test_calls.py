"""The programs of clients list Toolcrib's tools and call them for a scripted model."""

from __future__ import annotations

import pytest

from server.mcp.surface import EVERYDAY
from tests.clients.programs import CLAUDE_CODE, Home
from tests.clients.wires import Call

pytestmark = pytest.mark.slow

READ = Call("read_file", {"file_path": "note.txt"})


def test_a_model_is_shown_the_everyday_tools_and_reads_a_file(home: Home) -> None:
    home.add_server()
    with home.model([READ, "Behind the door."]) as model:
        ended = home.prompt(model)
    assert "Behind the door." in ended.printed, ended
    first, *_, last = model.asked()
    names = {home.program.tool.format(name) for name in EVERYDAY}
    shown = first.system + "\n".join(first.texts) if home.program is CLAUDE_CODE else first.tools
    assert {name for name in names if name not in shown} == set()
    (result,) = last.results
    assert "the keys hang behind the door" in result


def test_a_failed_call_tells_the_model_what_to_do(home: Home) -> None:
    home.add_server()
    with home.model([Call("read_file", {"file_path": "keys.txt"}), "Not there."]) as model:
        home.prompt(model)
    (result,) = model.asked()[-1].results
    assert "not_found: " in result
    assert "Next: " in result
