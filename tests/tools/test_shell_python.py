"""Python code runs in a process of its own, tells what it wrote, and leaves nothing running."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tools.core.context import Origin, RequestContext

pytestmark = pytest.mark.boundary


@pytest.fixture
async def crib(open_crib: Callable[..., Any]) -> AsyncIterator[Any]:
    async with open_crib(policy__allow=("scope:system",)) as crib:
        yield crib


@pytest.fixture(scope="module")
async def shared(open_shared: Callable[..., Any]) -> AsyncIterator[Any]:
    async with open_shared(policy__allow=("scope:system",)) as crib:
        yield crib


@pytest.mark.parametrize(
    ("code", "exit_code", "out"),
    [
        ("print('hello')", 0, "hello\n"),
        ("1 + 1", 0, "2\n"),
        ("x = 3\nx * 2", 0, "6\n"),
        ("'text'", 0, "'text'\n"),
        ("None", 0, ""),
        ("x = 3", 0, ""),
        ("", 0, ""),
        ("# nothing but a comment", 0, ""),
        ('"""A docstring."""\nx = 1', 0, ""),
        ("def f():\n    return __name__\n\nf()", 0, "'__main__'\n"),
        ("from __future__ import annotations\nx: Unknown = 1\nx", 0, "1\n"),
        ("import sys\nsys.exit(5)", 5, ""),
        ("import sys\nsys.argv", 0, "['<code>']\n"),
        ("import sys\nsys.stdin.read()", 0, "''\n"),
        ("print('é😀')", 0, "é😀\n"),
        ("print('no end', end='')", 0, "no end"),
        ("x = 1\n\n\nx;", 0, "1\n"),
        ("import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))) is A", 0, "True\n"),
        ("sorted(name for name in dir() if not name.startswith('_'))", 0, "[]\n"),
        ("import os\nos.kill(os.getpid(), 9)", 137, ""),
    ],
)
async def test_code_tells_what_it_printed_and_its_last_value(
    shared: Any, code: str, exit_code: int, out: str
) -> None:
    found = await shared.call("execute_python_code", code=code or " ")
    assert (found["stdout"], found["stderr"], found["exit_code"]) == (out, "", exit_code)
    assert found["state"] == "exited"
    assert found["sandbox"] == await shared.app.machine.processes.level()


@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def f():\n    raise KeyError('a')\nf()", "KeyError: 'a'"),
        ("x = 1\n  y = 2", "IndentationError: unexpected indent"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("input()", "EOFError: EOF when reading a line"),
        ("print('\\ud800')", None),
        ("f = lambda: f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("class A:\n    def __repr__(self): return 1\nA()", None),
        ("raise ExceptionGroup('several', [ValueError(1)])", None),
        ("(" * 300, None),
        ("x = 1\0", None),
    ],
)
async def test_an_error_is_told_with_its_line_and_without_our_own(
    shared: Any, code: str, last: str | None
) -> None:
    found = await shared.call("execute_python_code", code=code)
    assert found["exit_code"] == 1
    assert "Error" in found["stderr"]
    assert "<string>" not in found["stderr"]
    assert "displayhook" not in found["stderr"]
    if last is not None:
        assert found["stderr"].splitlines()[-1].startswith(last)
        assert 'File "<code>", line ' in found["stderr"]


async def test_a_traceback_shows_the_lines_of_the_code(shared: Any) -> None:
    found = await shared.call("execute_python_code", code="def f():\n    1 / 0  # here\n\nf()")
    shown = (line.strip() for line in found["stderr"].splitlines())
    lines = [line for line in shown if line.strip("~^")]  # which Python 3.13 puts under more lines
    assert lines[:5] == [
        *("Traceback (most recent call last):", 'File "<code>", line 4, in <module>', "f()"),
        *('File "<code>", line 2, in f', "1 / 0  # here"),
    ]


async def test_what_was_printed_before_the_deadline_is_kept(shared: Any) -> None:
    code = "import sys, time\nprint('out', end='')\nsys.stderr.write('err')\nprint(1)\n"
    code += "time.sleep(1000)"
    found = await shared.call("execute_python_code", code=code, timeout_seconds=1)
    assert (found["state"], found["exit_code"]) == ("timed_out", 137)
    assert (found["stdout"], found["stderr"]) == ("out1\n", "err")


@pytest.mark.parametrize("code", ["while True: pass", "import time\nwhile True: time.sleep(1)"])
async def test_code_without_end_meets_its_deadline(shared: Any, code: str) -> None:
    with anyio.fail_after(20):
        found = await shared.call("execute_python_code", code=code, timeout_seconds=0.3)
    assert found["state"] == "timed_out"


async def test_nothing_outlives_the_code_its_deadline_or_a_cancelled_call(crib: Any) -> None:
    code = (
        "import os, subprocess, sys, time\n"
        "pids = [subprocess.Popen(['sleep', '1000'], start_new_session=True).pid]\n"
        "if not (pid := os.fork()):\n"
        "    os.setsid()\n"
        "    time.sleep(1000)\n"
        "with open('pids', 'w') as file: print(*pids, pid, os.getpid(), file=file)\n"
        "os.rename('pids', 'started')\n"
    )
    started: Path = crib.root / "started"
    context = RequestContext(Origin(crib.app.identity))
    for rest, seconds in (("", 20), ("time.sleep(1000)", 2), ("time.sleep(1000)", 20)):
        arguments = {"code": code + rest, "timeout_seconds": seconds}
        async with anyio.create_task_group() as group:
            group.start_soon(crib.app.manager.execute, "execute_python_code", arguments, context)
            with anyio.fail_after(20):
                while not started.exists():  # noqa: ASYNC240  # it takes microseconds
                    await anyio.lowlevel.checkpoint()
            if rest:
                assert _running_in(crib.root)
            if rest and seconds == 20:
                group.cancel_scope.cancel()
        found = (await crib.call("bash", command="cat started; rm started"))["stdout"].split()
        assert len(found) == 3
        assert not _running_in(crib.root)


def _running_in(root: Path) -> list[str]:
    """The processes, but this one, whose working directory is the root."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if (directory / "cwd").readlink() == root and int(directory.name) != os.getpid():
                found.append(directory.name)
        except OSError:
            continue
    return found


async def test_the_code_stands_in_no_list_of_processes(shared: Any) -> None:
    code = "open('/proc/self/cmdline').read()  # hunter2"
    found = await shared.call("execute_python_code", code=code)
    assert sys.executable in found["stdout"]
    assert "hunter2" not in found["stdout"]


async def test_long_code_runs(shared: Any) -> None:
    lines = "\n".join(f"x{number} = {number}" for number in range(60_000))
    assert (await shared.call("execute_python_code", code=f"{lines}\nx59999"))[
        "stdout"
    ] == "59999\n"
    kind, _ = await shared.failure("execute_python_code", code="#" * 1_000_001)
    assert kind == "invalid_arguments"


async def test_code_works_beneath_the_root_and_imports_nothing_from_there(crib: Any) -> None:
    (crib.root / "json.py").write_text("raise SystemExit('taken from the root')")
    (crib.root / "data.txt").write_text("kept here")
    code = "import json, sys\nopen('data.txt').read(), '' in sys.path"
    assert (await crib.call("execute_python_code", code=code))["stdout"] == "('kept here', False)\n"


async def test_wild_output_is_bounded_and_becomes_text(open_crib: Any) -> None:
    code = "import sys\nfor _ in range(100): sys.stdout.buffer.write(b'\\xff\\x1b' * 10_000)\n"
    code += "print('end')"
    async with open_crib(limits__result_tokens=0) as crib:
        found = await crib.call("execute_python_code", code=code)
    assert found["truncated"]
    assert found["stdout"].endswith("end\n")
    assert len(found["stdout"]) < 1_000_100


@pytest.mark.parametrize(
    "arguments",
    [{}, {"code": ""}, {"code": 1}, {"code": "1", "timeout_seconds": 0}, {"code": "1", "cwd": "."}],
)
async def test_wrong_arguments_are_refused(shared: Any, arguments: dict[str, Any]) -> None:
    assert (await shared.failure("execute_python_code", **arguments))[0] == "invalid_arguments"


async def test_half_characters_are_refused(crib: Any) -> None:
    arguments = {"code": "'\ud800'"}
    result = await crib.app.manager.execute("execute_python_code", arguments, RequestContext())
    assert result.structured["error_type"] == "invalid_arguments"
