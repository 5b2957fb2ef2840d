"""Checks a tool's source without running it, and turns programs that ran into such sources."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from storage.index.bounded import BoundedDict
from storage.models import Identity
from tools.conversion.callables.docstrings import Documentation, read_docstring
from tools.core.errors import InvalidArgumentsError
from tools.core.unicode_safety import codes, hidden

LONGEST = 50_000  # maximum characters of source, since the user reads all of it

MOST_PROBLEMS = 8

NAMESPACE = "tools"  # the module of the tools, available without an import

REMEDY = (
    "Send all of it again: imports of the standard library, helpers whose names begin with an"
    " underscore, and one public function with types and a docstring."
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Draft:
    """Source that can become a tool."""

    source: str
    function: str
    parameters: tuple[str, ...]
    said: Documentation


def read_draft(source: str) -> Draft:
    """Parses a source and checks its form.

    The checks let a user rely on what they read; they do not prevent harm, which is the job of the
    confined process.
    """
    source = source.replace("\r\n", "\n").strip("\n") + "\n"
    check_text("implementation", source)
    try:
        tree = ast.parse(source)
        problems = [*_problems(tree), *_unreadable(source)]
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        raise _refused([f"{place}{type(error).__name__}: {error.msg}"]) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise _refused([f"it cannot be parsed: {error or type(error).__name__}"]) from None
    if problems:
        raise _refused(problems)
    (function,) = _public(tree)
    names = tuple(each.arg for each in _parameters(function))
    return Draft(source, function.name, names, read_docstring(ast.get_docstring(function)))


def check_text(parameter: str, text: str) -> None:
    """Rejects text with invisible or reordering characters."""
    if odd := hidden(text):
        line = text[: text.index(odd[0])].count("\n") + 1
        raise InvalidArgumentsError(
            f"{parameter}: line {line} has invisible characters ({codes(odd[:MOST_PROBLEMS])}).",
            next_actions=["Leave them out, or write an escape such as \\u200d in a string."],
        )


def _refused(problems: list[str]) -> InvalidArgumentsError:
    shown = problems[:MOST_PROBLEMS]
    return InvalidArgumentsError("implementation: " + "; ".join(shown), next_actions=[REMEDY])


def _problems(tree: ast.Module) -> Iterator[str]:
    public = _public(tree)
    if len(public) != 1:
        names = ", ".join(each.name for each in public) or "none"
        yield f"it must have exactly one public function, but has {names}"
    for function in public:
        yield from _untyped(function)
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for each in node.names:
                    yield from _import(each.name, node.lineno)
            case ast.ImportFrom():
                yield from _import(f"{'.' * node.level}{node.module or ''}", node.lineno)


def _public(tree: ast.Module) -> list[Function]:
    functions = (each for each in tree.body if isinstance(each, Function))
    return [each for each in functions if not each.name.startswith("_")]


def _untyped(function: Function) -> Iterator[str]:
    bare = [each.arg for each in _parameters(function) if each.annotation is None]
    if bare:
        yield f"line {function.lineno}: {function.name} has no types for {', '.join(bare)}"
    if function.args.vararg or function.args.kwarg:
        yield f"line {function.lineno}: {function.name} must name each of its parameters"


def _parameters(function: Function) -> list[ast.arg]:
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def _import(module: str, line: int) -> Iterator[str]:
    package = module.partition(".")[0]
    if package == NAMESPACE:
        yield f"line {line}: {NAMESPACE} needs no import"
    elif package not in sys.stdlib_module_names:
        yield f"line {line}: {module} is not in the standard library"


def _unreadable(source: str) -> Iterator[str]:
    """Yields names with non-ASCII letters, which may look like other names."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and not token.string.isascii():
            yield f"line {token.start[0]}: the name {token.string!r} is not all ASCII"


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


MOST_SESSIONS = 1_000
"""Maximum remembered sessions; those without a program for the longest are dropped."""


class LastPrograms:
    """Stores one program per session."""

    def __init__(self) -> None:
        self._programs: BoundedDict[tuple[Identity, str], str] = BoundedDict(MOST_SESSIONS)

    def keep(self, identity: Identity, session_id: str, code: str) -> None:
        """Stores a program that ended well, replacing an earlier one."""
        self._programs[identity, session_id] = code

    def get(self, identity: Identity, session_id: str) -> str | None:
        """Returns the session's program, or None."""
        return self._programs.get((identity, session_id))
