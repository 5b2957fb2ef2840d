"""Turns programs that ran into functions that can be called again with other values."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tools.core.errors import InvalidArgumentsError

TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}
"""The Python type of each JSON type."""


def function_of(program: str, name: str, parameters: Mapping[str, Any] | None) -> str:
    """Returns the source of an async function that does what a program did.

    The value that the program assigns to a parameter becomes its default.
    """
    tree = _parsed(program)
    lines: list[str | None] = [*program.split("\n")]
    in_strings = set(_begun_in_strings(tree))
    _return_last(tree, lines, program)
    _drop_imports(tree, lines)
    properties = parameters.get("properties") if parameters else {}
    if not isinstance(properties, Mapping):
        raise InvalidArgumentsError(
            "parameters: it has no properties.",
            next_actions=['Send {"properties": {"NAME": {"type": "string"}}}, or leave it out.'],
        )
    signature = ["*"] if properties else []
    assigned = _assignments(tree)
    for parameter, schema in properties.items():
        if (found := assigned.get(parameter)) is None:
            raise InvalidArgumentsError(
                f"parameters: the program sets {parameter} to no plain value on a line of its own.",
                next_actions=[
                    f"Run it with a line such as `{parameter} = …` first, then create the tool."
                ],
            )
        _replace(lines, found)
        signature.append(f"{parameter}: {_type(parameter, schema)} = {ast.unparse(found.value)}")
    body = (
        line if number in in_strings or not line.strip() else f"    {line}"
        for number, line in enumerate(lines, start=1)
        if line is not None
    )
    return f"async def {name}({', '.join(signature)}):\n" + "\n".join(body) + "\n"


def _parsed(program: str) -> ast.Module:
    """Parses a program; its own process could, but here part of the stack is already used."""
    try:
        return ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidArgumentsError(
            "from_run: the program is nested too deeply.",
            next_actions=["Send the source as implementation, in shorter expressions."],
        ) from None


def _return_last(tree: ast.Module, lines: list[str | None], program: str) -> None:
    """Makes a program return its last expression, or what that prints."""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Return):
        return
    before, after = "return (", ")"
    match last:
        case ast.Expr(ast.Call(ast.Name("print"), [only], [])):
            answer: ast.expr = only
        case ast.Expr(ast.Call(ast.Attribute(ast.Name("asyncio"), "run"), [only], [])):
            answer, before = only, "return (await "
        case ast.Expr():
            answer = last.value
        case _:
            raise InvalidArgumentsError(
                "from_run: the program does not end with an expression.",
                next_actions=["Run it with its answer as the last line, then create the tool."],
            )
    head = program.split("\n")[last.lineno - 1].encode()[: last.col_offset].decode()
    said = (ast.get_source_segment(program, answer) or "").split("\n")
    said[0] = f"{head}{before}{said[0]}"
    said[-1] += after
    _replace(lines, last)
    lines[answer.lineno - 1 : answer.lineno - 1 + len(said)] = said


def _drop_imports(tree: ast.Module, lines: list[str | None]) -> None:
    """Replaces imports from `tools` by assignments, since a function already has the namespace."""
    for node in tree.body:
        match node:
            case ast.Import(names=[ast.alias(name="tools", asname=None)]):
                _replace(lines, node)
            case ast.ImportFrom(module="tools", level=0):
                named = (each for each in node.names if each.name != "ToolError")
                said = (f"{each.asname or each.name} = tools.{each.name}" for each in named)
                _replace(lines, node, "; ".join(said) or None)


def _replace(lines: list[str | None], node: ast.stmt, text: str | None = None) -> None:
    end = node.end_lineno or node.lineno
    lines[node.lineno - 1 : end] = [text, *[None] * (end - node.lineno)]


def _assignments(tree: ast.Module) -> dict[str, ast.Assign]:
    """Returns, by name, the first assignment of a plain value on a line of its own."""
    begun = Counter(each.lineno for each in tree.body)
    found: dict[str, ast.Assign] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                if begun[node.lineno] == 1 and _is_plain(node.value):
                    found.setdefault(name, node)
    return found


def _is_plain(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _type(name: str, schema: object) -> str:
    found = schema.get("type") if isinstance(schema, Mapping) else None
    if found not in TYPES:
        raise InvalidArgumentsError(
            f"parameters: {name} has the type {found!r}.",
            next_actions=[f"Use one of {', '.join(TYPES)}."],
        )
    return TYPES[found]


def _begun_in_strings(tree: ast.Module) -> Iterator[int]:
    """Yields the lines that begin inside a string, which must not be indented."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            yield from range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
