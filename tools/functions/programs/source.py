"""Compiles a program's source, as agents write it, to awaitable code."""

from __future__ import annotations

import ast
import linecache
from types import CodeType

FILE = "<program>"
"""The file name in tracebacks."""

RETURN = "__returned__"
"""The name under which a program finds ReturnedError."""


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
