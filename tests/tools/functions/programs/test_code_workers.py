"""Code workers: one process a program, one that waits for the next, and nothing that is left."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.tools.functions.programs.conftest import ask, program, run
from tools.core.context import RequestContext
from tools.core.errors import RateLimitedError, UnavailableError
from tools.core.result import decode_result
from tools.functions.programs import code_workers as module
from tools.functions.programs.code_workers import CodeWorkers, _Spare
from tools.functions.workers.messages import Load
from tools.functions.workers.worker import WorkerEndedError
from tools.sandbox.processes.models import Level

if TYPE_CHECKING:
    from tests.tools.functions.programs.conftest import OpenWorkers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="its levels are Linux's"),
]

LEVELS = pytest.mark.parametrize("level", [Level.BUBBLEWRAP, Level.LANDLOCK, Level.NONE])


@LEVELS
async def test_a_program_calls_prints_and_answers(open_workers: OpenWorkers, level: Level) -> None:
    async with open_workers(level) as workers:
        assert await workers.is_offline() is (level is not Level.NONE)
        outcome, printed = await run(
            workers,
            """
            import sys
            print("to stdout")
            print("to stderr", file=sys.stderr)
            (await tools.query(query="x")).called
            """,
        )
    assert outcome["value"] == "query"
    assert printed == "to stdout\nto stderr\n"


async def test_each_program_has_a_process_of_its_own(open_workers: OpenWorkers) -> None:
    leave = """
        import os, pathlib, tempfile
        left = pathlib.Path(tempfile.gettempdir(), "left")
        before = left.exists()
        left.write_text("x")
        before, globals().get("kept"), os.stat("/proc/self").st_ctime_ns
        """
    async with open_workers() as workers:
        found = [(await run(workers, leave))[0]["value"] for _ in range(3)]
    assert [each[:2] for each in found] == [[False, None]] * 3
    assert len({each[2] for each in found}) == 3


async def waiting_in(workers: CodeWorkers) -> _Spare:
    """The process that waits, as it does once a program was run."""
    await run(workers, "1")
    waiting = workers._spare
    assert waiting is not None
    await waiting._started.wait()
    return waiting


async def test_a_process_waits_for_the_next_program(open_workers: OpenWorkers) -> None:
    async with open_workers() as workers:
        waiting = await waiting_in(workers)
        assert waiting._process is not None
        pid = waiting._process._program.pid
        worker = await workers.take(program("1"))
        assert worker._process._program.pid == pid  # type: ignore[attr-defined]  # it is a code worker
        await worker.aclose()


async def test_a_process_that_waits_in_vain_is_given_up(
    open_workers: OpenWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.0)
    async with open_workers() as workers:
        waiting = await waiting_in(workers)
        with anyio.fail_after(20):
            while waiting._process is not None:
                await anyio.wait_all_tasks_blocked()
        assert (await run(workers, "2"))[0]["value"] == 2


async def test_a_process_that_was_killed_while_it_waited_is_replaced(
    open_workers: OpenWorkers,
) -> None:
    async with open_workers() as workers:
        waiting = await waiting_in(workers)
        assert waiting._process is not None
        await waiting._process.kill()
        assert (await run(workers, "2"))[0]["value"] == 2


async def test_a_process_that_is_taken_before_it_waits_is_started(
    open_workers: OpenWorkers,
) -> None:
    async with open_workers() as workers, anyio.create_task_group() as group:
        group.start_soon(run, workers, "1")
        while workers._spare is None:
            await anyio.lowlevel.checkpoint()
        with anyio.fail_after(20):
            process = await workers._next()
        await process.aclose()


async def test_no_more_run_at_once_than_the_machine_can_bear(
    open_workers: OpenWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_AT_ONCE", 2)
    async with open_workers() as workers:
        first, second = [await workers.take(program("1")) for _ in range(2)]
        with pytest.raises(
            RateLimitedError, match=r"^2 programs and created tools are already running"
        ):
            await workers.take(program("1"))
        await first.aclose()
        assert (await run(workers, "3"))[0]["value"] == 3
        await second.aclose()


async def test_a_defect_in_the_care_of_one_process_ends_no_other(
    open_workers: OpenWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_line: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        raise RuntimeError("a defect")

    async with open_workers() as workers:
        one, other = await workers.take(program("1")), await workers.take(program("2"))
        monkeypatch.setattr(one._process, "send", fail)
        with pytest.raises(RuntimeError, match="a defect"):
            await ask(one)
        with anyio.fail_after(20):
            await one._ended.wait()
        assert (await ask(other))["value"] == 2


async def test_functions_are_loaded_once_and_called_often(open_workers: OpenWorkers) -> None:
    source = '''
        calls = 0

        def add(a: int, b: int = 1) -> int:
            """Adds."""
            global calls
            calls += 1
            return a + b + 100 * calls
        '''
    async with open_workers() as workers:
        worker = await workers.take(Load("adding.py", dedent(source)))
        assert worker.loaded is not None
        assert [each["name"] for each in worker.loaded.offers or ()] == ["add"]
        results = [
            decode_result(
                await worker.call({"key": ["tool", "add"], "arguments": {"a": a}}, RequestContext())
            )
            for a in (1, 2)
        ]
        await worker.aclose()
    assert [each.structured for each in results] == [{"result": 102}, {"result": 203}]


async def test_nothing_is_run_where_confinement_is_required_and_none_works(
    open_workers: OpenWorkers,
) -> None:
    async with open_workers() as workers:
        workers._processes.levels._confinements.clear()
        with pytest.raises(UnavailableError, match="none works here"):
            await workers.take(program("1"))


IMMORTAL = """
    import ctypes, os, signal, time
    ctypes.CDLL(None).prctl(15, b"immortal")  # PR_SET_NAME
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    done, ready = os.pipe()
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        os.write(ready, b"x")
        while True:
            time.sleep(60)
    os.read(done, 1)
    await tools.started()
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
    """


@LEVELS
async def test_a_program_that_ignores_its_cancellation_ends_with_its_children(
    open_workers: OpenWorkers, level: Level
) -> None:
    async with open_workers(level) as workers, anyio.create_task_group() as group:
        worker = await workers.take(program(IMMORTAL))
        running = 0

        async def started(*_call: object) -> None:
            nonlocal running
            running = _immortal()
            group.cancel_scope.cancel()
            await anyio.sleep_forever()

        try:
            with anyio.fail_after(30):
                group.start_soon(ask, worker, started)
                await anyio.sleep_forever()
        finally:
            await worker.aclose()
    assert running >= 2  # the one between may just be ending
    assert _immortal() == 0


def _immortal() -> int:
    """How many processes below this one call themselves so."""
    above: dict[str, str] = {}
    named = set()
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            name, _, rest = (each / "stat").read_text().rpartition(")")
            above[each.name] = rest.split()[1]
            if "(immortal" in name:
                named.add(each.name)
    return sum(_is_below(each, above) for each in named)


def _is_below(pid: str, above: dict[str, str]) -> bool:
    while pid in above and pid != str(os.getpid()):
        pid = above[pid]
    return pid in above


KILLED = """
    import sys, anyio
    from pathlib import Path
    from server.composition.machine import MachineParts
    from server.settings import Settings
    from tools.functions.workers.messages import Load

    async def main():
        settings = Settings(root=Path(sys.argv[1]), data_dir=Path(sys.argv[1], "data"))
        workers = MachineParts(settings, {}).code_workers()
        worker = await workers.take(Load("<program>", "1", "program"))
        await workers._spare._started.wait()
        print(worker._process._program.pid, workers._spare._process._program.pid, flush=True)
        await anyio.sleep_forever()

    anyio.run(main)
    """


def test_a_server_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", dedent(KILLED), str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        pids = [int(each) for each in server.stdout.readline().split()]
        assert len(pids) == 2
        watched = [os.pidfd_open(pid) for pid in pids]
        server.send_signal(signal.SIGKILL)
        try:
            for each in watched:
                assert select.select([each], [], [], 20)[0]
        finally:
            for each in watched:
                os.close(each)


CHILDREN = """
    import os, time
    for _ in range(4):
        if not os.fork():
            kept = bytearray(150 * 10**6)
            time.sleep(60)
    time.sleep(60)
    """


@pytest.mark.parametrize(
    ("limit", "source", "error"),
    [
        ({"memory_mb": 300}, "kept = []\nwhile True: kept.append(bytearray(10**7))", "MemoryError"),
        ({"memory_mb": 300}, CHILDREN, "more than 300 MB of memory"),
        ({"cpu_seconds": 1}, "while True: pass", "SIGXCPU"),
        ({"file_mb": 1}, "open('/tmp/x', 'wb').write(bytes(2 * 10**6))", "File too large"),
    ],
)
async def test_what_a_program_uses_is_limited(
    open_workers: OpenWorkers, limit: dict[str, int], source: str, error: str
) -> None:
    async with open_workers(**limit) as workers:
        with anyio.fail_after(60):
            try:
                outcome, _ = await run(workers, source)
                told = outcome["error"]
            except WorkerEndedError as ended:
                told = str(ended)
        assert error in told
        assert (await run(workers, "2"))[0]["value"] == 2
