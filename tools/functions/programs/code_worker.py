"""Runs in a code worker's process: executes a program once, or serves a created tool."""

from __future__ import annotations

import ast
import asyncio
import json
import linecache
import sys
import traceback
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from inspect import isawaitable
from types import CodeType, ModuleType
from typing import Any

from tools.core.errors import UnsendableError
from tools.functions.programs.namespace import NAME, Ask, Namespace, PendingCall, ToolError
from tools.functions.workers.channel import Channel
from tools.functions.workers.messages import Loaded, Message, TooLongError

FILE = "<program>"  # the file name in tracebacks
RETURN = "__returned__"  # the name under which a program finds ReturnedError
OURS = sys.modules[NAME]  # our own package, whose name the namespace takes while the program runs
MOST_TRACE = 4_000  # maximum characters of a traceback that are reported: its beginning and its end

BY_TOOLS = "A program reaches files and the network by tools alone: await tools.read_file(…)."
"""Advice for a program that could not open a file or reach a host."""

MOST_FORGOTTEN = 3  # maximum calls without `await` that are named


def main(channel: Channel) -> None:
    """Runs what the server sends first, and then exits."""
    load = channel.first()
    if load.kind == "program":
        channel.send({"loaded": asdict(Loaded([], [], []))})
        asyncio.run(_serve(channel, load.source))
        return
    # A function that can call tools as programs do.
    from tools.functions.workers.host import current_peer, serve  # takes half a second

    async def ask(tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return await current_peer().answer(tool, arguments, in_turn=True)

    serve(channel, load, _names_without_import(Namespace(ask, set())))


async def _serve(channel: Channel, source: str) -> None:
    with ExitStack() as running:
        async for message in channel.messages():
            if "call" in message:
                task = asyncio.create_task(_answer(channel, source, message["call"]))
                running.callback(task.cancel)


async def _answer(channel: Channel, source: str, call: int) -> None:
    questions = channel.questions

    async def ask(tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        asked = {"tool": tool, "arguments": arguments}
        result: Mapping[str, Any] = await questions.ask_in_turn(call, asked)
        return result

    outcome = await run_program(source, ask)
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
        from tools.conversion.results.jsonable import convert  # heavy, and rarely needed

        plain, _, note = convert(value, [])
        return plain, note
    return value, ""


def _names_without_import(namespace: Namespace) -> dict[str, object]:
    """Returns the names that programs and created tools have without an import."""
    return {NAME: namespace, "ToolError": ToolError, "asyncio": asyncio, "json": json}


async def _run(code: CodeType, namespace: Namespace) -> object:
    main = ModuleType("__main__")
    sys.modules.update({"__main__": main, NAME: namespace})
    scope = vars(main)
    scope |= {**_names_without_import(namespace), RETURN: ReturnedError}
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


class ReturnedError(BaseException):
    """Ends a program with a value, for a `return` outside of any function."""

    def __init__(self, value: object = None) -> None:
        super().__init__()
        self.value = value


def compiled(source: str) -> CodeType:
    """Compiles a program, and registers its lines for tracebacks.

    Outside of functions it may `await` and `return`, and a last expression is returned.
    `asyncio.run` is awaited there, since the program already runs in an event loop.
    """
    linecache.cache[FILE] = len(source), None, source.splitlines(keepends=True), FILE
    tree = ast.parse(source, FILE)
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Return(last.value), last)
    ast.fix_missing_locations(_Outside().visit(tree))
    code: CodeType = compile(
        tree, FILE, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    return code


class _Outside(ast.NodeTransformer):
    """Rewrites code outside of functions and classes."""

    def visit(self, node: ast.AST) -> ast.AST:
        """Leaves functions and classes unchanged."""
        inside = (ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef, ast.Lambda)
        return node if isinstance(node, inside) else super().visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        value = [] if node.value is None else [node.value]
        called = ast.Call(ast.Name(RETURN, ast.Load()), value, [])
        return ast.copy_location(ast.Raise(called, None), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(ast.Name("asyncio"), "run"), [made], []):
                return ast.copy_location(ast.Await(made), node)
        return node
