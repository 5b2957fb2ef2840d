"""Workers: whatever a function does to its process ends there."""

from __future__ import annotations

import logging
import os
import select
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import anyio
import pytest

from server.clients.locations import command_path
from tools.core.context import RequestContext
from tools.functions.workers import worker

if TYPE_CHECKING:
    from tests.tools.functions.conftest import Serve, Served

pytestmark = pytest.mark.slow

CRAFTS = """
    import asyncio, os, subprocess, sys, time
    from collections.abc import Iterator
    from pathlib import Path

    from tools.core.spec import tool

    calls = 0

    @tool
    def pid() -> int:
        return os.getpid()

    @tool
    def count() -> int:
        global calls
        calls += 1
        return calls

    @tool
    def leave(code: int) -> None:
        sys.exit(code)

    @tool
    async def leave_later(code: int) -> None:
        await asyncio.sleep(0)
        sys.exit(code)

    @tool
    def interrupt() -> None:
        raise KeyboardInterrupt

    @tool
    def quit_hard(code: int) -> None:
        os._exit(code)

    @tool
    def abort() -> None:
        os.abort()

    @tool
    def crash() -> None:
        import ctypes
        ctypes.string_at(0)

    @tool
    def recurse(n: int = 0) -> int:
        return recurse(n + 1)

    @tool
    def swallow() -> int:
        return len(b"x" * 10**10)

    @tool(timeout=0.2)
    def loop() -> None:
        while True:
            pass

    @tool
    def child() -> int:
        # It keeps the pipes of its parent, and outlives it unless it is killed too.
        return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE).pid

    @tool
    def wait_for(name: str) -> str:
        while not Path(name).exists():
            time.sleep(0.005)
        return name

    @tool
    async def touched_in_the_end(started: str, ended: str) -> None:
        Path(started).touch()
        try:
            await asyncio.Event().wait()
        finally:
            Path(ended).touch()

    @tool
    def numbers(started: str, ended: str) -> Iterator[int]:
        try:
            for n in range(10**9):
                Path(started).touch()
                yield n
        finally:
            Path(ended).touch()

    @tool
    def wreck() -> None:
        for fd in range(3, 100):
            try:
                os.write(fd, b"{nonsense\\n")
            except OSError:
                pass

    @tool
    def shout(lines: int) -> str:
        print("on stdout \\x1b[31mred\\x1b[0m")
        os.system("echo by a child")
        sys.stderr.write("on stderr\\n" + "x" * 5000 + "\\n")
        for n in range(lines):
            print("flood", n)
        return "done"

    @tool(timeout=10)
    def hang_up() -> None:
        os.closerange(3, 300)
        while True:
            pass

    @tool
    def large(megabytes: int) -> str:
        return "x" * (megabytes * 1_000_000)
"""


@pytest.mark.parametrize("tool", ["leave", "leave_later"])
async def test_sys_exit_ends_the_call_and_no_more(serve: Serve, tool: str) -> None:
    async with serve(CRAFTS) as served:
        assert (await served.error(tool, code=0))[0] == "tool_failed"
        assert await served.value("count") == 1


async def test_an_interrupt_raised_by_a_function_ends_the_call_and_no_more(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        assert (await served.error("interrupt"))[0] == "tool_failed"
        assert await served.value("count") == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "how"),
    [
        ("quit_hard", {"code": 7}, "ended with exit code 7"),
        ("abort", {}, "was killed by SIGABRT"),
        ("crash", {}, "was killed by SIGSEGV"),
    ],
)
async def test_a_crash_ends_the_worker_and_the_next_call_has_a_new_one(
    serve: Serve, tool: str, arguments: dict[str, int], how: str
) -> None:
    async with serve(CRAFTS) as served:
        first = await served.value("pid")
        kind, message = await served.error(tool, **arguments)
        assert kind == "tool_failed"
        assert f"the process that runs crafts.py {how}" in message
        assert await served.value("pid") != first
        assert await served.value("count") == 1


async def test_endless_recursion_is_an_error(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        assert (await served.error("recurse"))[0] == "tool_failed"
        assert await served.value("count") == 1


async def test_memory_is_limited(serve: Serve) -> None:
    async with serve(CRAFTS, memory_bytes=1_000_000_000) as served:
        kind, message = await served.error("swallow")
        assert (kind, "swallow needs more memory" in message) == ("tool_failed", True)
        assert await served.value("count") == 1


async def test_an_endless_loop_ends_at_its_deadline_with_its_process(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        ended = _watched(await served.value("pid"))
        kind, message = await served.error("loop")
        assert kind == "timeout"
        assert "loop did not finish within its 0.2 seconds" in message
        await _until_ended(ended)
        assert await served.value("count") == 1


async def test_the_other_calls_of_a_worker_that_hangs_are_finished(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        ended = _watched(await served.value("pid"))
        async with anyio.create_task_group() as group:
            group.start_soon(_expect, served, "wait_for", "now")
            await _cancelled(served, "wait_for", name="never")
            await _until_replaced(served)
            (served.root / "now").touch()
        await _until_ended(ended)


async def test_a_cancelled_call_that_ends_late_ends_no_other(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "GRACE", 0.1)
    async with serve(CRAFTS) as served, anyio.create_task_group() as group:
        group.start_soon(_expect, served, "wait_for", "now")
        await _cancelled(served, "wait_for", name="late")
        await _until_replaced(served)
        (served.root / "late").touch()
        for _ in range(20):  # while which it ends
            await served.value("pid")
        (served.root / "now").touch()


async def test_a_worker_that_hangs_up_is_ended(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        ended = _watched(await served.value("pid"))
        assert (await served.error("hang_up"))[0] == "tool_failed"
        await _until_ended(ended)


async def test_arguments_that_cannot_be_sent_cost_no_worker(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "GRACE", 0.1)
    async with serve("import os\ndef pid(x: object = 0) -> int: return os.getpid()") as served:
        ended = _watched(await served.value("pid"))
        assert (await served.error("pid", x=10**5000))[0] == "invalid_arguments"
        with anyio.move_on_after(0.5) as scope:
            await _until_ended(ended)
        assert scope.cancelled_caught
        os.close(ended)


async def test_calls_run_side_by_side(serve: Serve) -> None:
    async with serve(CRAFTS) as served, anyio.create_task_group() as group:
        for name in ("a", "b", "c"):
            group.start_soon(_expect, served, "wait_for", name)
        for name in ("c", "b", "a"):
            (served.root / name).touch()


@pytest.mark.parametrize("tool", ["touched_in_the_end", "numbers"])
async def test_cancellation_reaches_the_function(serve: Serve, tool: str) -> None:
    async with serve(CRAFTS) as served:
        pid = await served.value("pid")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: served.call(tool, started="s", ended="e"))
            await _until_exists(served.root / "s")
            group.cancel_scope.cancel()
        await _until_exists(served.root / "e")
        assert await served.value("pid") == pid


async def test_children_die_with_their_worker(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        child = _watched(await served.value("child"))
        assert (await served.error("abort"))[0] == "tool_failed"
        await _until_ended(child)
        assert await served.value("count") == 1


async def test_workers_end_with_the_service(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        idle = _watched(await served.value("pid"))
    await _until_ended(idle)


async def test_a_worker_that_says_nonsense_is_ended(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(CRAFTS) as served:
        assert (await served.error("wreck"))[0] == "tool_failed"
        assert await served.value("count") == 1
    assert "sent an invalid message" in caplog.text


async def test_what_is_printed_goes_to_the_log_and_not_to_stdout(
    serve: Serve, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    async with serve(CRAFTS) as served:
        assert await served.value("shout", lines=100_000) == "done"
        assert await served.value("count") == 1
    lines = [record.getMessage() for record in caplog.records]
    assert "crafts.py: on stdout \\x1b[31mred\\x1b[0m" in lines
    assert "crafts.py: by a child" in lines
    assert "crafts.py: on stderr" in lines
    assert f"crafts.py: {'x' * 2000} […]" in lines
    flood = [line for line in lines if "flood" in line]
    assert len(flood) < 20_000
    assert any("more lines than are logged" in line for line in lines)
    assert capfd.readouterr().out == ""


async def test_an_exception_is_told_and_the_log_has_the_authors_lines(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve("def fail(x: int) -> float:\n    return x / 0") as served:
        told = await served.error("fail", x=1)
    assert told == ("tool_failed", "ZeroDivisionError: division by zero")
    (record,) = [each for each in caplog.records if "ZeroDivision" in each.getMessage()]
    assert record.levelno == logging.WARNING
    assert 'crafts.py", line 2, in fail\n    return x / 0\n' in record.getMessage()
    assert record.getMessage().count("File ") == 1


async def test_a_large_result_arrives_whole_and_a_huge_one_is_refused(serve: Serve) -> None:
    async with serve(CRAFTS) as served:
        pid = await served.value("pid")
        result = await served.call("large", megabytes=10)
        assert len(result.structured["result"]) == 10_000_000
        kind, message = await served.error("large", megabytes=70)
        assert (kind, "64,000,000 bytes" in message) == ("tool_failed", True)
        assert (await served.error("wait_for", name="x" * 70_000_000))[1] == message
        assert await served.value("pid") == pid


async def test_a_result_that_json_cannot_tell_costs_no_worker(serve: Serve) -> None:
    async with serve(
        "import os\ndef pid(x: int = 0) -> int: return x or os.getpid()\n"
        "def huge() -> int: return 10**5000"
    ) as served:
        pid = await served.value("pid")
        assert (await served.error("huge"))[0] == "tool_failed"
        assert await served.value("pid") == pid


async def test_a_call_that_its_own_file_cancels_says_so(serve: Serve) -> None:
    source = """
        import asyncio, os
        def pid() -> int: return os.getpid()
        async def stop() -> None:
            asyncio.current_task().cancel()
            await asyncio.sleep(9)
    """
    async with serve(source) as served:
        pid = await served.value("pid")
        kind, message = await served.error("stop")
        assert (kind, "stop was cancelled from within" in message) == ("tool_failed", True)
        assert await served.value("pid") == pid


async def test_what_threads_log_does_not_mix_with_results(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    source = """
        import logging, threading
        logging.basicConfig(level=logging.INFO)

        def chatter() -> None:
            while True:
                logging.getLogger("toolcrib").warning("x" * 100_000)

        def large() -> str:
            return "x" * 1_000_000

        def talk() -> None:
            threading.Thread(target=chatter, daemon=True).start()
    """
    caplog.set_level(logging.CRITICAL)
    async with serve(source) as served:
        await served.call("talk")
        for _ in range(10):
            assert len(await served.value("large")) == 1_000_000


async def test_what_our_own_modules_log_is_told_once(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    source = "import logging\nlogging.basicConfig()\ndef fail(x: int) -> float: return x / 0"
    async with serve(source) as served:
        await served.error("fail", x=1)
        await served.error("fail", x=1)
    assert caplog.text.count("ZeroDivisionError") == 2


async def test_progress_after_the_end_of_a_call_is_nobodys(serve: Serve) -> None:
    source = """
        import asyncio
        from tools.core.context import RequestContext

        tasks = []
        ended = asyncio.Event()

        async def start(context: RequestContext) -> None:
            async def report() -> None:
                await ended.wait()
                await context.report_progress(1, None, "too late")
            tasks.append(asyncio.create_task(report()))

        async def started() -> int:
            ended.set()
            await asyncio.gather(*tasks)
            return len(tasks)
    """
    async with serve(source) as served:
        assert not (await served.call("start")).is_error
        assert await served.value("started") == 1


async def test_surrogates_and_large_numbers_pass_both_ways(serve: Serve) -> None:
    async with serve("def echo(text: str, n: int) -> list[object]: return [text, n]") as served:
        assert await served.value("echo", text="\ud800é\0", n=10**30) == ["?é\0", 10**30]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a busy worker ends seconds later")
def test_workers_do_not_survive_a_killed_server(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(
        dedent("""
        import os
        def busy() -> None:
            os.write(2, f"pid {os.getpid()}\\n".encode())
            while True:
                pass
        """)
    )
    command = [str(command_path()), "call", "busy", "--functions", "busy.py"]
    with subprocess.Popen(
        [*command, "--data-dir", str(tmp_path / "data")],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "pid" in line)
        ended = _watched(int(line.split()[-1]))
        server.kill()
    assert select.select([ended], [], [], 10) == ([ended], [], [])
    os.close(ended)


async def _expect(served: Served, tool: str, name: str) -> None:
    assert await served.value(tool, name=name) == name


async def _cancelled(served: Served, tool: str, **arguments: str) -> None:
    """Cancels a call that its function does not notice."""
    with anyio.move_on_after(0.1) as scope:
        await served.manager.execute(tool, arguments, RequestContext())
    assert scope.cancelled_caught


async def _until_replaced(served: Served) -> None:
    first = await served.value("pid")
    with anyio.fail_after(10):
        while await served.value("pid") == first:
            await anyio.lowlevel.checkpoint()


async def _until_exists(path: Path) -> None:
    with anyio.fail_after(10):
        while not await anyio.Path(path).exists():
            await anyio.lowlevel.checkpoint()


def _watched(pid: int) -> int:
    """A descriptor that can be read when the process has ended."""
    return os.pidfd_open(pid)


async def _until_ended(descriptor: int) -> None:
    with anyio.fail_after(10):
        await anyio.wait_readable(descriptor)
    os.close(descriptor)
