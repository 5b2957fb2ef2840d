"""Classes as they are written: their bases, their constants, the names they are registered by."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Class", "Classes", "assigned", "calls_of", "first_of", "value_of"]

CONSTANTS = {"sys.maxsize": sys.maxsize}
"""Defaults that are no literals, by how they are written."""


@dataclass(frozen=True)
class Class:
    """A class as it is written.

    Attributes:
        path: The file that it is in.
        node: Its syntax.
        module: The constants of its file.
    """

    path: str
    node: ast.ClassDef
    module: Mapping[str, ast.expr]

    @property
    def source(self) -> str:
        """The class as text."""
        return ast.unparse(self.node)

    @property
    def bases(self) -> list[str]:
        """The names of what it is derived from."""
        return [ast.unparse(base).rpartition(".")[2] for base in self.node.bases]

    @property
    def constants(self) -> dict[str, ast.expr]:
        """What is assigned in its body, and in its file."""
        return {**self.module, **assigned(self.node.body)}

    def registered(self, registry: str) -> str | None:
        """The name under which a registry has it; None where it has it not."""
        for decorator in self.node.decorator_list:
            if isinstance(decorator, ast.Call) and (
                ast.unparse(decorator.func) == f"{registry}.register_module"
            ):
                args = decorator.args
                return str(value_of(args[0], self.module)[0]) if args else self.node.name
        return None

    def method(self, name: str) -> ast.FunctionDef | None:
        """A method of its own."""
        found = (each for each in self.node.body if isinstance(each, ast.FunctionDef))
        return next((each for each in found if each.name == name), None)


class Classes:
    """All classes of the release.

    Args:
        sources: Its files by their paths.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._found: dict[str, Class] = {}
        for path, text in sorted(sources.items()):
            if path.startswith(("data_juicer/ops/", "data_juicer/format/")):
                tree = ast.parse(text)
                module = assigned(tree.body)
                for node in tree.body:
                    if isinstance(node, ast.ClassDef):
                        self._found[node.name] = Class(path, node, module)

    def __iter__(self) -> Iterator[Class]:
        return iter(self._found.values())

    def line(self, cls: Class) -> Iterator[Class]:
        """The class, then what it is derived from, the nearest first."""
        yield cls
        for base in cls.bases:
            if base in self._found:
                yield from self.line(self._found[base])


def assigned(body: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """What is assigned to plain names in a body."""
    found: dict[str, ast.expr] = {}
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
    return found


def value_of(node: ast.expr, constants: Mapping[str, ast.expr]) -> tuple[Any, bool]:
    """What an expression stands for, and whether that is sure; else how it is written."""
    match node:
        case ast.Name(id=name) if name in constants:
            return value_of(constants[name], constants)
        case ast.JoinedStr(values=parts):
            texts = [
                str(
                    value_of(
                        each.value if isinstance(each, ast.FormattedValue) else each, constants
                    )[0]
                )
                for each in parts
            ]
            return "".join(texts), True
    try:
        value = ast.literal_eval(node)
        json.dumps(value)
    except (ValueError, TypeError):
        written = ast.unparse(node)
        return CONSTANTS.get(written, written), written in CONSTANTS
    return value, True


def first_of(line: Iterable[Class], attribute: str) -> Any:  # noqa: ANN401  # as it is written
    """What the first class that assigns an attribute gives it; None where none does."""
    for cls in line:
        if attribute in (own := assigned(cls.node.body)):
            return value_of(own[attribute], cls.constants)[0]
    return None


def calls_of(source: str, method: str) -> Iterator[ast.Call]:
    """The calls of a method of that name, on whatever object."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == method
        ):
            yield node
