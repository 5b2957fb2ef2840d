"""What a function depends on: made for each call, shared in it, left after it, and never given."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
import fastmcp.dependencies
import pytest

from storage.models import Identity
from tools.authoring import Depends, RequestContext
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import Origin
from tools.core.errors import InvalidArgumentsError, ToolDefinitionError, ToolFailedError
from tools.core.spec import ToolSpec

heard: list[str] = []


@pytest.fixture(autouse=True)
def _silence() -> None:
    heard.clear()


async def run(spec: ToolSpec, raw: dict[str, Any] | None = None) -> Any:
    result = await spec.invoke(
        spec.validate(raw or {}), RequestContext(Origin(Identity(user_id="ann")))
    )
    assert result.structured is not None
    return result.structured.get("result", result.structured)


async def call(function: Callable[..., Any], **raw: Any) -> Any:
    return await run(FunctionToMCP.convert(function), raw)


@dataclass
class Settings:
    town: str = "Ulm"


class Counter:
    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> int:
        await anyio.lowlevel.checkpoint()
        self.count += 1
        return self.count


class Foreign:
    """As FastAPI has it."""

    def __init__(self, dependency: Any = None) -> None:
        self.dependency = dependency


Foreign.__name__ = "Depends"


def user(context: RequestContext) -> str:
    return context.identity.user_id


async def greeting(who: Annotated[str, Depends(user)], word: str = "hello") -> str:
    await anyio.lowlevel.checkpoint()
    return f"{word} {who}"


def opened() -> Iterator[str]:
    heard.append("open")
    try:
        yield "plain"
    except KeyError:
        heard.append("failed")
        raise
    finally:
        heard.append("close")


async def opened_async(plain: str = Depends(opened)) -> AsyncIterator[str]:
    heard.append(f"open after {plain}")
    try:
        yield "async"
    finally:
        await anyio.lowlevel.checkpoint()
        heard.append("close async")


@asynccontextmanager
async def managed() -> AsyncIterator[str]:
    yield "managed"
    heard.append("left")


DEPENDENCIES: dict[str, tuple[Any, Any]] = {
    "a function with the context": (Depends(user), "ann"),
    "an async function with a dependency": (Depends(greeting), "hello ann"),
    "a generator": (Depends(opened), "plain"),
    "an async generator": (Depends(opened_async), "async"),
    "a context manager": (Depends(managed), "managed"),
    "a class": (Depends(Settings), Settings()),
    "an async object": (Depends(Counter()), 1),
    "another framework's": (Foreign(user), "ann"),
    "FastMCP's": (fastmcp.dependencies.Depends(managed), "managed"),
    "FastMCP's, with a value": (fastmcp.dependencies.Depends(greeting, word="hi"), "hi ann"),
}


@pytest.mark.parametrize("case", DEPENDENCIES.values(), ids=DEPENDENCIES)
async def test_a_dependency_is_given_and_neither_listed_nor_taken(case: tuple[Any, Any]) -> None:
    depends, value = case

    def by_default(x: int, part: Any = depends) -> list[Any]:
        return [x, part == value]

    def by_type(x: int, part: Any) -> list[Any]:
        return [x, part == value]

    by_type.__annotations__["part"] = Annotated[Any, depends]
    for function in (by_default, by_type):
        spec = FunctionToMCP.convert(function)
        assert list(spec.input_schema["properties"]) == ["x"]
        with pytest.raises(InvalidArgumentsError, match="`part` is unknown"):
            spec.validate({"x": 1, "part": "mine"})
    assert await call(by_default, x=1) == [1, True]


async def test_a_type_alone_depends_on_itself() -> None:
    def where(settings: Annotated[Settings, Foreign()]) -> str:
        return settings.town

    assert await call(where) == "Ulm"


async def test_a_value_is_shared_in_a_call_unless_its_author_says_otherwise() -> None:
    count = Counter()

    async def more(shared: int = Depends(count)) -> int:
        await anyio.lowlevel.checkpoint()
        return shared + 10

    def numbers(
        a: int = Depends(count),
        b: int = Depends(count, use_cache=False),
        c: int = Depends(more),
        d: int = Depends(count),
    ) -> list[int]:
        return [a, b, c, d]

    spec = FunctionToMCP.convert(numbers)
    assert await run(spec) == [1, 2, 11, 1]
    assert await run(spec) == [3, 4, 13, 3]


async def test_what_is_opened_is_closed_after_the_call_the_last_first() -> None:
    def use(part: str = Depends(opened_async)) -> Iterator[str]:
        heard.append(f"use {part}")
        yield part

    assert await call(use) == ["async"]
    assert heard == ["open", "open after plain", "use async", "close async", "close"]


async def test_what_is_opened_is_closed_when_the_call_fails_and_sees_why() -> None:
    async def use(part: str = Depends(opened)) -> str:
        await anyio.lowlevel.checkpoint()
        raise KeyError(part)

    with pytest.raises(ToolFailedError, match=r"KeyError: .*plain"):
        await call(use)
    assert heard == ["open", "failed", "close"]


@pytest.mark.parametrize("kind", [opened, opened_async])
async def test_what_is_opened_is_closed_when_the_call_is_cancelled(kind: Any) -> None:
    started = anyio.Event()

    async def use(part: str = Depends(kind)) -> None:
        heard.append(part)
        started.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(call, use)
        await started.wait()
        group.cancel_scope.cancel()
    assert heard[-1] == "close"


async def test_a_plain_generator_that_is_cancelled_ends_with_its_dependencies() -> None:
    started = anyio.Event()

    def use(part: str = Depends(opened)) -> Iterator[str]:
        while True:
            anyio.from_thread.run_sync(started.set)
            yield part

    async with anyio.create_task_group() as group:
        group.start_soon(call, use)
        await started.wait()
        group.cancel_scope.cancel()
    assert heard == ["open", "close"]


async def test_a_dependency_hides_no_failure() -> None:
    def deaf() -> Iterator[int]:
        try:
            yield 1
        except KeyError:
            heard.append("swallowed")

    def use(part: int = Depends(deaf)) -> None:
        raise KeyError(part)

    with pytest.raises(ToolFailedError, match="KeyError"):
        await call(use)
    assert heard == ["swallowed"]


async def test_what_a_dependency_refuses_is_not_the_callers_mistake() -> None:
    def early() -> None:
        raise ValueError("no settings")

    def late() -> Iterator[None]:
        yield
        raise ValueError("not saved")

    for dependency, told in ((early, "no settings"), (late, "not saved")):

        def use(x: int, part: None = Depends(dependency)) -> None:
            heard.append(f"{x} {part}")

        with pytest.raises(ToolFailedError, match=told):
            await call(use, x=1)

    def wrong(x: int, part: str = Depends(opened)) -> None:
        raise ValueError(f"{x} is too small for {part}")

    with pytest.raises(InvalidArgumentsError, match="1 is too small for plain"):
        await call(wrong, x=1)


async def test_plain_functions_of_a_call_share_a_thread() -> None:
    def connection() -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(":memory:")) as connected:
            yield connected

    async def thread(_open: Annotated[Any, Depends(connection)]) -> int:
        await anyio.lowlevel.checkpoint()
        return threading.get_ident()

    def ask(
        loop: Annotated[int, Depends(thread)],
        database: Annotated[sqlite3.Connection, Depends(connection)],
    ) -> list[Any]:
        return [*database.execute("SELECT 5").fetchone(), loop == threading.get_ident()]

    assert await call(ask) == [5, False]


async def test_a_result_is_read_before_what_it_needs_is_closed() -> None:
    class Row:
        def __init__(self) -> None:
            self.is_open = True

        @property
        def town(self) -> str:
            return "Ulm" if self.is_open else "gone"

        def to_text(self) -> str:
            return self.town

    def row() -> Iterator[Row]:
        found = Row()
        yield found
        found.is_open = False

    async def find(found: Annotated[Row, Depends(row)]) -> Any:
        await anyio.lowlevel.checkpoint()
        return found

    spec = FunctionToMCP.convert(find)
    assert (await spec.invoke({}, RequestContext())).text == "Ulm"


def asks(query: str) -> str:
    return query


def one(other: Annotated[int, Depends(lambda: 1)]) -> int:
    return other


def two(other: int = Depends(one)) -> int:
    return other


one.__annotations__["other"] = Annotated[int, Depends(two)]


@pytest.mark.parametrize(
    ("depends", "complaint"),
    [
        (Depends(asks), "use depends on asks, whose parameter query has no value"),
        (Depends(one), "one depends on itself"),
        (fastmcp.dependencies.CurrentContext(), "belongs to another framework"),
    ],
)
def test_a_dependency_that_needs_what_nobody_gives_is_refused(depends: Any, complaint: str) -> None:
    def use(part: Any = depends) -> None: ...

    use.__qualname__ = "use"
    with pytest.raises(ToolDefinitionError, match=complaint):
        FunctionToMCP.convert(use)
