import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.models import Identity
from tools.core.calling.call import MOST_DEPTH, ResultLimits
from tools.core.calling.fitting import Fitting
from tools.core.calling.nested import ToolCall
from tools.core.context import Link, Origin, RequestContext
from tools.core.errors import CallFailedError, NotFoundError
from tools.core.manager import SandboxToolManager
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope, tool
from tools.core.toolset import ToolSet

READ = {Effect.READ}
WRITE = {Effect.WRITE}
CONTEXT = RequestContext()

Toolbox = Callable[..., SandboxToolManager]


@tool(scope=ToolScope.SANDBOXED, effects=READ, aliases=("twice",))
def double(number: int) -> int:
    """Doubles."""
    return number * 2


@tool(scope=ToolScope.SANDBOXED, effects=READ)
def repeat(text: str, limit: int) -> str:
    """Repeats a line."""
    return f"{text}\n" * limit


def _error_type(result: ToolResult) -> str:
    assert result.is_error
    return str(result.structured["error_type"])


@pytest.mark.parametrize("name", ["double", "twice"])
async def test_a_tool_runs_by_its_name_and_by_its_alias(toolbox: Toolbox, name: str) -> None:
    result = await toolbox(double).execute(name, {"number": 21}, CONTEXT)
    assert not result.is_error
    assert 42 in result.structured.values()


async def test_an_unknown_tool_is_answered_with_what_was_meant(toolbox: Toolbox) -> None:
    result = await toolbox(double).execute("doubel", {}, CONTEXT)
    assert _error_type(result) == "unknown_tool"
    assert result.structured["suggestions"] == ["double"]
    assert "double" in result.text


@pytest.mark.parametrize("wrong", ["x", None, [], {}, 1.5, {"number": 1}])
async def test_an_argument_of_the_wrong_type_is_named(toolbox: Toolbox, wrong: Any) -> None:
    result = await toolbox(double).execute("double", {"number": wrong}, CONTEXT)
    assert _error_type(result) == "invalid_arguments"
    assert "number" in result.structured["message"]


@pytest.mark.parametrize("wrong", [None, [], "number", 7])
async def test_arguments_that_are_no_object_are_refused(toolbox: Toolbox, wrong: Any) -> None:
    result = await toolbox(double).execute("double", wrong, CONTEXT)
    assert _error_type(result) == "invalid_arguments"
    assert "object" in result.structured["message"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.dictionaries(st.sampled_from(["text", "limit"]) | st.text(), json_values))
async def test_any_arguments_are_answered(toolbox: Toolbox, arguments: dict[str, Any]) -> None:
    if isinstance(arguments.get("limit"), int):
        arguments["limit"] %= 100
    result = await toolbox(repeat).execute("repeat", arguments, CONTEXT)
    assert not result.is_error or _error_type(result) == "invalid_arguments"


def _granted(context: RequestContext) -> list[str]:
    granted = []
    for name, ask in (
        ("files", lambda: context.sandbox),
        ("contexts", context.shelf),
        ("tools", lambda: context.catalogue),
    ):
        try:
            ask()
        except Exception as error:  # noqa: BLE001  # any refusal means that it is not granted
            assert type(error).__name__ == "PermissionDeniedError"  # noqa: PT017  # the loop goes on
        else:
            granted.append(name)
    return granted


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (ToolScope.SANDBOXED, ["files"]),
        (ToolScope.CONTEXT, ["files", "contexts", "tools"]),
        (ToolScope.MCP, []),
    ],
)
async def test_a_scope_grants_what_it_says_and_no_more(
    toolbox: Toolbox, scope: ToolScope, expected: list[str]
) -> None:
    granted: list[list[str]] = []

    @tool(scope=scope, effects=READ)
    def ask(context: RequestContext) -> None:
        """Asks for everything."""
        granted.append(_granted(context))

    assert not (await toolbox(ask).execute("ask", {}, CONTEXT)).is_error
    assert granted == [expected]


async def test_a_call_within_a_call_has_the_rights_of_the_caller(toolbox: Toolbox) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    async def climb(context: RequestContext) -> int:
        """Calls what its caller may not."""
        return int((await context.call("double", {"number": 1})).structured["result"])

    manager = toolbox(climb, double)
    alone = RequestContext(replace(CONTEXT.origin, tool_set=ToolSet("climbers", allow=("climb",))))
    assert (await manager.execute("climb", {}, CONTEXT)).structured == {"result": 2}
    assert _error_type(await manager.execute("climb", {}, alone)) == "permission_denied"


async def test_a_tool_reads_the_whole_result_of_a_call_of_its_own(toolbox: Toolbox) -> None:
    def tell() -> str:
        """Tells a lot."""
        return "word " * 1_000

    async def measure(context: RequestContext) -> int:
        """Measures what it is told."""
        return len((await context.call("tell", {})).text)

    manager = toolbox(tell, measure, fitting=Fitting(ResultLimits(250)))
    assert len((await manager.execute("tell", {}, CONTEXT)).text) <= 1_000
    assert (await manager.execute("measure", {}, CONTEXT)).structured == {"result": 5_000}


async def test_a_tool_that_calls_itself_without_end_is_stopped(toolbox: Toolbox) -> None:
    depths: list[int] = []

    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    async def climb(context: RequestContext, height: int) -> None:
        """Climbs on."""
        depths.append(height)
        await context.call("climb", {"height": height + 1})

    result = await toolbox(climb).execute("climb", {"height": 0}, CONTEXT)
    assert _error_type(result) == "invalid_arguments"
    assert depths == list(range(MOST_DEPTH + 1))


async def test_a_call_within_a_call_is_the_same_callers_and_takes_the_same_path(
    toolbox: Toolbox,
) -> None:
    seen: list[tuple[Identity, bool, list[str]]] = []

    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    def inner(context: RequestContext, number: int) -> int:
        """Looks whose call it is."""
        seen.append((context.identity, context.origin.bound, _granted(context)))
        return number

    @tool(scope=ToolScope.CONTEXT, effects=READ)
    async def outer(context: RequestContext) -> list[str]:
        """Calls well and badly."""
        answers = [str((await context.call("inner", {"number": 1})).structured["result"])]
        for name, arguments in (("inner", {"number": "x"}), ("iner", {})):
            try:
                await context.call(name, arguments)
            except CallFailedError as error:
                answers += [error.tool, error.error_type, *error.suggestions]
        return answers

    ann = RequestContext(Origin(Identity("ann"), bound=True))
    result = await toolbox(inner, outer).execute("outer", {}, ann)
    assert result.structured["result"] == [
        *("1", "inner", "invalid_arguments"),
        *("iner", "unknown_tool", "inner"),
    ]
    assert seen == [(Identity("ann"), True, ["files"])]


async def test_a_bound_call_is_about_nobody_else(toolbox: Toolbox) -> None:
    @tool(scope=ToolScope.CONTEXT, effects=READ)
    def whose(context: RequestContext, named: dict[str, str]) -> str:
        """Opens a shelf."""
        return str(context.shelf(**named).identity)

    manager = toolbox(whose)
    own = Identity("ann", device_id="phone")

    async def refused(*, bound: bool, **named: str) -> bool:
        context = RequestContext(Origin(own, bound=bound))
        result = await manager.execute("whose", {"named": named}, context)
        assert not result.is_error or _error_type(result) == "permission_denied"
        return result.is_error

    for named in ({"user_id": "bob"}, {"user_id": ""}, {"device_id": ""}, {"device_id": "desk"}):
        assert await refused(bound=True, **named)
        assert not await refused(bound=False, **named)
    for named in ({}, {"user_id": "ann"}, {"device_id": "phone"}, {"agent_id": "coder"}):
        assert not await refused(bound=True, **named)


async def test_a_system_tool_is_refused_where_there_is_no_machine(toolbox: Toolbox) -> None:
    ran = []

    @tool(scope=ToolScope.SYSTEM, effects={Effect.EXECUTE})
    def bash(command: str) -> None:
        """Runs a command."""
        ran.append(command)

    result = await toolbox(bash).execute("bash", {"command": "true"}, CONTEXT)
    assert _error_type(result) == "permission_denied"
    assert ran == []


async def test_a_failure_of_storage_reaches_the_caller_in_the_tool_tree(toolbox: Toolbox) -> None:
    @tool(scope=ToolScope.CONTEXT, effects=READ)
    def look(context: RequestContext) -> None:
        """Looks for a document that is not there."""
        context.shelf().get_document("file", "missing.md")

    result = await toolbox(look).execute("look", {}, CONTEXT)
    assert _error_type(result) == "not_found"
    assert "missing.md" in result.structured["message"]


@pytest.mark.parametrize("crash", [KeyError("hunter2"), SystemExit("hunter2")])
async def test_a_crash_of_ours_is_told_without_details_and_one_of_an_authors_with_them(
    toolbox: Toolbox, crash: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    async def fall() -> None:
        """Falls."""
        raise crash

    for source, kind in (("builtin", "internal"), ("function:fall.py", "tool_failed")):
        caplog.clear()
        result = await toolbox(fall, source=source).execute("fall", {}, CONTEXT)
        assert _error_type(result) == kind
        assert ("hunter2" in f"{result.text} {result.structured}") is (source != "builtin")
        assert "hunter2" in caplog.text
        assert ("incident" in result.text) is (source == "builtin")


async def test_a_call_past_its_deadline_is_stopped_and_its_place_is_free(toolbox: Toolbox) -> None:
    stopped = []

    @tool(scope=ToolScope.SANDBOXED, effects=WRITE, timeout=0.05)
    async def hang(hard: bool) -> None:
        """Hangs."""
        try:
            await anyio.sleep(60 if hard else 0)
        finally:
            stopped.append(hard)

    manager = toolbox(hang)
    with anyio.fail_after(5):
        result = await manager.execute("hang", {"hard": True}, CONTEXT)
        after = await manager.execute("hang", {"hard": False}, CONTEXT)
    assert _error_type(result) == "timeout"
    assert "0.05 seconds" in result.structured["message"]
    assert not after.is_error
    assert stopped == [True, False]


async def test_a_tools_own_timeout_is_not_the_calls_deadline(toolbox: Toolbox) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    async def connect() -> None:
        """Fails to connect."""
        raise TimeoutError

    assert _error_type(await toolbox(connect).execute("connect", {}, CONTEXT)) == "tool_failed"


async def test_progress_reaches_whoever_asked(toolbox: Toolbox) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    async def walk(context: RequestContext) -> None:
        """Walks."""
        await context.report_progress(1, 2, "half")

    await toolbox(walk).execute("walk", {}, RequestContext(link=Link(listen)))
    assert heard == [(1, 2, "half")]


async def test_a_batch_answers_each_call_in_its_place(toolbox: Toolbox) -> None:
    calls = [
        ToolCall("double", {"number": 1}),
        ToolCall("nothing", {}),
        ToolCall("double", {"number": "x"}),
        ToolCall("twice", {"number": 2}),
    ]
    results = await toolbox(double).execute_batch(calls, CONTEXT)
    assert [result.is_error for result in results] == [False, True, True, False]
    assert [_error_type(result) for result in results[1:3]] == ["unknown_tool", "invalid_arguments"]


async def test_an_empty_batch_has_no_results(toolbox: Toolbox) -> None:
    assert await toolbox(double).execute_batch([], CONTEXT) == []


async def test_a_batch_reads_side_by_side_and_a_read_after_a_write_sees_it(
    toolbox: Toolbox,
) -> None:
    kept: list[int] = []
    readers = 0
    both = anyio.Event()

    @tool(scope=ToolScope.SANDBOXED, effects=WRITE)
    async def add(number: int) -> None:
        """Adds."""
        await anyio.wait_all_tasks_blocked()
        if number < 0:
            raise NotFoundError(f"{number} is not there.")
        kept.append(number)

    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    async def total() -> int:
        """Adds up, when two are reading."""
        nonlocal readers
        readers += 1
        if readers == 2:
            both.set()
        await both.wait()
        return sum(kept)

    adds = [ToolCall("add", {"number": number}) for number in (1, -1, 2)]
    with anyio.fail_after(5):
        results = await toolbox(add, total).execute_batch(
            [*adds, ToolCall("total", {}), ToolCall("total", {})], CONTEXT
        )
    assert [result.is_error for result in results] == [False, True, False, False, False]
    assert kept == [1, 2]
    assert all(3 in result.structured.values() for result in results[3:])


async def test_arguments_nested_without_end_are_answered(toolbox: Toolbox) -> None:
    nested: list[Any] = []
    for _ in range(sys.getrecursionlimit() * 2):
        nested = [nested]
    result = await toolbox(double).execute("double", {"number": nested}, CONTEXT)
    assert _error_type(result) == "invalid_arguments"
