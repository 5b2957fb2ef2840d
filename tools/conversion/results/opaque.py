"""What is said of an object of which nothing is known, never with an address in memory."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace
from typing import Any

__all__ = ["attributes", "error_text", "is_mute", "label", "own_text"]

ADDRESS = re.compile(r" (at|object at|of) 0x[0-9A-Fa-f]+")


def own_text(value: object) -> str | None:
    """The text that an object's class or the object itself has for it; None where it has none.

    An address in it is left out: it means nothing to a reader and differs in every run.
    """
    kind = type(value)
    if inspect.isroutine(value) or inspect.ismodule(value):
        return label(value)
    if isinstance(value, BaseException):
        return f"{kind.__name__}: {error_text(value)}".removesuffix(": ")
    if isinstance(value, SimpleNamespace) or hasattr(kind, "__attrs_attrs__"):
        return None  # their text is only a list of their attributes
    if is_mute(kind) and getattr(kind, "__repr__", None) is object.__repr__:
        return None
    return ADDRESS.sub("", error_text(value)) or label(kind)


def attributes(value: object) -> dict[str, Any]:
    """The public attributes of an object, in their order."""
    kind = type(value)
    names = [*_slots(kind), *getattr(value, "__dict__", ())]
    public = dict.fromkeys(name for name in names if not name.startswith("_"))
    return {name: getattr(value, name) for name in public if hasattr(value, name)}


def label(value: object) -> str:
    """The name of a class, function or module, with that of its module."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    return f"{module}.{name}" if module not in {None, "builtins"} else str(name)


def is_mute(kind: type) -> bool:
    """Whether a class says nothing of how its objects are to be shown to people."""
    return getattr(kind, "__str__", None) is object.__str__


def error_text(value: object) -> str:
    """The text of an object, empty where its own method for it fails."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # an author's method may raise anything
        return ""


def _slots(kind: type) -> list[str]:
    found: list[str] = []
    for base in reversed(kind.__mro__):
        slots = base.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return found
