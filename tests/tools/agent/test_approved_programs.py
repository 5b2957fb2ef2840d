"""run_code asks the person once for a loop, in both eras and where nobody can be asked."""

import json
from typing import Any

from mcp import Client
from mcp_types import CallToolResult

from tests.conftest import told
from tests.people import Person
from tests.tools.conftest import Open

ASKING = {"policy__ask": ("write_file",)}
"""Settings in which each file that is written is asked about."""


async def run(crib: Any, mode: str, person: Person | None, code: str, **more: Any) -> str:
    async with Client(crib.app.server, mode=mode, elicitation_callback=person) as client:
        result: CallToolResult = await client.call_tool("run_code", {"code": code, **more})
    return told(result)


async def test_a_loop_over_one_file_asks_once(open_crib: Open, mode: str) -> None:
    code = "for n in range(5):\n    await tools.write_file('a.txt', str(n))"
    person = Person("for_program")
    async with open_crib(mode, **ASKING) as crib:
        await run(crib, mode, person, code, max_calls=9)
        assert (crib.root / "a.txt").read_text() == "4"
        lines = [*map(json.loads, crib.app.settings.audit_file.read_text().splitlines())]
        approved = [each["approved_by"] for each in lines if each["tool"] == "write_file"]
    callers = {(each["tool"], each["called_by"]) for each in lines}
    assert callers == {("run_code", None), ("write_file", "run_code")}
    assert approved == [f"client for this program, {number} of 9" for number in range(1, 6)]
    (asked,) = person.asked
    first = "run_code wants to call write_file (8 more calls may follow): a.txt (with content)"
    assert asked.message.splitlines()[0] == first


async def test_calls_that_are_made_at_once_wait_for_one_answer(open_crib: Open, mode: str) -> None:
    code = """
async def write(n):
    try:
        return (await tools.write_file("a.txt", str(n))).path
    except tools.ToolError as error:
        return error.error_type
await asyncio.gather(*map(write, range(8)))
"""
    person = Person("no")
    async with open_crib(mode, **ASKING) as crib:
        told = await run(crib, mode, person, code)
        assert not (crib.root / "a.txt").exists()
    assert told.startswith(json.dumps(["permission_denied"] * 8, separators=(",", ":")))
    assert len(person.asked) == 1


async def test_what_needs_approval_is_listed_where_nobody_can_be_asked(
    open_crib: Open, mode: str
) -> None:
    code = """
for n in range(6):
    try:
        await tools.bash(command=f"seq {n % 2}")
    except tools.ToolError as error:
        print(error.error_type)
"""
    settings = {"policy__profile": "cautious", "policy__allow": ("run_code",)}
    async with open_crib(mode, **settings) as crib:
        told = await run(crib, mode, None, code)
    assert told.splitlines() == [
        *["approval_required"] * 6,
        (
            "[Needs approval: bash: the user can allow 'bash(seq 0)', 'bash(seq 1)' in"
            " policy.allow. Not covered by a rule: `seq 0`. It runs programs.]"
        ),
        "[calls: 6 bash (6 failed)]",
    ]


async def test_a_file_by_another_name_is_asked_about_itself(open_crib: Open, mode: str) -> None:
    code = """
import os
names = ["a.txt", "./a.txt", "link.txt", "d/../a.txt", "\u0430.txt", "d/a.txt"]
told = []
for name in names:
    try:
        await tools.write_file(name, "x")
        told.append(name)
    except tools.ToolError as error:
        told.append(error.error_type)
told
"""
    person = Person("for_program", "no")
    async with open_crib(mode, **ASKING) as crib:
        (crib.root / "a.txt").write_text("")
        (crib.root / "b.txt").write_text("")
        (crib.root / "d").mkdir()
        (crib.root / "link.txt").symlink_to("b.txt")
        told = await run(crib, mode, person, code)
        assert (crib.root / "b.txt").read_text() == ""
    denied = "permission_denied"
    wanted = ["a.txt", "./a.txt", denied, "d/../a.txt", denied, denied]
    assert json.loads(told.splitlines()[0]) == wanted
