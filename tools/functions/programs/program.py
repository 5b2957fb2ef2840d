"""A program in its cell: what it is given to call tools with, and its answer."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from types import CodeType
from typing import Any

import anyio

from tools.core.errors import ToolFailedError
from tools.functions.workers.channel import Channel
from tools.functions.workers.messages import Load, Loaded, Message, Problem, decoded, encode_error
from tools.functions.workers.questions import Questions

__all__ = ["Tools", "serve"]


class Tools:
    """The tools, each an attribute: an async function that takes its arguments by name."""

    def __init__(self, ask: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> None:
        self._ask = ask

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Returns the function that calls a tool."""

        def call(**arguments: Any) -> Awaitable[Any]:  # noqa: ANN401  # whatever the tool takes
            return self._ask(name, arguments)

        return call


def serve(channel: Channel, load: Load) -> None:
    """Compiles a program and runs it when it is called, once."""
    try:
        parts = _compiled(load)
    except (SyntaxError, ValueError, RecursionError) as error:
        place = (error.lineno, error.offset) if isinstance(error, SyntaxError) else ()
        problem = Problem(f"{type(error).__name__}: {error}", *place)
        channel.send({"loaded": asdict(Loaded(None, [problem], []))})
        return
    channel.send({"loaded": asdict(Loaded([], [], []))})
    anyio.run(_serve, channel, parts)


def _compiled(load: Load) -> list[CodeType]:
    tree = ast.parse(load.source, load.path)
    is_valued = tree.body and isinstance(tree.body[-1], ast.Expr)
    last = tree.body.pop() if is_valued else None
    compiled = partial(
        compile, filename=load.path, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    parts: list[CodeType] = [compiled(tree, mode="exec")]
    if isinstance(last, ast.Expr):
        parts.append(compiled(ast.Expression(last.value), mode="eval"))
    return parts


async def _serve(channel: Channel, parts: list[CodeType]) -> None:
    questions = Questions(channel.send)
    async with anyio.create_task_group() as group:
        async for message in decoded(channel.chunks()):
            if "call" in message:
                group.start_soon(_run, channel, questions, parts, message["call"])
            elif "answer" in message:
                questions.take(message)
        group.cancel_scope.cancel()


async def _run(channel: Channel, questions: Questions, parts: list[CodeType], call: int) -> None:
    async def ask(name: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401  # a result
        result = await questions.ask(call, {"tool": name, "arguments": arguments})
        return result["structured"]

    scope: dict[str, Any] = {"__name__": "__main__", "tools": Tools(ask)}
    try:
        value = None
        for part in parts:
            value = eval(part, scope)  # noqa: S307  # this process is there to run it
            if inspect.iscoroutine(value):
                value = await value
        answer: Message = {"structured": {"result": value}, "text": "", "is_error": False}
        json.dumps(answer)
    except BaseException as error:  # noqa: BLE001  # whatever the program raises
        traceback.print_exc()
        failure = encode_error(ToolFailedError(f"{type(error).__name__}: {error}"))
        del failure["dismissed"]
        answer = {"structured": failure, "text": str(error), "is_error": True}
    sys.stdout.flush()
    channel.send({"result": call, **answer, "media": [], "blocks": []})
