"""Every call leaves an entry, whatever came of it; recording fails and delays no call."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tools
from storage.library import Library
from storage.models import ContextType, Entry, Identity, NewContext
from tools.core.audit.recording import Recording
from tools.core.calling.call import CANCELLED
from tools.core.client import AnswersAwaitedError
from tools.core.context import Origin, RequestContext
from tools.core.discovery import discover
from tools.core.errors import NotFoundError
from tools.core.manager import SandboxToolManager
from tools.core.registry import ToolRegistry
from tools.core.spec import Effect, ToolScope, tool
from tools.sandbox.files.sandbox import Sandbox

READ = {Effect.READ}
ANN = Identity("ann")
ASKING = RequestContext(Origin(ANN, session_id="s1", client="Cursor"))
BOUND = RequestContext(Origin(ANN, bound=True, session_id="s1"))

Recorded = Callable[..., SandboxToolManager]


@pytest.fixture
def recorded(toolbox: Callable[..., SandboxToolManager], library: Library) -> Recorded:
    """Makes a manager of some functions that records their calls."""

    def make(*functions: Callable[..., Any], source: str = "function") -> SandboxToolManager:
        return toolbox(*functions, recording=Recording(library.recorder), source=source)

    return make


@pytest.fixture
def builtin(tmp_path: Any, library: Library) -> SandboxToolManager:
    """The project's own tools, recorded."""
    registry = ToolRegistry()
    discover(registry, tools)
    return SandboxToolManager(
        registry,
        sandbox=Sandbox(tmp_path),
        library=library,
        permissions=None,
        recording=Recording(library.recorder),
    )


@tool(scope=ToolScope.SANDBOXED, effects=READ, aliases=("peek",))
def look(path: str, times: int = 1) -> str:
    """Looks at a place."""
    if path == "nowhere":
        raise NotFoundError("There is no such place.", next_actions=["Look elsewhere."])
    return f"{path} is {times} times there"


@tool(scope=ToolScope.CONTEXT, effects=READ)
def whose(context: RequestContext, user_id: str | None = None, agent_id: str | None = None) -> str:
    """Says whose context it is."""
    return context.shelf(user_id=user_id, agent_id=agent_id).identity.user_id


@tool(scope=ToolScope.SANDBOXED, effects={Effect.WRITE}, timeout=0.05)
async def wait() -> None:
    """Waits for ever."""
    await anyio.sleep_forever()


def entries(library: Library, identity: Identity = ANN) -> list[Entry]:
    """Oldest first."""
    return library.entries.recent(identity, None, 1_000)[::-1]


def running(answer: dict[str, Any]) -> Callable[..., Any]:
    """Makes a tool that runs something and answers so."""

    @tool(scope=ToolScope.SANDBOXED, effects={Effect.EXECUTE})
    def launch(command: str) -> dict[str, Any]:
        """Launches a command."""
        return {**answer, "said": command}

    return launch


@pytest.mark.parametrize(
    "answer",
    [
        {"exit_code": 3, "state": "exited"},
        {"exit_code": -9},
        {"state": "timed_out"},
        {"timed_out": True, "exit_code": None},
        {"state": "failed"},
        {"status": "lost"},
        {"success": False},
        {"result": {"returncode": 1}},
    ],
)
async def test_what_ran_and_failed_is_a_failure_to_memory(
    recorded: Recorded, library: Library, answer: dict[str, Any]
) -> None:
    manager = recorded(running(answer))
    for _ in range(8):
        await manager.execute("launch", {"command": "make"}, ASKING)
    assert {(each.outcome, each.importance) for each in entries(library)} == {("tool_failed", 2.0)}


@pytest.mark.parametrize(
    "answer",
    [
        {"exit_code": 0, "state": "exited"},
        {"exit_code": None, "state": "running"},
        {"ok": True, "status": 200, "state": ["failed"]},
    ],
)
async def test_what_ran_well_or_runs_is_none(
    recorded: Recorded, library: Library, answer: dict[str, Any]
) -> None:
    await recorded(running(answer)).execute("launch", {"command": "make"}, ASKING)
    assert [(each.outcome, each.importance) for each in entries(library)] == [("ok", 4.0)]


async def test_of_a_function_that_stores_nothing_is_kept_that_it_was_to_store(
    recorded: Recorded, library: Library
) -> None:
    @tool(scope=ToolScope.CONTEXT, effects={Effect.WRITE})
    def keep(title: str) -> None:
        """Keeps a note."""

    manager = recorded(keep, source="function:/crafts.py")
    await manager.execute("keep", {"title": "the plane is blunt"}, ASKING)
    (entry,) = entries(library)
    assert (entry.action, entry.outcome) == ("keep", "ok")
    assert (entry.target, entry.arguments, entry.said) == ("", {}, "")


async def test_a_call_tells_what_was_done_with_what_and_what_came_of_it(
    recorded: Recorded, library: Library
) -> None:
    await recorded(look).execute("peek", {"path": "harbour", "times": 3}, ASKING)
    (entry,) = entries(library)
    assert (entry.action, entry.target, entry.kind) == ("look", "harbour", "call")
    assert entry.arguments == {"path": "harbour", "times": 3}
    assert (entry.outcome, entry.session_id, entry.client) == ("ok", "s1", "Cursor")
    assert entry.said == "harbour is 3 times there"
    assert not entry.is_recall
    assert entry.milliseconds > 0
    assert entry.importance == 2.0


@pytest.mark.parametrize(
    ("name", "arguments", "outcome"),
    [
        ("look", {"path": "nowhere"}, "not_found"),
        ("look", {"path": 1, "times": "x"}, "invalid_arguments"),
        ("look", None, "invalid_arguments"),
        ("lok", {"path": "harbour"}, "unknown_tool"),
        ("wait", {}, "timeout"),
    ],
)
async def test_every_failure_is_recorded(
    recorded: Recorded, library: Library, name: str, arguments: Any, outcome: str
) -> None:
    result = await recorded(look, wait).execute(name, arguments, ASKING)
    (entry,) = entries(library)
    assert (entry.action, entry.outcome) == (name, outcome)
    assert entry.said.startswith(outcome)
    assert result.is_error


async def test_what_no_scope_allows_is_recorded(recorded: Recorded, library: Library) -> None:
    @tool(scope=ToolScope.SYSTEM, effects={Effect.EXECUTE})
    def bash(command: str) -> str:
        """Runs a command."""
        return command

    await recorded(bash).execute("bash", {"command": "ls"}, ASKING)
    assert [(each.outcome, each.target) for each in entries(library)] == [
        ("permission_denied", "ls")
    ]


async def test_a_crash_is_recorded_as_what_the_caller_is_told(
    recorded: Recorded, library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    def crash() -> None:
        """Crashes."""
        raise ZeroDivisionError("zqinside")

    with caplog.at_level(logging.CRITICAL, "toolcrib"):
        await recorded(crash).execute("crash", {}, ASKING)
        await recorded(crash, source="builtin").execute("crash", {}, ASKING)
    theirs, ours = entries(library)
    assert (theirs.outcome, theirs.said) == (
        "tool_failed",
        "tool_failed: ZeroDivisionError: zqinside",
    )
    assert ours.outcome == "internal"
    assert "zqinside" not in ours.said


async def test_a_cancelled_call_is_recorded(recorded: Recorded, library: Library) -> None:
    begun = anyio.Event()

    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    async def linger(path: str) -> None:
        """Stays."""
        begun.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(recorded(linger).execute, "linger", {"path": "quay"}, ASKING)
        await begun.wait()
        group.cancel_scope.cancel()
    (entry,) = entries(library)
    assert (entry.outcome, entry.target, entry.said) == (CANCELLED, "quay", "")


async def test_a_nested_call_is_recorded_and_what_only_passes_it_on_is_not(
    builtin: SandboxToolManager, library: Library
) -> None:
    inner = {"name": "search_tools", "arguments": {"query": "kites"}}
    await builtin.execute("call_tool", inner, ASKING)
    (entry,) = entries(library)
    assert (entry.action, entry.target, entry.session_id) == ("search_tools", "kites", "s1")
    assert entry.is_recall


async def test_a_call_without_a_session_has_one_of_its_own(
    recorded: Recorded, library: Library
) -> None:
    for _ in range(2):
        await recorded(look).execute("look", {"path": "a"}, RequestContext(Origin(ANN)))
    assert len({entry.session_id for entry in entries(library)} - {""}) == 2


@pytest.mark.parametrize(
    ("context", "named", "owner"),
    [
        (ASKING, {}, ANN),
        (ASKING, {"user_id": "bob"}, Identity("bob")),
        (ASKING, {"agent_id": "coder"}, Identity("ann", agent_id="coder")),
        (ASKING, {"user_id": 7}, ANN),
        (ASKING, {"user_id": ""}, ANN),
        (ASKING, {"user_id": "b" * 300}, ANN),
        (ASKING, {"user_id": ["bob"]}, ANN),
        (BOUND, {"user_id": "bob"}, ANN),
        (BOUND, {"agent_id": "coder"}, Identity("ann", agent_id="coder")),
    ],
)
async def test_a_call_is_remembered_by_whom_it_was_about(
    recorded: Recorded,
    library: Library,
    context: RequestContext,
    named: Mapping[str, Any],
    owner: Identity,
) -> None:
    await recorded(whose).execute("whose", named, context)
    (entry,) = entries(library, owner)
    assert (entry.agent_id, entry.device_id) == (owner.agent_id, owner.device_id)
    assert "user_id" not in entry.arguments
    if owner.user_id == "ann":
        assert entries(library, Identity("bob")) == []


async def test_a_tool_that_takes_no_identity_gives_none(
    recorded: Recorded, library: Library
) -> None:
    await recorded(look).execute("look", {"path": "a", "user_id": "bob"}, ASKING)
    assert len(entries(library)) == 1


async def test_secrets_are_in_no_field(recorded: Recorded, library: Library) -> None:
    secret = "zqhunter2zqhunter2"  # noqa: S105  # it opens nothing
    arguments = {"path": f"https://ann:{secret}@host/", "password": secret, "user_id": secret}
    await recorded(look).execute("look", arguments, ASKING)
    await recorded(look).execute("look", {"path": f"Authorization: Bearer {secret}"}, ASKING)
    told = [f"{each.target} {json.dumps(dict(each.arguments))}" for each in entries(library)]
    assert len(told) == 2
    assert secret not in str(told)
    assert all(secret not in entry.said for entry in entries(library)[1:])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arguments=st.dictionaries(
        st.sampled_from(["path", "times", "user_id"]) | st.text(st.characters()),
        st.recursive(
            st.none() | st.integers() | st.floats() | st.text(st.characters()),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
            max_leaves=10,
        ),
    )
)
async def test_any_call_is_recorded_within_bounds(
    recorded: Recorded, library: Library, arguments: dict[str, Any]
) -> None:
    before = library.entries.count(ANN)
    await recorded(look).execute("look", arguments, ASKING)
    assert library.entries.count(ANN) == before + 1
    (entry,) = library.entries.recent(ANN, "s1", 1)
    size = len(json.dumps(dict(entry.arguments), ensure_ascii=False))
    assert len(entry.target) + size + len(entry.said) < 9_000


async def test_a_record_that_refuses_changes_no_answer(
    recorded: Recorded, library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    with library.database.write() as connection:
        connection.execute("ALTER TABLE entries RENAME TO away")
    with caplog.at_level(logging.WARNING, "toolcrib"):
        for _ in range(3):
            result = await recorded(look).execute("look", {"path": "harbour"}, ASKING)
            assert result.text == "harbour is 1 times there"
    assert len(caplog.records) == 1


async def test_a_record_that_is_locked_holds_up_no_answer_and_is_written_later(
    recorded: Recorded, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.core.audit.recording.PATIENCE", 0.01)
    with library.database.write():
        result = await recorded(look).execute("look", {"path": "harbour"}, ASKING)
        assert not result.is_error
        assert entries(library) == []
    library.recorder.close()  # which waits for it
    assert [entry.target for entry in entries(library)] == ["harbour"]


async def test_a_closed_library_changes_no_answer(recorded: Recorded, library: Library) -> None:
    library.recorder.close()
    result = await recorded(look).execute("look", {"path": "harbour"}, ASKING)
    assert not result.is_error


async def test_an_unrecorded_path_records_nothing(recorded: Recorded, library: Library) -> None:
    manager = recorded(look)
    await manager.unrecorded().execute("look", {"path": "a"}, ASKING)
    assert entries(library) == []
    await manager.execute("look", {"path": "b"}, ASKING)
    assert [entry.target for entry in entries(library)] == ["b"]


async def test_importance_follows_the_rule(recorded: Recorded, library: Library) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects={Effect.WRITE})
    def put(path: str) -> None:
        """Puts."""

    @tool(scope=ToolScope.SANDBOXED, effects={Effect.EXECUTE}, destructive=True)
    def run(command: str) -> None:
        """Runs."""
        if command == "fail":
            raise NotFoundError("no")

    manager = recorded(look, put, run)
    for name, arguments in [
        ("look", {"path": "a"}),
        ("put", {"path": "b"}),
        ("run", {"command": "c"}),
        ("run", {"command": "fail"}),
        ("run", {"command": "c"}),
    ]:
        await manager.execute(name, arguments, ASKING)
    assert [entry.importance for entry in entries(library)] == [2.0, 4.0, 5.0, 2.0, 6.0]


async def test_a_call_is_linked_to_what_it_stored_and_found(
    builtin: SandboxToolManager, library: Library
) -> None:
    content = "zqharbour of Genoa"
    added = await builtin.execute("add_knowledge", {"content": content}, ASKING)
    await builtin.execute("query", {"query": "zqharbour"}, ASKING)
    stored, asked = entries(library)
    assert stored.arguments == {"content": content}
    assert (stored.said, stored.is_recall) == ("", False)
    assert (asked.target, asked.said, asked.is_recall) == ("zqharbour", "", True)
    await builtin.execute("forget", {"ids": [added.structured["id"]], "dry_run": False}, ASKING)
    *blank, forgot = entries(library)
    assert [entry.tells for entry in blank] == [False, False]
    assert (forgot.action, forgot.outcome, forgot.tells) == ("forget", "ok", False)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("save_profile", {"summary": "zqsummary", "facts": {"boat": "zqboat"}}),
        ("save_entity", {"entity_name": "Zelda", "summary": "zqsummary"}),
        ("save_profile", {"summary": "zqsummary", "metadata": {"about": "0" * 32}}),
        ("add_knowledge", {"content": "zqtext", "importance": 99}),
        ("add_knowledge", {"title": "zqtitle", "content": ["zqtext"]}),
        ("add_knowledge", {"content": "tea", "importance": "zqtext"}),
        ("add_document", {"path": "gone.md", "title": "zqtitle"}),
        ("relate_entities", {"source": "zqann", "relation": "knows", "target": "zqbo"}),
        ("keep_memory", {"content": "zqtext"}),
        ("delete_document", {"raw_type": "text", "raw_id": "zqname"}),
        ("delete_entity", {"entity_name": "zqname"}),
    ],
)
async def test_what_could_not_be_untold_is_not_recorded(
    builtin: SandboxToolManager, library: Library, name: str, arguments: dict[str, Any]
) -> None:
    await builtin.execute(name, arguments, ASKING)
    (entry,) = entries(library)
    assert entry.action == name
    assert "zq" not in f"{entry.target} {entry.arguments} {entry.said}"


async def test_a_file_that_could_not_be_added_is_named(
    builtin: SandboxToolManager, library: Library
) -> None:
    await builtin.execute("add_document", {"path": "gone.md", "title": "Gone"}, ASKING)
    (entry,) = entries(library)
    assert (entry.target, entry.outcome) == ("gone.md", "not_found")


async def test_what_is_kept_of_people_is_gone_from_the_disk_with_them(
    builtin: SandboxToolManager, library: Library
) -> None:
    person = {"entity_name": "Zqzelda", "summary": "zqsummary"}
    for name, arguments in [
        ("save_entity", person),
        ("retrieve_profile_context", {"operation": "find_entity", "entity_name": "zqzelda"}),
        ("profile_entity_tool", {"operation": "find_exact_entity", "entity_name": "ZQZELDA"}),
        ("delete_entity", {"entity_name": "Zqzelda"}),
    ]:
        result = await builtin.execute(name, arguments, ASKING)
        assert not result.is_error, result.text
    assert [entry.target for entry in entries(library)] == [""] * 4
    assert library.database.fold_log()
    files = [path for path in library.directory.rglob("*") if path.is_file()]
    assert [path.name for path in files if b"zqzelda" in path.read_bytes().lower()] == []


async def test_a_memory_is_used_when_it_is_found_not_when_it_is_stored(
    builtin: SandboxToolManager, library: Library
) -> None:
    library.shelf(ANN).add(
        NewContext(
            context_type=ContextType.KNOWLEDGE, title="", text="The kettle leaks.", memory_layer=2
        )
    )
    uses = []
    for _ in range(3):
        with library.database.read() as connection:
            uses.append(connection.execute("SELECT uses FROM memories").fetchone()[0])
        found = await builtin.execute("retrieve_knowledge_context", {"query": "kettle"}, ASKING)
        assert found.structured["hits"]
    assert uses == [0, 1, 2]


async def test_a_message_is_recorded(library: Library) -> None:
    await Recording(library.recorder).hear(
        ASKING.origin, "prompt:remember", "token=zq123456 and tea"
    )
    (entry,) = entries(library)
    assert (entry.kind, entry.action, entry.importance) == ("message", "prompt:remember", 5.0)
    assert entry.said == "token=[redacted] and tea"
    assert (entry.session_id, entry.client) == ("s1", "Cursor")


async def test_a_call_that_comes_again_with_answers_is_recorded_when_it_ends(
    recorded: Recorded, library: Library
) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    def ask() -> None:
        """Asks the client's model."""
        raise AnswersAwaitedError("The client has to ask first.")

    await recorded(ask).execute("ask", {}, ASKING)
    assert entries(library) == []
