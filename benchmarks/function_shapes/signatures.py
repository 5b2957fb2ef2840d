"""Signatures: how arguments are passed, and which of them are not the caller's."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NotRequired

from typing_extensions import TypedDict, Unpack

from benchmarks.function_shapes.checks import (
    answers,
    gets,
    ignores,
    lacks,
    optional,
    progresses,
    refuses,
    required,
    takes,
    types,
)
from benchmarks.function_shapes.shape import Kit, Miss, Options, Theme, Tool

Function = Callable[..., Any]

SIGNATURES = Theme("signatures")


class Style(TypedDict):
    """Keyword arguments."""

    colour: str
    width: NotRequired[int]


def _sends(*alternatives: dict[str, Any], wanted: object) -> Callable[[Tool], Awaitable[None]]:
    """One of several ways to send the same arguments, each accepted by the schema, works."""

    async def check(tool: Tool) -> None:
        misses = []
        for arguments in alternatives:
            try:
                return await gets(arguments, wanted)(tool)
            except Miss as miss:
                misses.append(str(miss))
        raise Miss("; ".join(misses))

    return check


@SIGNATURES.shape("no parameters", takes(), gets({}, "pong"))
def nothing() -> str:
    return "pong"


@SIGNATURES.shape(
    "keyword-only parameters",
    takes("a", "b"),
    required("a"),
    optional("b"),
    gets({"a": 1}, "1 2"),
    gets({"b": 3, "a": 1}, "1 3"),
)
def keyword_only(*, a: int, b: int = 2) -> str:
    return f"{a} {b}"


@SIGNATURES.shape(
    "positional-only parameters",
    takes("a", "b"),
    required("a"),
    optional("b"),
    gets({"a": 1}, "1 2"),
    gets({"b": 3, "a": 1}, "1 3"),
)
def positional_only(a: int, b: int = 2, /) -> str:
    return f"{a} {b}"


@SIGNATURES.shape(
    "all kinds of parameters",
    takes("a", "b", "c"),
    gets({"a": 1, "b": 2, "c": 3}, "1 2 3"),
    refuses({"a": 1, "b": 2}, "c"),
)
def all_kinds(a: int, /, b: int, *, c: int) -> str:
    return f"{a} {b} {c}"


@SIGNATURES.shape(
    "*args",
    gets({"first": 0, "numbers": [1, 2]}, "0 (1, 2)"),
    gets({"first": 0}, "0 ()"),
    refuses({"first": 0, "numbers": ["x"]}, "numbers"),
)
def star_args(first: int, *numbers: int) -> str:
    return f"{first} {numbers}"


@SIGNATURES.shape(
    "**kwargs",
    _sends({"a": 0, "x": 1}, {"a": 0, "more": {"x": 1}}, wanted="0 {'x': 1}"),
    gets({"a": 0}, "0 {}"),
)
def star_kwargs(a: int, **more: int) -> str:
    return f"{a} {more}"


@SIGNATURES.shape(
    "*args and **kwargs",
    _sends(
        {"numbers": [1], "x": "a"}, {"numbers": [1], "more": {"x": "a"}}, wanted="(1,) {'x': 'a'}"
    ),
)
def both_stars(*numbers: int, **more: str) -> str:
    return f"{numbers} {more}"


@SIGNATURES.shape(
    "Unpack of a TypedDict",
    takes("shape", "colour", "width"),
    required("shape", "colour"),
    optional("width"),
    gets({"shape": "box", "colour": "red"}, "box {'colour': 'red'}"),
    gets({"shape": "box", "colour": "red", "width": 2}, "box {'colour': 'red', 'width': 2}"),
    refuses({"shape": "box"}, "colour"),
    refuses({"shape": "box", "colour": "red", "width": "wide"}, "width"),
)
def unpacked(shape: str, **style: Unpack[Style]) -> str:
    return f"{shape} {style}"


@SIGNATURES.shape_for(
    "the request's context",
    takes("city"),
    gets({"city": "Bern"}, "Bern True"),
    ignores({"city": "Bern", "ctx": {}}, "Bern True"),
)
def injected(kit: Kit) -> Function:
    def weather(city: str, ctx: kit.context) -> str:  # type: ignore[name-defined]  # each system has its own
        return f"{city} {ctx is not None}"

    return weather


@SIGNATURES.shape_for(
    "the request's context as an option", takes("city"), gets({"city": "Bern"}, "Bern True")
)
def injected_option(kit: Kit) -> Function:
    def weather(city: str, *, ctx: kit.context | None = None) -> str:  # type: ignore[name-defined]  # the same
        return f"{city} {ctx is not None}"

    return weather


@SIGNATURES.shape_for(
    "the request's context in the first place, of a method",
    takes("city"),
    gets({"city": "Bern"}, "Bern True"),
)
def injected_first(kit: Kit) -> Function:
    class Service:
        def weather(self, ctx: kit.context, /, city: str) -> str:  # type: ignore[name-defined]  # the same
            return f"{city} {ctx is not None}"

    return Service().weather


@SIGNATURES.shape_for(
    "progress through the request's context",
    takes("city"),
    progresses({"city": "Bern"}, "asking Bern", "done", times=2),
)
def reported(kit: Kit) -> Function:
    async def weather(city: str, ctx: kit.context) -> str:  # type: ignore[name-defined]  # the same
        await ctx.report_progress(1, 2, f"asking {city}")
        await ctx.report_progress(2, 2, "done")
        return city

    return weather


@SIGNATURES.shape(
    "a hidden parameter",
    lacks("token"),
    takes("url"),
    gets({"url": "u"}, "u secret"),
    ignores({"url": "u", "token": "t"}, "u secret"),
    options=Options(hidden={"token"}),
)
def hidden(url: str, *, token: str = "secret") -> str:  # noqa: S107  # the shape
    return f"{url} {token}"


@SIGNATURES.shape(
    "a parameter called context of another type",
    takes("context", "ctx"),
    answers(lambda value: value == "a 1", {"context": "a", "ctx": 1}),
)
def not_injected(context: str, ctx: int) -> str:
    return f"{context} {ctx}"


@SIGNATURES.shape(
    "a positional-only parameter left out before another", gets({"a": 1, "c": 5}, "1 2 5")
)
def positional_gap(a: int, b: int = 2, c: int = 3, /) -> str:
    return f"{a} {b} {c}"


@SIGNATURES.shape(
    "*args before a keyword",
    optional("sep"),
    gets({"words": ["a", "b"], "sep": "-"}, "a-b"),
    gets({"words": ["a", "b"]}, "a,b"),
)
def star_args_keyword(*words: str, sep: str = ",") -> str:
    return sep.join(words)


@SIGNATURES.shape(
    "a default before *args", gets({"numbers": [5, 6]}, "1 (5, 6)"), gets({"first": 2}, "2 ()")
)
def default_before_star(first: int = 1, *numbers: int) -> str:
    return f"{first} {numbers}"


@SIGNATURES.shape(
    "*args and **kwargs without types",
    _sends(
        {"items": [1, "b"], "x": [2]},
        {"items": [1, "b"], "more": {"x": [2]}},
        wanted="(1, 'b') {'x': [2]}",
    ),
)
def untyped_stars(*items, **more):  # type: ignore[no-untyped-def]  # noqa: ANN002, ANN003  # the shape
    return f"{items} {more}"


@SIGNATURES.shape_made(
    "a signature set by hand",
    takes("city", "days"),
    types("days", "integer"),
    gets({"city": "Bern"}, "{'city': 'Bern'}", "{'city': 'Bern', 'days': 1}"),
)
def signature_by_hand() -> Function:
    def weather(**arguments: Any) -> str:  # noqa: ANN401  # the shape
        return str(arguments)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter("city", kind, annotation=str),
        inspect.Parameter("days", kind, annotation=int, default=1),
    ]
    weather.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]  # as inspect documents it
    return weather
