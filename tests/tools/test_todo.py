from typing import Any

import pytest

from storage.models import Identity
from tests.tools.conftest import Open
from tools.core.context import Origin, RequestContext

THREE: list[dict[str, Any]] = [
    {"content": "Write the tests", "status": "completed"},
    {
        "content": "Write the docs",
        "status": "in_progress",
        "active_form": "Writing\nthe docs",
        "id": "docs",
    },
    {"content": "Ship it", "status": "pending"},
]
CHECKLIST = """To do (1 done, 1 in progress, 1 pending):
[x] 1. Write the tests
[>] docs. Writing the docs
[ ] 2. Ship it"""


async def test_a_list_is_kept_for_the_session(open_crib: Open, mode: str) -> None:
    async with open_crib(mode) as crib:
        assert (await crib.call("read_todos"))["todos"] == []
        written = await crib.call("todo", todos=THREE)
        assert [each["id"] for each in written["todos"]] == ["1", "docs", "2"]
        assert written["counts"] == {"pending": 1, "in_progress": 1, "completed": 1}
        assert await crib.call("read_todos") == written
        assert await crib.text("read_todos") == CHECKLIST


async def test_todo_write_is_another_name_of_todo(crib: Any) -> None:
    assert await crib.text("todo_write", todos=THREE) == CHECKLIST
    assert await crib.text("todo", todos=[]) == "Nothing on the list of this session."
    assert await crib.text("read_todos") == "Nothing on the list of this session."


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"content": ""}, "content"),
        ({"content": " \n\t"}, "content"),
        ({"content": "x" * 1_001}, "content"),
        ({"content": 7}, "content"),
        ({"active_form": "x" * 1_001}, "active_form"),
        ({"status": "done"}, "status"),
        ({"status": None}, "status"),
        ({"id": ""}, "id"),
        ({"id": "a b"}, "id"),
        ({"id": "x" * 65}, "id"),
        ({"id": "a\u202eb"}, "id"),
        ({"priority": 1}, "priority"),
    ],
)
async def test_what_is_no_todo_is_refused(crib: Any, wrong: dict[str, Any], named: str) -> None:
    await crib.call("todo", todos=THREE)
    error_type, told = await crib.failure("todo", todos=[*THREE, THREE[2] | wrong])
    assert error_type == "invalid_arguments"
    assert f"todos[3].{named}" in told
    assert await crib.text("read_todos") == CHECKLIST


async def test_an_id_stands_for_one_todo(crib: Any) -> None:
    error_type, told = await crib.failure("todo", todos=[each | {"id": "same"} for each in THREE])
    assert error_type == "invalid_arguments"
    assert "'same'" in told
    assert (await crib.call("read_todos"))["todos"] == []


async def test_a_list_has_an_end(crib: Any) -> None:
    most = [{"content": f"Number {number}", "status": "pending"} for number in range(201)]
    assert (await crib.failure("todo", todos=most))[0] == "invalid_arguments"
    assert len((await crib.call("todo", todos=most[1:]))["todos"]) == 200


async def test_a_list_is_seen_by_its_user_and_its_session_only(crib: Any) -> None:
    mine = RequestContext(Origin(Identity("ann"), session_id="monday"))
    kept = await crib.app.manager.execute("todo", {"todos": THREE}, mine)
    others = [
        RequestContext(Origin(Identity("bob"), session_id="monday")),
        RequestContext(Origin(Identity("ann"), session_id="tuesday")),
        RequestContext(Origin(Identity("ann"))),
    ]
    for other in others:
        assert not (await crib.app.manager.execute("todo", {"todos": []}, other)).is_error
        read = await crib.app.manager.execute("read_todos", {}, other)
        assert read.structured["todos"] == []
    assert (await crib.app.manager.execute("read_todos", {}, mine)).text == kept.text
