"""Runs a program in its cell, once, as `__main__`, and reports its outcome."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from functools import partial
from inspect import isawaitable
from types import CodeType, ModuleType
from typing import Any

from tools.core.errors import UnsendableError
from tools.functions.programs.namespace import NAME, Ask, Namespace, PendingCall, ToolError
from tools.functions.programs.source import FILE, RETURN, ReturnedError, compiled
from tools.functions.workers.bounds import TooLongError
from tools.functions.workers.channel import Channel
from tools.functions.workers.messages import Load, Loaded, Message
from tools.functions.workers.questions import Questions

OURS = sys.modules[NAME]
"""Our own package, whose name the namespace takes while the program runs."""

MOST_TRACE = 4_000
"""Maximum characters of a traceback that are reported: its beginning and its end."""

BY_TOOLS = "A program reaches files and the network by tools alone: await tools.read_file(…)."
"""Advice for a program that could not open a file or reach a host."""

MOST_FORGOTTEN = 3
"""Maximum calls without `await` that are named."""


def serve(channel: Channel, load: Load) -> None:
    """Runs a program when it is called, until the server hangs up."""
    channel.send({"loaded": asdict(Loaded([], [], []))})
    asyncio.run(_serve(channel, load.source))


async def _serve(channel: Channel, source: str) -> None:
    questions = Questions(channel.send, channel.during)
    with ExitStack() as running:
        async for message in channel.messages(questions):
            if "call" in message:
                task = asyncio.create_task(_answer(channel, questions, source, message["call"]))
                running.callback(task.cancel)


async def _answer(channel: Channel, questions: Questions, source: str, call: int) -> None:
    outcome = await run_program(source, partial(_ask, questions, call))
    questions.end(call)  # questions still open in its threads
    with suppress(OSError, ValueError):  # the program may have closed it
        sys.stdout.flush()
    try:
        channel.send(_result(call, outcome))
    except (TooLongError, ValueError, RecursionError) as error:
        channel.send(_result(call, {"error": f"It returned too much: {error}", "notes": []}))


def _result(call: int, outcome: Message) -> Message:
    answer = {"structured": outcome, "text": "", "is_error": False, "media": [], "blocks": []}
    return {"result": call, **answer}


async def _ask(
    questions: Questions,
    call: int,
    tool: str,
    arguments: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Asks the server to call a tool, waiting while too many questions are open."""
    asked = {"tool": tool, "arguments": arguments}
    result: Mapping[str, Any] = await questions.ask_in_turn(call, asked)
    return result


async def run_program(source: str, ask: Ask) -> Message:
    """Runs a program and returns `value`, as JSON, or `error`, as text; and `notes`."""
    waiting: set[PendingCall] = set()
    try:
        code = compiled(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        return {"error": "".join(traceback.format_exception_only(error)).rstrip(), "notes": []}
    try:
        value = await _run(code, Namespace(ask, waiting))
    except BaseException as error:  # noqa: BLE001  # the agent gets any exception
        notes = [*_forgotten(waiting), *[BY_TOOLS] * isinstance(error, OSError)]
        return {"error": _format_trace(error), "notes": notes}
    finally:
        sys.modules[NAME] = OURS
    notes = _forgotten(waiting)
    try:
        plain, unsaid = _to_json(value)
        return {"value": plain, "notes": [*notes, *filter(None, [unsaid.strip("[]")])]}
    except (UnsendableError, RecursionError) as error:
        unsaid = f"What it returned is shown as text, because JSON cannot express it: {error}."
        return {"value": repr(value), "notes": [*notes, unsaid]}


def _to_json(value: object) -> tuple[object, str]:
    """Returns a value as JSON, and a note on what became null."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        from tools.conversion.results.jsonable import to_noted  # heavy, and rarely needed

        return to_noted(value)
    return value, ""


async def _run(code: CodeType, namespace: Namespace) -> object:
    main = ModuleType("__main__")
    sys.modules.update({"__main__": main, NAME: namespace})
    scope = vars(main)
    scope |= {NAME: namespace, "ToolError": ToolError, "asyncio": asyncio, "json": json}
    scope[RETURN] = ReturnedError
    try:
        made = eval(code, scope)  # noqa: S307  # this process is there to run it
        value = await made if isawaitable(made) else None
    except ReturnedError as returned:
        value = returned.value
    except SystemExit as exited:
        if exited.code:
            raise
        value = None
    return await value if isawaitable(value) else value


def _format_trace(error: BaseException) -> str:
    trace = traceback.TracebackException.from_exception(error)
    _clean(trace, set())
    text = "".join(trace.format()).rstrip()
    half = MOST_TRACE // 2
    return text if len(text) <= MOST_TRACE else f"{text[:half]}\n…\n{text[-half:]}"


def _clean(trace: traceback.TracebackException, seen: set[int]) -> None:
    if id(trace) in seen:
        return
    seen.add(id(trace))
    trace.stack = traceback.StackSummary.from_list(
        [
            traceback.FrameSummary(each.filename, each.lineno, each.name)
            for each in trace.stack
            if each.filename == FILE
        ]
    )
    inner = (trace.__cause__, trace.__context__, *(trace.exceptions or ()))
    for each in filter(None, inner):
        _clean(each, seen)


def _forgotten(waiting: set[PendingCall]) -> list[str]:
    said = sorted(map(str, waiting))
    more = [f"{len(said) - MOST_FORGOTTEN} more calls were not awaited"]
    told = said[:MOST_FORGOTTEN] + (more if len(said) > MOST_FORGOTTEN else [])
    return [f"{each}, so it was not called: write await." for each in told]
