"""run_code: programs over tools, in real code workers, asked for by a real client."""

import json
import math
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest

from tests.tools.conftest import Crib, Open
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import Origin, RequestContext
from tools.core.spec import Effect, ToolScope, tool
from tools.functions.programs.code_workers import code_workers_of

pytestmark = pytest.mark.slow


class Wait:
    """A tool that never ends by itself, and what became of its last call."""

    def __init__(self) -> None:
        self.begun, self.cancelled = anyio.Event(), anyio.Event()

    async def wait(self) -> None:
        """Waits."""
        self.begun.set()
        try:
            await anyio.sleep(60)
        finally:
            self.cancelled.set()


@pytest.fixture(scope="module")
async def crib(open_shared: Open) -> AsyncIterator[Crib]:
    async with open_shared() as crib:
        (crib.root / "a.txt").write_text("one\ntwo\n")
        (crib.root / "b.txt").write_text("three\n")
        yield crib


@pytest.fixture
def wait(crib: Crib) -> Iterator[Wait]:
    made = Wait()
    reads = frozenset({Effect.READ})
    crib.app.registry.add(
        FunctionToMCP.convert(made.wait, scope=ToolScope.SANDBOXED, effects=reads)
    )
    yield made
    crib.app.registry.remove("wait")


async def answer(crib: Crib, code: str, **more: Any) -> Any:
    """What a program returns, whose calls all succeed."""
    text = (await crib.text("run_code", code=code, **more)).partition("\n[calls: ")[0]
    if text == "[It printed and returned nothing.]":
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


async def failure(crib: Crib, code: str, **more: Any) -> str:
    """What the model reads of a program that fails."""
    result = await crib.client.call_tool("run_code", {"code": code, **more})
    assert result.is_error, result.content
    return str(result.content[0].text)  # type: ignore[union-attr]  # it is text


READ = 'r = await tools.read_file(file_path="a.txt")\n'

GATHER = """
both = await asyncio.gather(*[tools.read_file(name) for name in ("a.txt", "b.txt")])
[len(each.content) for each in both]
"""


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("return 'early'\n1", "early"),
        ("for n in range(9):\n    if n == 4:\n        return n", 4),
        ("x = 1", None),
        (READ + "r.content", "one\ntwo\n"),
        (READ + "r['content'], isinstance(r, dict), r.get('nothing')", ["one\ntwo\n", True, None]),
        ("(await tools.read_file('b.txt')).content", "three\n"),
        ("(await tools['read_file'](file_path='b.txt')).content", "three\n"),
        ("(await tools.Read(file_path='b.txt')).content", "three\n"),
        ("from tools import read_file\n(await read_file('b.txt')).content", "three\n"),
        ("async def main():\n    return 5\nasyncio.run(main())", 5),
        ("async def main():\n    return 6\nmain()", 6),
        ("tools.read_file('b.txt')", {"content": "three\n"}),
        (
            "(await tools.describe_tool('grep', as_='python')).python[:25]",
            "async def grep(*, pattern",
        ),
        (GATHER, [8, 6]),
        ("t = asyncio.create_task(tools.read_file('b.txt'))\n(await t).content", "three\n"),
        (
            "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int\nA(3), {2}",
            [{"x": 3}, [2]],
        ),
        (
            "float('nan'), b'x'",
            '[null,"eA=="]\n[Null stands for numbers that JSON does not have: 0 is NaN.]',
        ),
        ("print", "print"),
        ("'\\x1b[31m\\ud800'", "␛[31m?"),
        ("import sys\nsys.exit()", None),
    ],
)
async def test_a_program_answers_what_it_returns(crib: Crib, code: str, value: Any) -> None:
    found = await answer(crib, code)
    if isinstance(value, dict):
        found = {key: found[key] for key in value}
    assert found == value


async def test_a_program_that_prints_and_returns_reads_short(crib: Crib) -> None:
    code = READ + "print('lines', r.content.count('\\n'))\nprint('end')\n{'a': len(r.content)}"
    text = await crib.text("run_code", code=code)
    assert text == 'lines 2\nend\n{"a":8}\n[calls: 1 read_file]'
    assert await crib.text("run_code", code="x = 1") == "[It printed and returned nothing.]"


async def test_a_failed_call_can_be_caught_with_all_that_is_said_of_it(crib: Crib) -> None:
    code = """
found = []
for make in (
    lambda: tools.read_file(file_path="missing.txt"),
    lambda: tools.read_fil(file_path="a.txt"),
    lambda: tools.read_file(file_pth="a.txt"),
    lambda: tools.call_tool(name="read_file"),
):
    try:
        await make()
    except ToolError as error:
        found.append([error.error_type, error.message, error.suggestions, error.next_actions])
assert ToolError is tools.ToolError
found
"""
    text = await crib.text("run_code", code=code)
    told, _, calls = text.partition("\n")
    missing, unknown, wrong, indirect = json.loads(told)
    assert missing[0] == "not_found"
    assert "missing.txt" in missing[1]
    assert unknown[0] == "unknown_tool"
    assert "read_file" in unknown[2]
    assert wrong[0] == "invalid_arguments"
    assert "did you mean `file_path`?" in wrong[1]
    assert any("Its parameters are read_file(" in each for each in wrong[3])
    assert indirect[0] == "invalid_arguments"
    assert calls == "[calls: 2 read_file (2 failed), 1 read_fil (1 failed)]"


async def test_a_program_that_fails_tells_its_own_lines_and_what_it_did(crib: Crib) -> None:
    code = "def head(name):\n    return tools.read_file(name)\n\nprint('begun')\n"
    told = await failure(crib, code + "await head('a.txt')\nawait head('missing.txt')")
    assert told.startswith(
        "tool_failed: Traceback (most recent call last):\n"
        '  File "<program>", line 6, in <module>\n'
        "    await head('missing.txt')\n"
        "tools.ToolError: not_found: "
    )
    assert "[printed before]\nbegun\n[calls: 2 read_file (1 failed)]" in told
    assert ".py" not in told


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("x = (1\ny", "SyntaxError: '(' was never closed"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("x = tools.read_file('a.txt')\nx['content']", "in line 1 was not awaited: write await"),
        ("x = tools.read_file('a.txt')\nx.content", "in line 1 was not awaited and has no"),
        ("len(tools.grep(pattern='x'))", "in line 1 was not awaited: write await"),
        (READ + "r.contents", "no key 'contents'; there are "),
        (READ + "r['contents']", "no key 'contents'; there are"),
        ("await tools.grep('x', '.', 'y', 1, 2, 3, 4, 5, 6, 7, 8, 9, 0)", "grep: name its arg"),
        ("import os\nos.kill(os.getpid(), 9)", "Its process was killed by SIGKILL."),
        ("asyncio.current_task().cancel()\nawait asyncio.sleep(1)", "CancelledError"),
        ("open('/etc/shadow')", "Error"),
    ],
)
async def test_a_program_that_is_wrong_is_told_why(crib: Crib, code: str, told: str) -> None:
    assert told in await failure(crib, code)


async def test_a_call_that_was_forgotten_to_be_awaited_is_told(crib: Crib) -> None:
    text = await crib.text("run_code", code="x = 1\ntools.write_file('w.txt', 'w')\nx")
    said = "[tools.write_file(…) in line 2 was not awaited, so it was not called: write await.]"
    assert text == f"1\n{said}"
    assert not (crib.root / "w.txt").exists()


async def test_a_program_sees_whole_results_and_its_own_is_fitted(crib: Crib) -> None:
    (crib.root / "long.txt").write_text("word " * 20_000)
    code = "r = await tools.read_file('long.txt')\nlen(r.content)"
    assert await answer(crib, code) == 100_000
    text = await crib.text("run_code", code="print('x' * 99_000)\n['y' * 99_000]")
    assert "read_result(handle=" in text
    assert len(text) < 16_000


async def test_a_program_is_told_which_numbers_of_a_result_became_null(crib: Crib) -> None:
    async def measure() -> dict[str, float]:
        """Measures."""
        return {"depth": math.nan, "width": 2.0}

    reads = frozenset({Effect.READ})
    spec = FunctionToMCP.convert(measure, scope=ToolScope.SANDBOXED, effects=reads)
    crib.app.registry.add(spec)
    text = await crib.text("run_code", code="(await tools.measure())['depth'] is None")
    crib.app.registry.remove("measure")
    assert text.startswith("true\n[measure: Null stands for numbers that JSON does not have: ")
    assert "depth is NaN" in text


async def test_more_calls_than_a_program_may_make_are_refused(crib: Crib) -> None:
    code = """
for n in range(4):
    try:
        await tools.read_file("a.txt")
    except ToolError as error:
        print(n, error.error_type)
"""
    text = await crib.text("run_code", code=code, max_calls=3)
    assert text == "3 rate_limited\n[calls: 3 read_file]"


async def test_many_calls_at_once_wait_for_their_turn(crib: Crib) -> None:
    code = "rs = await asyncio.gather(*[tools.read_file('a.txt') for _ in range(200)])\nlen(rs)"
    text = await crib.text("run_code", code=code, max_calls=200)
    assert text == "200\n[calls: 200 read_file]"


@pytest.mark.parametrize(
    "code", ["open('a.txt')", "import socket\nsocket.create_connection(('a', 1))"]
)
async def test_a_program_that_opens_something_itself_is_told_the_way(crib: Crib, code: str) -> None:
    assert "by tools alone: await tools.read_file(…)" in await failure(crib, code)


@pytest.mark.parametrize("end", ["while True: pass", "await tools.wait()"])
async def test_a_program_out_of_time_is_ended_and_says_what_it_did(
    crib: Crib, wait: Wait, end: str
) -> None:
    code = "print('begun', flush=True)\nawait tools.list_directory()\n" + end
    with anyio.fail_after(30):
        told = await failure(crib, code, timeout_seconds=0.5)
        if wait.begun.is_set():
            await wait.cancelled.wait()
    assert told.startswith("timeout: It was ended after 0.5 seconds.\n[printed before]\nbegun\n")
    open_call = ", 1 wait (1 not finished)" if "wait()" in end else ""
    assert f"[calls: 1 list_directory{open_call}]" in told
    assert not (await code_workers_of(crib.app.machine))._running_now


async def test_a_program_that_is_cancelled_leaves_nothing_running(crib: Crib, wait: Wait) -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:

            async def run() -> None:
                await crib.client.call_tool("run_code", {"code": "await tools.wait()"})

            group.start_soon(run)
            await wait.begun.wait()
            group.cancel_scope.cancel()
        await wait.cancelled.wait()


async def test_a_program_tells_the_calls_that_it_has_made_while_it_runs(crib: Crib) -> None:
    told: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    code = "await tools.list_directory()\nawait tools.read_file('a.txt')\nNone"
    await crib.client.call_tool("run_code", {"code": code}, progress_callback=hear)
    assert told == [
        "calls: 1 list_directory (1 not finished)",
        "calls: 1 list_directory, 1 read_file (1 not finished)",
    ]


async def test_a_program_is_run_once_while_a_call_of_it_asks(open_crib: Open, mode: str) -> None:
    runs: list[str] = []

    @tool(scope=ToolScope.SANDBOXED, effects={Effect.READ})
    async def note(context: RequestContext, text: str) -> int:
        """Takes a note."""
        runs.append(text)
        return len(runs)

    code = """
await tools.note(text="before")
r = await tools.bash(command="rm -rf a b; echo done")
await tools.note(text=r.stdout.strip())
"""
    async with open_crib(mode, policy__ask=("bash",)) as crib:
        crib.app.registry.add(FunctionToMCP.convert(note))
        assert await answer(crib, code) == 2
    assert runs == ["before", "done"]


@pytest.mark.boundary
@pytest.mark.parametrize("profile", ["read-only", "standard"])
async def test_a_program_is_judged_by_its_own_process_and_its_calls_by_what_they_do(
    open_crib: Open, profile: str
) -> None:
    async with open_crib(policy__profile=profile, system__network=["packages"]) as crib:
        context = RequestContext(Origin(crib.app.identity))  # where nobody can be asked
        reading = "(await tools.list_directory()).entries"
        assert not (await crib.app.manager.execute("run_code", {"code": reading}, context)).is_error
        running = 'await tools.bash(command="ls")'
        result = await crib.app.manager.execute("run_code", {"code": running}, context)
        refused = {"read-only": "permission_denied", "standard": "approval_required"}
        assert refused[profile] in result.text


async def test_a_program_reaches_what_its_caller_may_and_nothing_else(open_crib: Open) -> None:
    async with open_crib(policy__deny=("write_file",)) as crib:
        told = await failure(crib, "await tools.write_file('x.txt', 'x')")
        assert "tools.ToolError: permission_denied: " in told
        code = """
import os, socket
found = []
for make in (lambda: os.listdir(ROOT), lambda: socket.create_connection(("127.0.0.1", 1), 1)):
    try:
        found.append(make())
    except OSError as error:
        found.append(type(error).__name__)
found
""".replace("ROOT", repr(str(crib.root)))
        value = await answer(crib, code)
    assert value[0] in {"FileNotFoundError", "PermissionError"}
    assert isinstance(value[1], str)
