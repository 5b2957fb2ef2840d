"""Checks the source of a tool as an agent sends it, without running it."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from tools.conversion.callables.docstrings import Documentation, read_docstring
from tools.core.errors import InvalidArgumentsError
from tools.core.invisible import codes, hidden

LONGEST = 50_000
"""Maximum characters of source, since the user reads all of it."""

MOST_PROBLEMS = 8

NAMESPACE = "tools"
"""The module of the tools, available without an import."""

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
    return InvalidArgumentsError(
        "implementation: " + "; ".join(shown),
        next_actions=[REMEDY],
    )


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
