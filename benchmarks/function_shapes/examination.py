"""Each shape in each system: served, listed and called over the protocol, in memory.

Run as a module with the name of a system, it is that system's process.
"""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, NoReturn

import anyio
from mcp import Client, MCPError
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from benchmarks.function_shapes.catalogue import SHAPES
from benchmarks.function_shapes.shape import Answer, Miss, Served, Shape, Tool
from benchmarks.function_shapes.systems import System, opened

LONGEST = 30.0
"""Seconds that one shape may take."""


def examine_all(names: Sequence[str]) -> dict[str, list[list[str]]]:
    """What each system misses of each shape, by system, in the order of SHAPES.

    Each has a process of its own: what one does to the types of the shapes must not help another.
    """
    return {name: _in_a_process(name) for name in names}


def examine(system: System, shape: Shape) -> list[str]:
    """What a system misses of a shape; nothing where it does all that it should."""
    try:
        made = shape.make(system)
        served = made if isinstance(made, Server | MCPServer) else system.serve(made, shape.options)
    except Exception as error:  # noqa: BLE001  # each system refuses with exceptions of its own
        return _judge_refusal(shape, error)
    if shape.refused is not None:
        return ["it was converted, although it cannot be called as it stands"]
    try:
        return anyio.run(_examine_served, served, shape)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a tool that exits may take its server along
        return [f"the server broke down: {_first_line(error)}"]


def _in_a_process(name: str) -> list[list[str]]:
    command = [sys.executable, "-m", "benchmarks.function_shapes.examination", name]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    misses: list[list[str]] = json.loads(ran.stdout)
    return misses


def _main(name: str) -> None:
    with _quiet(), opened(name) as system:
        misses = [examine(system, shape) for shape in SHAPES]
    print(json.dumps(misses))


def _judge_refusal(shape: Shape, error: Exception) -> list[str]:
    reason = f"refused with {type(error).__name__}: {_first_line(error)}"
    if shape.refused is None:
        return [reason]
    return [] if re.search(shape.refused, str(error)) else [f"{reason}, which does not say why"]


async def _examine_served(served: Served, shape: Shape) -> list[str]:
    misses: list[str] = []
    with anyio.fail_after(LONGEST):
        async with Client(served, mode="legacy", raise_exceptions=False) as client:
            try:
                listed = (await client.list_tools()).tools
            except MCPError as error:
                return [f"the list of tools failed: {_first_line(error)}"]
            definition = _on_the_wire(listed[0])
            tool = Tool(definition, lambda arguments: _answer(client, definition, arguments))
            for check in shape.checks:
                try:
                    await check(tool)
                except Miss as miss:
                    misses.append(str(miss))
    return misses


async def _answer(
    client: Client, definition: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Answer:
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001  # as the client calls it
        await anyio.lowlevel.checkpoint()
        heard.append(message or "")

    try:
        result = await client.call_tool(definition["name"], dict(arguments), progress_callback=hear)
    except MCPError as error:  # not what the protocol wants of a failed call, but it says the same
        return Answer(is_error=True, text=str(error), structured=None, content=[], progress=[])
    except RuntimeError as error:  # the client checks results by the listed schema
        raise Miss(f"the client refused the answer: {_first_line(error)}") from error
    answer = _on_the_wire(result)
    content = answer["content"]
    return Answer(
        is_error=answer.get("isError", False),
        text="\n".join(part["text"] for part in content if part["type"] == "text"),
        structured=answer.get("structuredContent"),
        content=content,
        progress=heard,
    )


def _on_the_wire(message: Any) -> dict[str, Any]:  # noqa: ANN401  # a message of the protocol
    """The message as the transports write it and a strict parser reads it."""
    text = message.model_dump_json(by_alias=True, exclude_none=True)
    read: dict[str, Any] = json.loads(text, parse_constant=_refuse_constant)
    return read


def _refuse_constant(name: str) -> NoReturn:
    raise Miss(f"{name} was sent, which JSON does not have")


def _first_line(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    lines = f"{type(error).__name__}: {error}".strip().splitlines()
    return lines[0][:300]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the logs of failed calls, and what functions print, out of the table."""
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


if __name__ == "__main__":
    _main(sys.argv[1])
