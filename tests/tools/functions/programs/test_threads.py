"""Calls of tools from threads that a program starts: each is answered in its thread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import told
from tests.tools.conftest import Crib, Open


@pytest.fixture(scope="module")
async def crib(open_shared: Open) -> AsyncIterator[Crib]:
    async with open_shared() as crib:
        crib.root.joinpath("a.txt").write_text("heron", "utf-8")
        yield crib


async def run(crib: Crib, code: str) -> str:
    head = "import asyncio, threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
    read = "def read(path='a.txt'):\n    return asyncio.run(tools.read_file(path)).content\n"
    return told(await crib.client.call_tool("run_code", {"code": f"{head}{read}{code}"}))


@pytest.mark.parametrize(
    "code",
    [
        # the thread that serves the server waits for the others, and reads nothing
        """
with ThreadPoolExecutor(20) as pool:
    said = list(pool.map(read, ["a.txt"] * 100))
""",
        """
said = []
thread = threading.Thread(target=lambda: said.extend([read()] * 100))
thread.start()
thread.join()
""",
        "said = await asyncio.gather(*(asyncio.to_thread(read) for _ in range(100)))",
        """
def many():
    async def gathered():
        return await asyncio.gather(*(tools.read_file("a.txt") for _ in range(100)))
    return [each.content for each in asyncio.run(gathered())]
said = await asyncio.to_thread(many)
""",
    ],
)
async def test_each_call_is_answered_in_its_thread(crib: Crib, code: str) -> None:
    assert '[["heron"],100]' in await run(crib, code + "\nset(said), len(said)")


async def test_a_failure_is_raised_in_its_thread(crib: Crib) -> None:
    code = (
        "with ThreadPoolExecutor(2) as pool:\n    failed = pool.submit(read, 'none.txt')\n"
        "type(failed.exception()).__name__, failed.exception().error_type"
    )
    assert '["ToolError","not_found"]' in await run(crib, code)


async def test_the_loop_calls_while_threads_do(crib: Crib) -> None:
    code = (
        "there = asyncio.to_thread(lambda: [read() for _ in range(30)])\n"
        "here = asyncio.gather(*(tools.read_file('a.txt') for _ in range(60)))\n"
        "there, here = await asyncio.gather(there, here)\nlen(there), len(here)"
    )
    assert "[30,60]" in await run(crib, code)


async def test_a_thread_that_outlives_its_program_ends_with_it(crib: Crib) -> None:
    code = "threading.Thread(target=lambda: [read() for _ in range(10**6)]).start()\n'done'"
    assert "done" in await run(crib, code)


CREATED = """
import threading

def twice(path: str) -> list[str]:
    '''Reads a file in two threads.'''
    said = []

    def read() -> None:
        said.append(asyncio.run(tools.read_file(path)).content)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return said
"""

FILE = """
import asyncio
import threading

from tools.authoring import RequestContext


async def thrice(context: RequestContext, path: str) -> list[str]:
    '''Reads a file in three threads, for which the event loop waits.'''
    said = []

    def read() -> None:
        read = asyncio.run(context.call("read_file", {"file_path": path}))
        said.append(read.structured["content"])

    threads = [threading.Thread(target=read) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return said
"""


async def test_threads_of_created_tools_and_function_files_are_answered_too(
    open_crib: Open, tmp_path: Path
) -> None:
    file = tmp_path / "crafts.py"
    file.write_text(FILE, "utf-8")
    async with open_crib(functions__paths=[str(file)]) as crib:
        crib.root.joinpath("a.txt").write_text("heron", "utf-8")
        await crib.call("create_tool", tool_name="twice", implementation=CREATED)
        assert (await crib.call("twice", path="a.txt"))["result"] == ["heron"] * 2
        assert (await crib.call("thrice", path="a.txt"))["result"] == ["heron"] * 3
