"""What stands between a caller and a function: dependencies, decorators, and command lines."""

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, TypeVarTuple, overload

import click
import typer
from pydantic import Field, validate_call
from typing_extensions import deprecated

from benchmarks.function_shapes.checks import (
    allows,
    answers,
    describes,
    gets,
    lacks,
    optional,
    property_has,
    refuses,
    required,
    says,
    takes,
    types,
)
from benchmarks.function_shapes.shape import Kit, Theme

Function = Callable[..., Any]
Taken = ParamSpec("Taken")
GivenT = TypeVar("GivenT")
PartsT = TypeVarTuple("PartsT")

WRAPPED_SIGNATURES = Theme("signatures")
WRAPPED_CALLABLES = Theme("callables")


@WRAPPED_SIGNATURES.shape_for(
    "a dependency in a type", takes("bed"), gets({"bed": 2}, "Ulm 2"), refuses({"bed": "x"}, "bed")
)
def dependency_in_a_type(kit: Kit) -> Function:
    def town() -> str:
        return "Ulm"

    def find(bed: int, town: str) -> str:
        return f"{town} {bed}"

    find.__annotations__["town"] = Annotated[str, kit.depends(town)]
    return find


@WRAPPED_SIGNATURES.shape_for(
    "a dependency that a caller tries to give",
    lacks("town"),
    refuses({"bed": 2, "town": "Bern"}, "town"),
)
def dependency_given(kit: Kit) -> Function:
    def town() -> str:
        return "Ulm"

    def find(bed: int, town: str) -> str:
        return f"{town} {bed}"

    find.__annotations__["town"] = Annotated[str, kit.depends(town)]
    return find


@WRAPPED_SIGNATURES.shape_for(
    "a dependency of a dependency, made once", takes("bed"), gets({"bed": 2}, "1 1 2")
)
def shared_dependency(kit: Kit) -> Function:
    made: list[int] = []

    def count() -> int:
        made.append(1)
        return len(made)

    async def twice(count: int) -> int:
        return count

    async def find(bed: int, one: int, other: int) -> str:
        told = f"{one} {other} {bed}"
        made.clear()
        return told

    twice.__annotations__["count"] = Annotated[int, kit.depends(count)]
    find.__annotations__["one"] = Annotated[int, kit.depends(count)]
    find.__annotations__["other"] = Annotated[int, kit.depends(twice)]
    return find


@WRAPPED_SIGNATURES.shape_for(
    "a dependency that is left after the call", takes(), gets({}, "open 0"), gets({}, "open 1")
)
def left_dependency(kit: Kit) -> Function:
    left: list[str] = []

    @asynccontextmanager
    async def connection() -> AsyncIterator[str]:
        yield "open"
        left.append("left")

    async def find(connection: str) -> str:
        return f"{connection} {len(left)}"

    find.__annotations__["connection"] = Annotated[str, kit.depends(connection)]
    return find


@WRAPPED_SIGNATURES.shape("*args of any types", gets({"parts": [1, "a"]}, "1 a"))
def variadic(*parts: *PartsT) -> str:
    return " ".join(map(str, parts))


def added(function: Function) -> Function:
    """Adds a parameter."""

    @functools.wraps(function)
    def run(*args: Any, loud: bool = False, **kwargs: Any) -> str:  # noqa: ANN401  # of any function
        said = str(function(*args, **kwargs))
        return said.upper() if loud else said

    return run


@WRAPPED_CALLABLES.shape(
    "a decorator that adds a parameter",
    says("Greets."),
    required("who"),
    optional("loud"),
    types("who", "string"),
    gets({"who": "ann", "loud": True}, "ANN"),
)
@added
def adding(who: str) -> str:
    """Greets."""
    return who


@WRAPPED_CALLABLES.shape_made(
    "a decorator that gives the first parameter itself", takes("bed"), gets({"bed": 2}, "store 2")
)
def giving() -> Function:
    def stored(function: Function) -> Function:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # of any function
            return function("store", *args, **kwargs)

        read = inspect.signature(function)
        kept = list(read.parameters.values())[1:]
        run.__signature__ = read.replace(parameters=kept)  # type: ignore[attr-defined]  # inspect reads it
        return run

    @stored
    def find(store: object, bed: int) -> str:
        return f"{store} {bed}"

    return find


@WRAPPED_CALLABLES.shape_made(
    "a typed decorator", types("who", "string"), gets({"who": "ann"}, "ann"), refuses({"who": 5})
)
def typed_decorator() -> Function:
    def logged(function: Callable[Taken, GivenT]) -> Callable[Taken, GivenT]:
        @functools.wraps(function)
        def run(*args: Taken.args, **kwargs: Taken.kwargs) -> GivenT:
            return function(*args, **kwargs)

        return run

    @logged
    def greet(who: str) -> str:
        return who

    return greet


@WRAPPED_CALLABLES.shape(
    "checked by pydantic already",
    property_has("count", exclusiveMinimum=0),
    gets({"count": 2}, 4),
    refuses({"count": 0}, "count"),
)
@validate_call(validate_return=True)
def checked(count: Annotated[int, Field(gt=0)]) -> int:
    return count * 2


@WRAPPED_CALLABLES.shape("deprecated", types("x", "integer"), gets({"x": 1}, 1))
@deprecated("Use another.", category=None)
def outdated(x: int) -> int:
    return x


@WRAPPED_CALLABLES.shape_made(
    "overloaded",
    required("x"),
    optional("y"),
    gets({"x": 1, "y": 2}, [1, 2]),
    gets({"x": "a"}, "a"),
)
def overloaded() -> Function:
    @overload
    def pair(x: int, y: int = ...) -> list[int]: ...
    @overload
    def pair(x: str) -> str: ...
    def pair(x: int | str, y: int | None = None) -> list[int] | str:
        return x if isinstance(x, str) else [x, y or 0]

    return pair


@WRAPPED_CALLABLES.shape(
    "a command of click",
    says("Waters beds."),
    takes("beds", "litres", "how", "dry", "verbose"),
    describes("litres", "How much."),
    property_has("litres", minimum=1, maximum=9),
    allows("how", "can", "hose"),
    types("beds", "array"),
    types("dry", "boolean"),
    required("how"),
    optional("beds", "litres", "dry"),
    gets({"how": "can", "beds": ["a", "-b"], "dry": True}, "can 2 ('a', '-b') True 0"),
    refuses({"how": "hands"}, "can"),
    refuses({"how": "can", "litres": 10}, "litres"),
)
@click.command()
@click.argument("beds", nargs=-1)
@click.option("--litres", type=click.IntRange(1, 9), default=2, help="How much.")
@click.option("--how", type=click.Choice(["can", "hose"]), required=True)
@click.option("--dry/--wet", default=False)
@click.option("-v", "--verbose", count=True)
@click.version_option("1")
def click_command(**given: Any) -> None:  # noqa: ANN401  # click's
    """Waters beds."""
    told = [given[name] for name in ("how", "litres", "beds", "dry", "verbose")]
    click.echo(" ".join(map(str, told)))


@WRAPPED_CALLABLES.shape(
    "options of typer in types",
    describes("litres", "How much."),
    property_has("litres", minimum=1, maximum=9),
    optional("litres"),
    required("bed"),
    gets({"bed": "a"}, "a 2"),
    refuses({"bed": "a", "litres": 10}, "litres"),
)
def typer_annotations(
    bed: Annotated[str, typer.Argument()],
    litres: Annotated[int, typer.Option(min=1, max=9, help="How much.")] = 2,
) -> str:
    return f"{bed} {litres}"


@WRAPPED_CALLABLES.shape_made(
    "a function of typer that prints, and checks",
    required("place"),
    takes("place", "word"),
    gets({"place": "/", "word": "a"}, "/ A 3"),
    refuses({"place": "/no/such/place"}, "place"),
    refuses({"place": "/", "word": ""}, "word", "say"),
)
def typer_function() -> Function:
    def loud(word: str) -> str:
        if not word:
            raise typer.BadParameter("say something")
        return word.upper()

    def water(
        place: Path = typer.Option(..., exists=True),  # noqa: B008  # the shape
        word: str = typer.Option("A", callback=loud),
        depth: int = typer.Option(3, hidden=True),
    ) -> None:
        typer.echo(f"{place} {word} {depth}")

    return water


@WRAPPED_CALLABLES.shape_made(
    "a generator method of an object",
    answers(lambda value: value == [0, 1], {"count": 2}),
    refuses({"count": "x"}, "count"),
)
def generator_method() -> Function:
    class Rows:
        def numbers(self, count: int) -> Iterator[int]:
            yield from range(count)

    return Rows().numbers
