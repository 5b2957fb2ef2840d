"""The names of tools and arguments that agents learned elsewhere, asked of the whole product."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import ElicitResult

from tests.tools.conftest import Open
from tests.tools.known_calls import CALLS
from tools.conversion.arguments.known_names import NAMES, NEAREST, translated
from tools.core.toolset import folded_name

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


def _lay_out(root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_file():
            path.unlink()
    for folder in ("src", "sub"):
        (root / folder).mkdir(exist_ok=True)
    (root / "a.txt").write_text(TEXT)
    (root / "b.txt").write_text("one\ntwo\none\n")
    (root / "src" / "auth.py").write_text("def login(user):\n    # needle\n    return user\n")


@pytest.mark.slow
@pytest.mark.parametrize("agent", sorted({agent for agent, *_ in CALLS}))
async def test_what_models_of_other_agents_call_is_understood(agent: str, open_crib: Open) -> None:
    async with open_crib(system__sandbox="off", surface="lean") as crib:
        for _, name, arguments, wanted in (call for call in CALLS if call[0] == agent):
            _lay_out(crib.root)
            result = await crib.client.call_tool(name, arguments)
            read = result.model_dump_json() if result.structured_content else ""
            read += "".join(getattr(each, "text", "") for each in result.content)
            read += "".join(path.read_text() for path in crib.root.rglob("*") if path.is_file())
            assert not result.is_error, (name, arguments, read)
            assert wanted in read, (name, arguments)


@pytest.mark.parametrize("row", NAMES, ids=lambda row: f"{row.name}-{row.tool}")
def test_every_known_name_has_a_call_in_the_table(row: Any) -> None:
    called = [
        arguments for _, name, arguments, _ in CALLS if folded_name(name) == folded_name(row.name)
    ]
    assert any(map(row.means, called)) or row.name in UNTRIED


UNTRIED = {
    "fetch",  # needs a public page
    "web_search",  # leaves the machine
    "read_process_output",  # needs a running job
    "force_terminate",
    "write_stdin",
    "read_bash",
    "stop_bash",
    "webfetch",  # needs a public page
}


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("Grep", {"pattern": "a", "multiline": True}, "multiline is True"),
        ("exec_command", {"cmd": "ls", "tty": True}, "tty is True"),
        ("write_stdin", {"session_id": 1, "chars": "y\n"}, "chars is 'y\\n'"),
        ("bash", {"command": "ls", "mode": "async", "detach": True}, "detach is True"),
        (
            "Bash",
            {"command": "ls", "dangerouslyDisableSandbox": True},
            "dangerouslyDisableSandbox is True",
        ),
        ("grep", {"pattern": "a", "paths": ["a", "b"]}, "paths has more than one"),
        ("replace_content", {"needle": "a", "repl": "b", "mode": "regex"}, "mode is 'regex'"),
        ("webfetch", {"url": "https://example.org", "format": "html"}, "format is 'html'"),
        ("exec_command", {"cmd": "ls", "shell": "/bin/fish"}, "commands run in bash"),
        ("todo_write", {"merge": True, "todos": []}, "merge is True"),
        ("edit_block", {"expected_replacements": 2}, "expected_replacements is 2"),
        ("write_file", {"path": "a", "content": "", "mode": "append"}, "mode is 'append'"),
        ("codebase_search", {"query": "a", "target_directories": ["a", "b"]}, "more than one"),
        ("move_file", {"source": "a"}, "lacks 'destination'"),
        ("move_file", {"source": "a", "destination": "b\n*** Delete File: c"}, "destination is"),
        ("directory_tree", {"path": ".", "excludePatterns": ["x"]}, "excludePatterns is ['x']"),
        ("update_plan", {"plan": "all"}, "no faithful meaning"),
        ("fetch", {"url": "https://a", "raw": True}, "raw is True"),
    ],
)
async def test_what_has_no_meaning_here_is_refused(
    name: str, arguments: dict[str, Any], problem: str, open_shared: Open
) -> None:
    async with open_shared() as crib:
        kind, text = await crib.failure(name, **arguments)
        assert (kind, problem in text) == ("invalid_arguments", True), text


@pytest.mark.boundary
@pytest.mark.parametrize(
    ("rule", "name", "arguments"),
    [
        ("bash(touch *)", "exec_command", {"cmd": "touch x"}),
        ("exec_command(touch *)", "bash", {"command": "touch x"}),
        ("write_file(x)", "move_file", {"source": "a", "destination": "x"}),
        ("edit_file(a)", "delete_file", {"target_file": "a"}),
        ("read_file(a)", "read_multiple_files", {"paths": ["a"]}),
        ("multi_edit(a)", "edit_file", {"path": "a", "edits": [{"oldText": "a", "newText": "b"}]}),
        ("edit_file", "edit_file", {"path": "a", "edits": [{"oldText": "a", "newText": "b"}]}),
        (
            "edit_file(a)",
            "multi_edit",
            {"file_path": "a", "edits": [{"old_text": "a", "new_text": "b"}]},
        ),
    ],
)
async def test_no_name_leads_around_a_rule(
    rule: str, name: str, arguments: dict[str, Any], open_crib: Open
) -> None:
    async with open_crib(policy__deny=[rule], surface="lean", system__sandbox="off") as crib:
        (crib.root / "a").write_text("a")
        assert "permission_denied" in await crib.text(name, **arguments)
        assert [each.name for each in crib.root.iterdir()] == ["a"]
        assert (crib.root / "a").read_text() == "a"


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("get_file_info", "list_directory"),
        ("interact_with_process", "bash"),
        ("list_memories", "browse_memory"),
        ("browser_navigate", "read_web_page"),
        ("exit_plan_mode", "update_plan"),
        ("raed_file", "read_file"),
    ],
)
async def test_an_unknown_name_is_answered_with_the_tools_that_come_closest(
    name: str, closest: str, open_shared: Open
) -> None:
    async with open_shared() as crib:
        kind, text = await crib.failure(name)
        assert (kind, closest in text.partition("Did you mean: ")[2]) == ("unknown_tool", True)


async def test_the_closest_tools_are_there_and_their_names_have_no_other_meaning(
    open_shared: Open,
) -> None:
    async with open_shared() as crib:
        listed = {each.name for each in (await crib.client.list_tools()).tools}
        assert {tool for tools in NEAREST.values() for tool in tools} <= listed
        assert {row.tool for row in NAMES} <= listed
        assert not [name for name in NEAREST if translated(name, {})]


async def test_a_name_of_ours_means_something_else_only_with_an_argument_that_is_not_ours(
    open_shared: Open,
) -> None:
    async with open_shared() as crib:
        tools = (await crib.client.list_tools()).tools
        ours = {each.name: each.input_schema["properties"].keys() for each in tools}
        rows = [row for row in NAMES if row.name in ours]
        assert {row.name for row in rows} >= {"read_file", "write_file"}
        assert [row.name for row in rows if not row.needs] == []
        assert [row.name for row in rows if not ours[row.name].isdisjoint(row.needs)] == []


MINE = '''def move_file(source: str, destination: str) -> str:
    """Moves."""
    return "mine"
'''


async def test_a_tool_of_the_user_under_a_known_name_gets_its_own_arguments(
    open_crib: Open, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    async with open_crib(functions__paths=[tmp_path / "mine.py"]) as crib:
        await crib.client.list_tools()  # waits for function files
        assert await crib.text("move_file", source="a", destination="b") == "mine"


@pytest.mark.boundary
@pytest.mark.parametrize(
    ("denied", "tool", "arguments"),
    [
        ("search_files", "search_files", {"path": ".", "pattern": "*.py"}),
        ("search_files", "search_files", {"path": ".", "regex": "needle"}),
        ("SearchFiles", "SearchFiles", {"path": ".", "regex": "needle"}),
        ("edit_file", "edit_file", {"path": "a.py", "edits": [{"oldText": "n", "newText": "m"}]}),
    ],
)
async def test_a_name_that_is_denied_is_denied_for_calls_that_mean_another_tool(
    open_crib: Open, denied: str, tool: str, arguments: dict[str, Any]
) -> None:
    async with open_crib(policy__deny=[denied]) as crib:
        (crib.root / "a.py").write_text("needle\n")
        kind, _ = await crib.failure(tool, **arguments)
        assert kind == "permission_denied"
        if tool != "edit_file":
            assert "a.py" in str(await crib.call("grep", pattern="needle"))
            assert "a.py" in str(await crib.call("glob", pattern="*.py"))


@pytest.mark.boundary
async def test_a_profile_that_denies_a_name_denies_calls_that_mean_another_tool(
    open_crib: Open,
) -> None:
    profiles = {"narrow": {"clients": ["*"], "deny": ["search_files"]}}
    async with open_crib(profiles=profiles) as crib:
        (crib.root / "a.py").write_text("needle\n")
        kind, _ = await crib.failure("search_files", path=".", regex="needle")
        assert kind == "permission_denied"
        assert "a.py" in str(await crib.call("grep", pattern="needle"))


@pytest.mark.boundary
async def test_a_name_that_asks_asks_about_calls_that_mean_another_tool(open_crib: Open) -> None:
    asked = list[str]()

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        first = len(asked) == 1
        return ElicitResult(
            action="decline" if first else "accept", content={"answer": "for_a_while"}
        )

    async with (
        open_crib(policy__ask=["search_files"], surface="lean") as crib,
        Client(crib.app.server, elicitation_callback=answer) as client,
    ):
        (crib.root / "a.py").write_text("needle\n")
        arguments = {"path": ".", "regex": "needle"}
        calls = [await client.call_tool("search_files", arguments) for _ in range(3)]
        calls.append(await client.call_tool("grep", {"pattern": "needle"}))
    assert [call.is_error for call in calls] == [True, False, False, False]
    assert len(asked) == 2
    assert "asks about search_files, the name that the call was sent under" in asked[0]
