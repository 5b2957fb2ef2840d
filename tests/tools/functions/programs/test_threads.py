"""Calls of tools from threads that a program starts: each is answered in its thread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import told
from tests.tools.conftest import Crib, Open

pytestmark = pytest.mark.anyio

FILE = """
import asyncio
import threading

from tools import RequestContext, tool


@tool(scope="sandboxed", effects={"read"})
async def threaded(context: RequestContext, path: str) -> list[str]:
    said = []

    def read() -> None:
        said.append(asyncio.run(context.call_tool("read_file", {"file_path": path})).text)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return said
"""


@pytest.fixture(scope="module")
async def crib(open_shared: Open) -> AsyncIterator[Crib]:
    async with open_shared() as crib:
        crib.root.joinpath("a.txt").write_text("heron", "utf-8")
        yield crib


async def run(crib: Crib, code: str) -> str:
    head = "import asyncio, threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
    read = "def read(path='a.txt'):\n    return asyncio.run(tools.read_file(path)).content\n"
    return told(await crib.client.call_tool("run_code", {"code": head + read + code}))


@pytest.mark.parametrize(
    "code",
    [
        # the thread that serves the server waits for the others, and reads nothing
        "with ThreadPoolExecutor(20) as pool:\n    said = list(pool.map(read, ['a.txt'] * 100))\n"
        "set(said), len(said)",
        "said = []\nt = threading.Thread(target=lambda: said.extend([read()] * 100))\n"
        "t.start()\nt.join()\nset(said), len(said)",
        "said = await asyncio.gather(*(asyncio.to_thread(read) for _ in range(100)))\n"
        "set(said), len(said)",
        "def many():\n    async def all_():\n"
        "        return await asyncio.gather(*(tools.read_file('a.txt') for _ in range(100)))\n"
        "    return [each.content for each in asyncio.run(all_())]\n"
        "said = await asyncio.to_thread(many)\nset(said), len(said)",
    ],
)
async def test_each_call_is_answered_in_its_thread(crib: Crib, code: str) -> None:
    text = await run(crib, code)
    assert '[["heron"],100]' in text.replace("\n", "").replace("\\n", ""), text
    assert "100 read_file" in text or "1 read_file" in text


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
    assert (await run(crib, code)).startswith("done")
