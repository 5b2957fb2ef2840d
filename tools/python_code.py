"""Python code, run in a process of its own."""

from __future__ import annotations

import sys
from typing import Annotated

from pydantic import AfterValidator, Field

from tools.core.context import RequestContext
from tools.core.spec import Effect, ToolScope, tool
from tools.sandbox.processes.models import Command
from tools.sandbox.processes.transcript import MOST_SECONDS, Transcript, run_to_completion

__all__ = ["execute_python_code"]

BOOT = """
def run():
    import ast, builtins, linecache, sys
    source = sys.stdin.buffer.read().decode()
    sys.argv[:] = ["<code>"]
    linecache.cache["<code>"] = len(source), None, source.splitlines(True), "<code>"
    scope = vars(sys.modules["__main__"])
    del scope["run"]
    try:
        tree = ast.parse(source, "<code>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<code>", "exec", dont_inherit=True), scope)
        if last is not None:
            value = compile(ast.Expression(last.value), "<code>", "eval", dont_inherit=True)
            sys.displayhook(eval(value, scope))
    except Exception as error:
        import traceback
        inner = error.__traceback__.tb_next
        while inner and inner.tb_frame.f_code.co_filename != "<code>":
            inner = inner.tb_next
        traceback.print_exception(type(error), error, inner)
        sys.exit(1)
run()
"""
"""The program of the interpreter: it reads the code from its standard input, which is empty then,
and shows the value of a last expression as the interpreter's prompt does."""


def _encodable(code: str) -> str:
    try:
        code.encode()
    except UnicodeEncodeError:
        raise ValueError("send whole characters; it holds half of a surrogate pair.") from None
    return code


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.EXECUTE},
    destructive=True,
    tags=("system",),
    capabilities=("run Python code", "calculate", "analyse or transform data with Python"),
    timeout=MOST_SECONDS + 60,
)
async def execute_python_code(
    context: RequestContext,
    code: Annotated[
        str,
        Field(min_length=1, max_length=1_000_000, description="A last expression is shown"),
        AfterValidator(_encodable),
    ],
    timeout_seconds: Annotated[
        float, Field(gt=0, le=MOST_SECONDS, description="It is ended then")
    ] = 60,
) -> Transcript:
    """Runs Python code in a new process beneath the root, confined; nothing is kept of it."""
    return await run_to_completion(
        context.machine.processes,
        Command(
            argv=(sys.executable, "-I", "-u", "-X", "utf8", "-c", BOOT),
            stdin=code.encode(),
        ),
        seconds=timeout_seconds,
        report=context.report_progress,
    )
