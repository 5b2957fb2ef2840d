"""The names of tools and arguments that agents learned elsewhere, asked of the whole product."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.tools.conftest import Open

TEXT = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("Read", {"file_path": "a.txt", "offset": 3, "limit": 2}, "line 3\nline 4\n"),
        ("Read", {"file_path": "a.txt", "offset": 9}, "line 9\nline 10\n"),
        ("Read", {"file_path": "a.txt", "offset": -2, "limit": 5}, "line 9\nline 10\n"),
        ("read_file", {"absolute_path": "a.txt", "offset": 0, "limit": 1}, "line 1\n"),
        ("read_file", {"filename": "a.txt", "offset": None, "limit": None}, TEXT),
        ("read_text_file", {"path": "a.txt", "head": 1}, "line 1\n"),
        ("read_text_file", {"path": "a.txt", "tail": 1}, "line 10\n"),
        ("view", {"path": "a.txt", "view_range": [9, -1]}, "line 9\nline 10\n"),
    ],
)
async def test_a_file_is_read_as_other_agents_ask(
    tool: str, arguments: dict[str, Any], told: str, open_shared: Open
) -> None:
    async with open_shared() as crib:
        (crib.root / "a.txt").write_text(TEXT)
        assert (await crib.call(tool, **arguments))["content"] == told


@pytest.mark.parametrize(
    ("tool", "arguments", "after"),
    [
        ("Edit", {"file_path": "a", "old_string": "two", "new_string": "2"}, "one\n2\none\n"),
        (
            "Edit",
            {"file_path": "a", "old_string": "one", "new_string": "1", "replace_all": True},
            "1\ntwo\n1\n",
        ),
        (
            "replace",
            {"file_path": "a", "old_string": "two", "new_string": "2", "instruction": "Count"},
            "one\n2\none\n",
        ),
        ("str_replace", {"path": "a", "old_str": "two", "new_str": "2"}, "one\n2\none\n"),
        ("edit", {"filePath": "a", "oldString": "two", "newString": "2"}, "one\n2\none\n"),
        ("Write", {"file_path": "a", "content": "new"}, "new"),
        ("create", {"path": "a", "file_text": "new"}, "new"),
        ("insert", {"path": "a", "insert_line": 0, "insert_text": "zero"}, "zero\none\ntwo\none\n"),
        ("insert", {"path": "a", "insert_line": 3, "insert_text": "end"}, "one\ntwo\none\nend\n"),
    ],
)
async def test_a_file_is_changed_as_other_agents_ask(
    tool: str, arguments: dict[str, Any], after: str, open_shared: Open
) -> None:
    async with open_shared() as crib:
        (crib.root / "a").write_text("one\ntwo\none\n")
        await crib.call(tool, **arguments)
        assert (crib.root / "a").read_text() == after


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("LS", {"path": "."}, "found.py"),
        ("Glob", {"pattern": "*.py", "path": None}, "found.py"),
        ("Grep", {"pattern": "NEEDLE", "glob": "*.py", "-i": True, "-C": 1}, "2: needle"),
        ("Grep", {"pattern": "needle", "output_mode": "content", "-n": True}, "2: needle"),
        ("search_file_content", {"pattern": "needle", "include": "*.py"}, "2: needle"),
        ("Bash", {"command": "echo $((6*7))", "timeout": 60000, "description": "Sums"}, "42"),
        ("run_shell_command", {"command": "pwd", "directory": "sub"}, "/root/sub"),
        ("shell", {"command": ["bash", "-lc", "pwd"], "workdir": "sub"}, "/root/sub"),
        (
            "TodoWrite",
            {"todos": [{"content": "Go", "status": "in_progress", "activeForm": "Going"}]},
            "Going",
        ),
        ("save_memory", {"fact": "The crib is locked at night"}, "emember"),
        ("delegate_task", {"task": "Paint the wall"}, "No agent is configured"),
        ("delegate_to_agent", {"agent": "ann", "prompt": "Paint"}, "No agent is configured"),
        ("create_tool", {"name": "x", "code": "import x"}, "x is not in the standard library"),
        ("remove_tool", {"name": "x"}, "no created tool is called 'x'"),
        ("get_task", {"id": "x"}, "You have no task 'x'"),
    ],
)
async def test_other_tools_are_called_as_other_agents_call_them(
    tool: str, arguments: dict[str, Any], told: str, open_shared: Open
) -> None:
    async with open_shared(system__sandbox="off") as crib:
        (crib.root / "found.py").write_text("x\nneedle\ny\n")
        (crib.root / "sub").mkdir(exist_ok=True)
        assert told in await crib.text(tool, **arguments)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"file_path": "a", "path": "b"}, "`path` means `file_path`, which has a different value"),
        ({"path": "a", "filename": "b"}, "`file_path` is missing"),
        ({"file_path": "a", "offset": "x"}, "`offset` is 'x', which gives no `ranges`"),
        ({"file_path": "a", "head": 1, "tail": 1}, "`tail` means `ranges`"),
    ],
)
async def test_names_that_contradict_each_other_are_refused(
    arguments: dict[str, Any], told: str, open_shared: Open
) -> None:
    async with open_shared() as crib:
        kind, text = await crib.failure("read_file", **arguments)
        assert kind == "invalid_arguments"
        assert told in text


async def test_a_timeout_that_may_be_seconds_or_milliseconds_is_refused(open_shared: Open) -> None:
    async with open_shared() as crib:
        kind, text = await crib.failure("Bash", command="true", timeout=3000)
        assert (kind, "`timeout_seconds`" in text) == ("invalid_arguments", True)


async def test_no_other_name_is_listed(open_shared: Open) -> None:
    async with open_shared(surface="full") as crib:
        listed = (await crib.client.list_tools()).model_dump_json()
        assert '"old_text"' in listed
        assert not [name for name in ("old_string", "Edit", "activeForm") if f'"{name}"' in listed]


@pytest.mark.boundary
async def test_rules_and_the_audit_log_know_a_call_by_its_own_names(open_crib: Open) -> None:
    async with open_crib(policy__deny=["write_file(secret/**)", "Edit(b)"]) as crib:
        (crib.root / "b").write_text("b")
        for tool, arguments in (
            ("Write", {"path": "secret/a", "content": "x"}),
            ("edit_file", {"path": "b", "old_string": "b", "new_string": "c"}),
        ):
            kind, _ = await crib.failure(tool, **arguments)
            assert kind == "permission_denied"
        path = crib.app.settings.audit_file
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [(each["tool"], each["arguments"]["file_path"]) for each in lines] == [
            ("write_file", "secret/a"),
            ("edit_file", "b"),
        ]
