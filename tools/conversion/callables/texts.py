"""What the docstrings of a callable say of it: of a class, also those of its bases and makers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_origin

from tools.conversion.callables.callables import underlying
from tools.conversion.callables.docstrings import Documentation, read_docstring
from tools.conversion.callables.hints import is_library

__all__ = ["description", "documentation"]


def documentation(function: Any) -> Documentation:
    """What is said of a function, method, class or object with `__call__`.

    The description is the first that is found: a class's own before that of its `__init__`, an
    object's `__call__`'s before that of its class. Parameters are looked for in all of them.
    """
    called = underlying(function)
    cls: Any = get_origin(called) or called
    read = [read_docstring(text) for text in _docstrings(called, cls)]
    first = next((each for each in read if each.description), read[0])
    inherited = _inherited(cls) if inspect.isclass(cls) else []
    if len(read) == 1 and not inherited:
        return first
    parameters = {
        name: text
        for each in reversed([*read, *inherited])
        for name, text in each.parameters.items()
    }
    return replace(first, parameters=parameters)


def description(said: Documentation) -> str:
    """A tool's description: what is said of it, its result, and the exceptions it may end in.

    Few clients show a model the output schema, where the text of the result stands too.
    """
    parts = [said.description]
    if said.returns:
        parts.append(f"Returns: {said.returns}")
    if said.raises:
        parts.append("Raises: " + "; ".join(_raised(*each) for each in said.raises.items()))
    return "\n\n".join(filter(None, parts))


def _raised(name: str, text: str) -> str:
    return f"{name}: {text.rstrip('.')}" if text else name


def _docstrings(function: Any, cls: Any) -> Iterator[str | None]:
    if inspect.isclass(cls):
        yield _own_docstring(cls)
        if inspect.isfunction(cls.__init__) and not is_library(cls.__init__):
            yield cls.__init__.__doc__
    elif inspect.isroutine(function):
        yield inspect.getdoc(function)
    else:
        yield vars(function).get("__doc__") if hasattr(function, "__dict__") else None
        yield type(function).__call__.__doc__
        yield inspect.getdoc(function)


def _inherited(cls: type) -> list[Documentation]:
    """What the bases of a class say; their fields are its own."""
    return [
        read_docstring(_own_docstring(base)) for base in cls.__mro__[1:] if not is_library(base)
    ]


def _own_docstring(cls: type) -> str | None:
    """A class's docstring, unless Python wrote it: `Point(x: int, y: int)` says nothing more."""
    text = vars(cls).get("__doc__")
    written = isinstance(text, str) and text.startswith(f"{cls.__name__}(")
    return None if written or text == "An enumeration." else text
