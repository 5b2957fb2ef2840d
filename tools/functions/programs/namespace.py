"""Implements the namespace `tools` of a program: every callable tool as an async function."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from keyword import iskeyword
from types import ModuleType, TracebackType
from typing import Any, NoReturn

from tools.core.errors import ToolError as Failure
from tools.functions.workers.messages import encode_error

SHOWN_KEYS = 20  # maximum keys that are listed when a missing one is used


class Data(dict[str, Any]):
    """A JSON object whose keys are also attributes, unless a method has that name."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any JSON
        if name in self:
            return self[name]
        raise AttributeError(self._none(name), name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __missing__(self, key: str) -> NoReturn:
        raise KeyError(self._none(key))

    def _none(self, key: object) -> str:
        keys = list(map(repr, self))
        more = ", …" if len(keys) > SHOWN_KEYS else ""
        return f"no key {key!r}; there are {', '.join(keys[:SHOWN_KEYS])}{more}"


def data_of(value: Any) -> Any:  # noqa: ANN401  # decoded JSON
    """Returns the value with every object converted to Data."""
    if isinstance(value, dict):
        return Data({key: data_of(each) for key, each in value.items()})
    if isinstance(value, list):
        return list(map(data_of, value))
    return value


NAME = "tools"

POSITIONAL = "*"  # the argument that holds the positional values; the server knows their names
ALONE = "result"  # the only key of a result that is not an object itself

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Calls a tool by name with arguments, including positional ones; returns its encoded result."""


class ToolError(Exception):
    """A failed call, as a program may catch it.

    Attributes:
        error_type: One of the closed list.
        message: What was wrong, with which value.
        suggestions: Values or names that would have worked.
        next_actions: What to do now.
    """

    __module__ = NAME  # its module in tracebacks and for imports

    def __init__(self, text: str, failure: Mapping[str, Any]) -> None:
        super().__init__(text)
        self.error_type: str = failure["error_type"]
        self.message: str = failure["message"]
        self.suggestions: list[str] = failure["suggestions"]
        self.next_actions: list[str] = failure["next_actions"]


class PendingCall(Coroutine[Any, Any, Any]):
    """A call that begins when it is awaited, and raises if its result is used before."""

    def __init__(
        self,
        name: str,
        line: int,
        make: Callable[[], Coroutine[Any, Any, Any]],
        waiting: set[PendingCall],  # the calls that have not begun, so far including this one
    ) -> None:
        self._name = name
        self._line = line
        self._make = make
        self._made: Coroutine[Any, Any, Any] | None = None
        self._waiting = waiting
        waiting.add(self)

    def _begin(self) -> Coroutine[Any, Any, Any]:
        if self._made is None:
            self._waiting.discard(self)
            self._made = self._make()
        return self._made

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._begin().__await__()

    def send(self, value: Any) -> Any:  # noqa: ANN401  # as the event loop calls it
        """Resumes the call."""
        return self._begin().send(value)

    def throw(
        self,
        typ: Any,  # noqa: ANN401  # as the event loop calls it
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Any:  # noqa: ANN401  # the same
        """Resumes the call with an exception."""
        return self._begin().throw(*filter(None, (typ, val, tb)))

    def close(self) -> None:
        """Ends the call."""
        if self._made is not None:
            self._made.close()

    def __str__(self) -> str:
        return f"{NAME}.{self._name}(…) in line {self._line} was not awaited"

    def __repr__(self) -> str:
        return f"<{self}>"

    def _used(self, *_given: object) -> NoReturn:
        raise TypeError(f"{self}: write await {NAME}.{self._name}(…) to get its result")

    __bool__ = __contains__ = __getitem__ = __iter__ = __len__ = _used

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self} and has no {name!r}: write await {NAME}.{self._name}(…)")


class Namespace(ModuleType):
    """The module `tools` of a program, which can also be imported."""

    ToolError = ToolError

    def __init__(self, ask: Ask, waiting: set[PendingCall]) -> None:
        super().__init__(NAME, "The tools that may be called: await tools.NAME(argument=…).")
        self._ask = ask
        self._waiting = waiting  # gets the calls that were made without awaiting them

    def __getattr__(self, name: str) -> Callable[..., PendingCall]:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*values: Any, **arguments: Any) -> PendingCall:  # noqa: ANN401  # any JSON
            line = sys._getframe(1).f_lineno  # noqa: SLF001  # no other way to the caller's line
            given = {_meant(each): value for each, value in arguments.items()}
            if values:
                given[POSITIONAL] = values
            return PendingCall(name, line, lambda: self._call(name, given), self._waiting)

        return call

    def __getitem__(self, name: str) -> Callable[..., PendingCall]:
        return self.__getattr__(name)

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401  # decoded JSON
        try:
            result = await self._ask(name, arguments)
        except Failure as error:  # not the tool's: the server did not make the call
            failure = encode_error(error)
            result = {"is_error": True, "structured": failure, "text": str(error)}
        if result["is_error"]:
            raise ToolError(result["text"], result["structured"])
        structured = result["structured"]
        if structured.keys() == {ALONE}:
            return data_of(structured[ALONE])
        return data_of(structured) if structured else result["text"]


def _meant(argument: str) -> str:
    """Returns the name of an argument that is a Python keyword, written `as_` for `as`."""
    plain = argument.removesuffix("_")
    return plain if iskeyword(plain) else argument
