"""How functions of every kind run, end and fail."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import itertools
import json
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pytest
from pydantic import BaseModel

from tools.conversion import invocation
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.conversion.invocation import BRIEF
from tools.core.content import Media
from tools.core.context import Link, RequestContext
from tools.core.errors import ConflictError, InvalidArgumentsError, ToolFailedError, as_tool_error
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolSpec

Heard = list[tuple[float, str | None]]
PICTURE = Media("image", b"?", "image/png")
CALLER: contextvars.ContextVar[str] = contextvars.ContextVar("caller", default="nobody")


async def run(
    function: Callable[..., Any], heard: Heard | None = None, *, source: str = "function"
) -> ToolResult:
    """Calls a tool that is made of the function, without arguments."""

    async def report(done: float, total: float | None, message: str | None) -> None:
        assert total is None
        if heard is not None:
            heard.append((done, message))
        await anyio.lowlevel.checkpoint()

    spec = FunctionToMCP.convert(function, name="tool", source=source)
    return await spec.invoke(spec.validate({}), RequestContext(link=Link(report)))


async def invoke(spec: ToolSpec, context: RequestContext) -> None:
    await spec.invoke({}, context)


def count_to_two() -> Iterator[int]:
    yield 1
    yield 2


async def count_to_two_later() -> AsyncIterator[int]:
    yield 1
    await anyio.lowlevel.checkpoint()
    yield 2


async def give_generator() -> Iterator[int]:
    return count_to_two()


async def give_async_generator() -> AsyncIterator[int]:
    return count_to_two_later()


class Counter:
    """Iterates without being a generator."""

    def __init__(self) -> None:
        self.closed = False
        self._numbers = iter((1, 2))

    def __iter__(self) -> Counter:
        return self

    def __next__(self) -> int:
        return next(self._numbers)

    def close(self) -> None:
        self.closed = True

    def method(self) -> Iterator[int]:
        yield from self

    def __call__(self) -> Iterator[int]:
        yield from self


class AsyncCounter(Counter):
    def __aiter__(self) -> AsyncCounter:
        return self

    async def __anext__(self) -> int:
        for number in self._numbers:
            return number
        raise StopAsyncIteration


class AsyncOnly:
    def __aiter__(self) -> AsyncIterator[int]:
        return count_to_two_later()


def _undecorated(limit: int = 2) -> Iterator[int]:
    yield from range(1, limit + 1)


STREAMS: list[Callable[..., Any]] = [
    count_to_two,
    count_to_two_later,
    give_generator,
    give_async_generator,
    lambda: count_to_two_later(),  # noqa: PLW0108  # a plain function around it is the shape
    Counter,
    AsyncCounter,
    AsyncOnly,
    Counter().method,
    Counter(),
    functools.partial(_undecorated, 2),
    functools.wraps(count_to_two)(lambda: count_to_two()),  # noqa: PLW0108  # the same
    lambda: map(int, "12"),
    lambda: itertools.islice(itertools.count(1), 2),
]


@pytest.mark.parametrize("function", STREAMS)
async def test_every_item_is_reported_and_all_are_the_result(function: Callable[..., Any]) -> None:
    if isinstance(function, type):
        function = functools.partial(lambda kind: kind(), function)
    heard: Heard = []
    assert (await run(function, heard)).structured == {"result": [1, 2]}
    assert heard == [(1, "1"), (2, "2")]


class Named(BaseModel):
    name: str

    def to_text(self) -> str:
        return f"It is {self.name}"


async def test_an_item_is_reported_in_few_words() -> None:
    def tell() -> Iterator[Any]:
        yield from ("plain é", "a" * 500, {"a": [1, None]}, Named(name="Ann"), PICTURE)

    heard: Heard = []
    result = await run(tell, heard)
    words = [message for _, message in heard]
    cut = "a" * (BRIEF - 1) + "…"
    assert words == ["plain é", cut, '{"a":[1,null]}', "It is Ann", "Media"]
    assert result.structured["result"][1] == "a" * 500
    assert result.media == (PICTURE,)


async def test_what_a_generator_returns_is_part_of_the_result() -> None:
    def both() -> Generator[int, None, str]:
        yield 1
        return "done"

    def untyped():  # type: ignore[no-untyped-def]  # noqa: ANN202  # the shape
        yield 1
        return "done"

    for function in (both, untyped):
        result = await run(function)
        assert result.structured == {"items": [1], "returned": "done"}
    schema = FunctionToMCP.convert(both).output_schema
    assert schema is not None
    assert schema["properties"]["items"] == {"type": "array", "items": {"type": "integer"}}
    assert schema["properties"]["returned"] == {"type": "string"}
    assert set(schema["required"]) == {"items", "returned"}


async def test_a_generator_runs_in_one_thread_that_is_not_the_loops() -> None:
    def ask() -> Iterator[int]:
        connection = sqlite3.connect(":memory:")  # works in the thread that made it only
        for (number,) in connection.execute("VALUES (1), (2)"):
            yield number
            yield threading.get_ident()
        connection.close()

    first, here, second, there = (await run(ask)).structured["result"]
    assert (first, second) == (1, 2)
    assert here == there != threading.get_ident()


async def test_a_cursor_is_read_in_its_thread_and_closed() -> None:
    cursors: list[sqlite3.Cursor] = []

    def query() -> sqlite3.Cursor:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        cursors.append(connection.execute("VALUES (1), (2)"))
        return cursors[0]

    spec = FunctionToMCP.convert(query)
    result = await spec.invoke({}, RequestContext())
    assert result.structured == {"result": [[1], [2]]}
    with pytest.raises(sqlite3.ProgrammingError, match="closed cursor"):
        cursors[0].fetchone()
    cursors[0].connection.close()


async def test_an_open_file_is_refused_and_not_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb\n", encoding="utf-8")
    with (tmp_path / "a.txt").open(encoding="utf-8") as file:
        with pytest.raises(ToolFailedError, match="returned an open file; return what is in it"):
            await run(lambda: file)
        assert file.read() == "a\nb\n"


async def test_an_iterator_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocation, "MOST_ITEMS", 100)
    ends = []

    def endless() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            ends.append("plain")

    async def endless_later() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            ends.append("asynchronous")

    for function in (endless, endless_later):
        with pytest.raises(ToolFailedError, match="was stopped after 100 items"):
            await run(function)
    assert ends == ["plain", "asynchronous"]


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
async def test_a_cancelled_generator_stops_at_its_next_item_and_is_closed(effect: Effect) -> None:
    started, closed = anyio.Event(), threading.Event()

    def forever() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            closed.set()

    async def report(_done: float, _total: float | None, _message: str | None) -> None:
        started.set()
        await anyio.lowlevel.checkpoint()

    spec = FunctionToMCP.convert(forever, effects={effect})
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(invoke, spec, RequestContext(link=Link(report)))
            await started.wait()
            group.cancel_scope.cancel()
        assert effect is Effect.READ or closed.is_set()
        await anyio.to_thread.run_sync(closed.wait)


async def test_a_cancelled_async_generator_is_closed_even_if_it_never_waits() -> None:
    started, ends = anyio.Event(), []

    async def forever() -> AsyncIterator[int]:
        try:
            while True:
                started.set()
                yield 1
        finally:
            ends.append("closed")

    spec = FunctionToMCP.convert(forever)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(invoke, spec, RequestContext())
            await started.wait()
            group.cancel_scope.cancel()
    assert ends == ["closed"]


async def test_an_error_between_items_closes_the_generator_and_is_the_calls() -> None:
    ends = []

    def broken() -> Iterator[int]:
        try:
            yield 1
            raise ConflictError("It was changed meanwhile.")
        finally:
            ends.append("closed")

    counter = Counter()
    with pytest.raises(ConflictError):
        await run(broken)
    await run(lambda: counter)
    assert ends == ["closed"]
    assert counter.closed


class Later:
    """Awaitable without being a coroutine."""

    def __await__(self) -> Generator[Any, None, int]:
        yield from anyio.lowlevel.checkpoint().__await__()
        return 7


def _done() -> concurrent.futures.Future[int]:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    future.set_result(7)
    return future


async def _task() -> asyncio.Future[int]:
    return asyncio.ensure_future(_seven())


async def _seven() -> int:
    await anyio.lowlevel.checkpoint()
    return 7


async def _twice() -> Awaitable[int]:
    return _seven()


class Asynchronous:
    async def __call__(self) -> int:
        return await _seven()


@pytest.mark.parametrize(
    "function",
    [
        _seven,
        lambda: _seven(),  # noqa: PLW0108  # a plain function around it is the shape
        functools.partial(_seven),
        _twice,
        _task,
        lambda: Later(),  # noqa: PLW0108  # the same
        _done,
        Asynchronous(),
        functools.wraps(_seven)(lambda: _seven()),  # noqa: PLW0108  # the same
    ],
)
async def test_whatever_can_be_awaited_is_awaited(function: Callable[..., Any]) -> None:
    assert (await run(function)).structured == {"result": 7}


async def test_context_variables_reach_a_plain_function_and_a_generator() -> None:
    CALLER.set("ann")

    def generated() -> Iterator[str]:
        yield CALLER.get()

    assert (await run(lambda: CALLER.get())).text == "ann"  # noqa: PLW0108  # a builtin has no signature
    assert (await run(generated)).structured == {"result": ["ann"]}


class UnspeakableError(ValueError):
    def __str__(self) -> str:
        raise RuntimeError


def failing(error: BaseException) -> list[Callable[..., Any]]:
    """A function, a coroutine function and two generators that raise the error at once."""

    def plain() -> NoReturn:
        raise error

    async def later() -> NoReturn:
        raise error

    def generator() -> Iterator[int]:
        yield 1
        raise error

    async def async_generator() -> AsyncIterator[int]:
        yield 1
        raise error

    return [plain, later, generator, async_generator]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileNotFoundError("no such bed"), "FileNotFoundError: no such bed"),
        (KeyError("bed"), "KeyError: 'bed'"),
        (ValueError("It is about no argument."), "ValueError: It is about no argument."),
        (ExceptionGroup("one", [ValueError("Inside.")]), "ValueError: Inside."),
        (ValueError(), "ValueError"),
        (UnspeakableError(), "UnspeakableError"),
        (RuntimeError("\x1b[31mred\ud800\nblue"), "RuntimeError: ␛[31mred?\nblue"),
        (RuntimeError("x" * 90_000), f"RuntimeError: {'x' * 1_999}…"),
    ],
    ids=lambda each: str(each)[:20] if isinstance(each, str) else type(each).__name__,
)
async def test_an_exception_is_told_by_its_type_and_its_text(error: Exception, told: str) -> None:
    for function in failing(error):
        with pytest.raises(ToolFailedError) as caught:
            await run(function)
        assert caught.value.message == told
        assert caught.value.next_actions == ()
        assert caught.value.__cause__ in {error, *getattr(error, "exceptions", ())}


async def test_a_value_error_that_a_function_raises_itself_is_about_its_arguments() -> None:
    def check(name: str) -> None:
        raise ValueError(name)

    async def refuse(name: str) -> None:
        await anyio.lowlevel.checkpoint()
        try:
            check(name)
        finally:
            await anyio.lowlevel.checkpoint()

    for function in (check, refuse):
        spec = FunctionToMCP.convert(function)
        for name, told in (("No.", "No."), ("", "The tool refused the arguments.")):
            with pytest.raises(InvalidArgumentsError) as caught:
                await spec.invoke(spec.validate({"name": name}), RequestContext())
            assert caught.value.message == told


async def test_a_value_error_that_something_else_raises_is_not_about_the_arguments() -> None:
    def read(name: str) -> int:
        return int(name)

    def parse(name: str) -> object:
        return json.loads(name)

    for function, told in ((read, "ValueError: invalid literal"), (parse, "JSONDecodeError: ")):
        spec = FunctionToMCP.convert(function)
        with pytest.raises(ToolFailedError, match=told):
            await spec.invoke(spec.validate({"name": "x"}), RequestContext())


async def test_its_author_reads_a_traceback_of_the_function_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for place in range(4):
        function = failing(ZeroDivisionError("by design"))[place]
        with pytest.raises(ToolFailedError) as caught:
            await run(function)
        as_tool_error(caught.value, "tool")
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert f"in {function.__name__}\n    raise error\n" in record.getMessage()
        assert record.getMessage().count("File ") == 1
        caplog.clear()


async def test_what_a_function_of_ours_raises_unforeseen_is_told_to_nobody() -> None:
    for error, kind in ((KeyError("bed"), KeyError), (SystemExit(3), RuntimeError)):
        for function in failing(error):
            with pytest.raises(kind):
                await run(function, source="builtin")


async def test_a_value_that_the_function_itself_got_wrong_is_no_wrong_argument() -> None:
    def invalid() -> None:
        Named.model_validate({"name": 1})

    def unserializable() -> None:
        named = Named(name="a")
        named.name = object()  # type: ignore[assignment]  # broken on purpose
        named.model_dump_json()

    for function in (invalid, unserializable):
        with pytest.raises(ToolFailedError, match=r"^(Validation|PydanticSerialization)Error: "):
            await run(function)


@pytest.mark.parametrize(
    "error", [ConflictError("Changed."), ExceptionGroup("one", [ConflictError("Changed.")])]
)
async def test_an_error_of_the_tree_is_itself(error: Exception) -> None:
    for function in failing(error):
        with pytest.raises(ConflictError, match=r"Changed\."):
            await run(function)


@pytest.mark.parametrize(
    "error",
    [
        StopIteration(3),
        StopAsyncIteration(),
        GeneratorExit(),
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        concurrent.futures.CancelledError(),
        RecursionError(),
        BaseExceptionGroup("one", [KeyboardInterrupt()]),
        ExceptionGroup("two", [ValueError("a"), ValueError("b")]),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_whatever_else_is_raised_fails_the_call_and_no_more(error: BaseException) -> None:
    told = "|".join(type(each).__name__ for each in (error, *getattr(error, "exceptions", ())))
    for function in failing(error):
        with pytest.raises(ToolFailedError, match=told):
            await run(function)


async def test_awaiting_something_cancelled_is_not_a_cancelled_call() -> None:
    async def wait_for_nothing() -> None:
        task = asyncio.ensure_future(anyio.sleep_forever())
        await anyio.lowlevel.checkpoint()
        task.cancel()
        await task

    with pytest.raises(ToolFailedError, match="CancelledError"):
        await run(wait_for_nothing)


@pytest.mark.parametrize("native", [True, False])
async def test_a_cancelled_call_is_cancelled_whatever_the_function_makes_of_it(
    native: bool,
) -> None:
    started, reached = anyio.Event(), []

    async def stubborn() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            raise ConflictError("Not now.") from error

    async def patient() -> None:
        started.set()
        await anyio.sleep_forever()

    async def call() -> None:
        await run(patient if native else stubborn)
        reached.append("the line after")

    with anyio.fail_after(5):
        if native:
            task = asyncio.ensure_future(call())
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await started.wait()
                group.cancel_scope.cancel()
    assert not reached


async def test_a_text_of_its_own_that_fails_is_no_fault_of_the_arguments() -> None:
    class Report(BaseModel):
        def to_text(self) -> str:
            raise ValueError("secret")

    def write(name: str = "a") -> Report:
        return Report()

    spec = FunctionToMCP.convert(write)
    with pytest.raises(ToolFailedError, match="ValueError: secret"):
        await spec.invoke(spec.validate({}), RequestContext())
