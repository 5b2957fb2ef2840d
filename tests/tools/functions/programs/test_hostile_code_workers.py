"""What a program may say to the server: anything, and it is the end of nothing but the program."""

from __future__ import annotations

import json
import resource
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tools.functions.programs.conftest import ask, nothing, program, run
from tools.core.context import Grant, Link, RequestContext
from tools.core.result import decode_result
from tools.functions.programs.calls import ProgramCalls
from tools.functions.programs.code_workers import MOST_LOGGED
from tools.functions.programs.confined_process import ConfinedProcess
from tools.functions.workers.messages import OF_CONFINED, Load, Message
from tools.functions.workers.worker import Worker, WorkerEndedError

if TYPE_CHECKING:
    from tests.tools.functions.programs.conftest import OpenWorkers

pytestmark = pytest.mark.slow

SAY = """
import json, os, time
def say(*lines):
    for line in lines:
        left = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\\n"
        while left:
            left = left[os.write(3, left):]
"""
"""How a program gets at what its process says to the server, one call of which runs: number 1."""

ENDED = {
    "no line end": "while True: say(bytes(10**6))",
    "one long line": "say(b'\"' + b'x' * 9 * 10**6 + b'\"\\n')",
    "no JSON": "say(b'{nonsense\\n')",
    "no object": "say(b'[1]\\n')",
    "no UTF-8": 'say(b\'{"tell": 1, "level": "info", "text": "\\xff"}\\n\')',
    "endless digits": "say(b'{\"progress\": ' + b'9' * 10**5 + b'}\\n')",
    "no number": 'say(b\'{"progress": 1, "done": NaN, "total": 1, "message": null}\\n\')',
    "deep lists": "say(b'{\"ask\": ' + b'[' * 10**5 + b']' * 10**5 + b'}\\n')",
    "many values": "say(b'{\"ask\": [' + b'[],' * 2 * 10**6 + b'[]]}\\n')",
    "the log": "say({'log': 50, 'text': 'the server burns'})",
    "a form": "say({'ask': 1, 'id': 9, 'form': {'message': 'Your password?', 'schema': {}}})",
    "a prompt": "say({'ask': 1, 'id': 9, 'prompt': {'text': 'x', 'system': '', 'max_tokens': 1}})",
    "a resource": "say({'changed': 1, 'uri': 'context://all'})",
    "another loading": "say({'loaded': {'offers': [], 'problems': [], 'files': []}})",
    "another's result": "say({'result': 2, 'structured': {}, 'text': '', 'is_error': False, "
    "'media': [], 'blocks': []})",
    "a result without parts": "say({'result': 1})",
    "an unknown error": "say({'result': 1, 'structured': {'error_type': 'x', 'message': '', "
    "'suggestions': [], 'next_actions': []}, 'text': '', 'is_error': True, 'media': [], "
    "'blocks': []})",
    "a number that is a list": "say({'ask': [], 'id': {}, 'tool': 'x', 'arguments': {}})",
    "one number twice": "say(*[{'ask': 1, 'id': 9, 'tool': 'wait', 'arguments': {}}] * 2)",
    "heavy questions": "say(*[{'ask': 1, 'id': 9 + n, 'tool': 'wait', 'arguments': "
    "{'x': [0] * 800_000}} for n in range(4)])",
    "endless questions": "n = 9\nwhile True:\n    n += 1\n"
    "    say({'ask': 1, 'id': n, 'tool': 'wait', 'arguments': {}})",
}


async def wait(_context: object, _name: str, _arguments: Any) -> Any:
    await anyio.sleep_forever()


@pytest.mark.parametrize("name", ENDED)
async def test_a_process_that_says_what_no_program_does_is_ended(
    open_workers: OpenWorkers, name: str
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with open_workers() as workers:
        with anyio.fail_after(60), pytest.raises(WorkerEndedError, match=r"invalid message: ."):
            await run(workers, f"{SAY}\n{ENDED[name]}\ntime.sleep(60)", wait)
        assert (await run(workers, "2"))[0]["value"] == 2
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 250_000  # KB


async def test_a_flood_of_progress_is_listened_to_slowly_and_ends_nothing(
    open_workers: OpenWorkers,
) -> None:
    flood = """
        told = {"progress": 1, "done": 1.0, "total": None, "message": "x"}
        for _ in range(15):
            say(*[told] * 1_000)
        "done"
        """
    heard = 0

    async def report(_done: float, _total: float | None, _message: str | None) -> None:
        nonlocal heard
        heard += 1

    async with open_workers() as workers:
        worker = await workers.take(
            Load(
                "<program>",
                SAY + "\n".join(line.removeprefix(" " * 8) for line in flood.splitlines()),
                "program",
            )
        )
        began = anyio.current_time()
        context = RequestContext(link=Link(report)).granted(Grant(call=nothing))
        message = await worker.call({}, context)
        await worker.aclose()
    assert message["structured"]["value"] == "done"
    assert anyio.current_time() - began >= 1
    assert 0 < heard <= 15_000


async def test_a_program_does_not_fill_the_log(
    open_workers: OpenWorkers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "toolcrib")
    source = f"""{SAY}
for number in range(2_000):
    say({{"tell": 1, "level": "emergency", "text": "told"}})
    print("printed", number, flush=number % 100 == 0)
"done\""""
    async with open_workers() as workers:
        worker = await workers.take(Load("<program>", source, "program"))
        message = await worker.call({}, ProgramCalls(1).within(RequestContext()))
        await worker.aclose()
    assert message["structured"]["value"] == "done"
    assert "told" not in caplog.text
    assert caplog.text.count("printed") <= MOST_LOGGED + 1
    assert f"printed {2_000 - MOST_LOGGED} more lines than are logged" in caplog.text


async def test_what_a_program_says_behind_its_answer_is_not_heard(
    open_workers: OpenWorkers,
) -> None:
    called = []

    async def note(_context: object, name: str, _arguments: Any) -> Any:
        called.append(name)

    source = f"""{SAY}
early = {{"structured": {{"value": "early", "notes": []}}, "text": "", "is_error": False}}
say({{"result": 1, **early, "media": [], "blocks": []}})
say(*[{{"ask": 1, "id": 9, "tool": "x", "arguments": {{}}}}] * 9)
time.sleep(60)"""
    async with open_workers() as workers:
        worker = await workers.take(Load("<program>", source, "program"))
        outcome = await ask(worker, note)
        await worker.aclose()
    assert outcome["value"] == "early"
    assert called == []


class Said:
    """The end of a process that says what a test has made up."""

    bounds = OF_CONFINED
    is_confined = True

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks
        self._asked, self._ended = anyio.Event(), anyio.Event()

    @property
    async def incoming(self) -> AsyncIterator[bytes]:
        yield b'{"loaded": {"offers": [], "problems": [], "files": []}}\n'
        await self._asked.wait()
        for chunk in self._chunks:
            yield chunk

    def checked(self, message: Message) -> Message:
        return ConfinedProcess.checked(message)

    async def send(self, line: bytes) -> None:
        if "call" in json.loads(line):
            self._asked.set()
        await anyio.lowlevel.checkpoint()

    async def hang_up(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def read_output(self, sink: Callable[[bytes], None]) -> None:  # noqa: ARG002  # it prints nothing
        await self._ended.wait()

    def read_printed(self, sink: Callable[[bytes], None]) -> None:
        pass

    async def wait(self) -> object:
        await self._ended.wait()
        return 0

    async def kill(self) -> None:
        self._ended.set()
        await anyio.lowlevel.checkpoint()

    def ending(self) -> str:
        return "ended"

    async def aclose(self) -> None:
        await self.kill()


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
KINDS = ("ask", "withdraw", "tell", "progress", "changed", "log", "result", "loaded", "call")
FIELDS = (
    *("id", "tool", "arguments", "level", "text", "done", "total", "message", "uri"),
    *("structured", "is_error", "media", "blocks"),
)
VALUES: st.SearchStrategy[Any] = (
    st.sampled_from([0, 1, 1.0, "", "x", {}, [], None, True, False]) | JUNK
)
MESSAGES = st.builds(
    lambda kind, number, fields: {kind: number, **fields},
    st.sampled_from(KINDS),
    VALUES,
    st.dictionaries(st.sampled_from(FIELDS), VALUES),
)
LINES = st.binary(max_size=40) | MESSAGES.map(lambda each: json.dumps(each).encode() + b"\n")


@given(said=st.lists(LINES, max_size=8), pieces=st.integers(1, 50))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_is_said_a_call_ends_in_a_result_or_with_its_process(
    said: list[bytes], pieces: int
) -> None:
    whole = b"".join(said)
    chunks = [whole[at : at + pieces] for at in range(0, len(whole), pieces)]

    async def start() -> Said:
        return Said(chunks)

    async with anyio.create_task_group() as group:
        worker: Worker = await group.start(Worker.run, start, program("1"), lambda _piece: None)
        with anyio.fail_after(20):
            try:
                message = await worker.call({}, RequestContext().granted(Grant(call=nothing)))
                decode_result(message)
            except WorkerEndedError:
                pass
        await worker.aclose()
