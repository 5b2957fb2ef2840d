"""Errors: what the model reads when something was wrong, and what counts as wrong."""

import sys
from collections.abc import Callable
from typing import Any, Literal

import anyio
from pydantic import BaseModel

from benchmarks.function_shapes.checks import answers, gets, refuses
from benchmarks.function_shapes.shape import Theme, show

__all__ = ["ERRORS"]

Function = Callable[..., Any]

ERRORS = Theme("errors")


class Account(BaseModel):
    """Somebody's account."""

    owner: str
    credit: int


@ERRORS.shape("the author's ValueError", refuses({"city": "x"}, "No city is called x; try Bern."))
def value_error() -> Function:
    def weather(city: str) -> str:
        raise ValueError(f"No city is called {city}; try Bern.")

    return weather


@ERRORS.shape("the author's ValueError, async", refuses({"city": "x"}, "No city is called x"))
def async_value_error() -> Function:
    async def weather(city: str) -> str:
        await anyio.lowlevel.checkpoint()
        raise ValueError(f"No city is called {city}")

    return weather


@ERRORS.shape("a ValueError without a text", refuses({"city": "x"}, r"\w"))
def empty_value_error() -> Function:
    def weather(city: str) -> str:  # noqa: ARG001  # the shape
        raise ValueError

    return weather


@ERRORS.shape("a crash", refuses({"city": "x"}, "RuntimeError", "no road to x"))
def crash() -> Function:
    def weather(city: str) -> str:
        raise RuntimeError(f"There is no road to {city}.")

    return weather


@ERRORS.shape("a crash, async", refuses({"city": "x"}, "KeyError", "'x'"))
def async_crash() -> Function:
    async def weather(city: str) -> str:
        await anyio.lowlevel.checkpoint()
        return {"Bern": "sun"}[city]

    return weather


@ERRORS.shape(
    "a model that the function cannot build",
    refuses({"city": "x"}, "ValidationError", "Account", "credit"),
)
def inner_validation() -> Function:
    def weather(city: str) -> str:
        return Account.model_validate({"owner": city, "credit": "much"}).owner

    return weather


@ERRORS.shape("a function that exits", refuses({"stop": True}, r"\w"), gets({"stop": False}, "on"))
def exits() -> Function:
    def work(stop: bool) -> str:
        if stop:
            sys.exit(3)
        return "on"

    return work


@ERRORS.shape("endless recursion", refuses({"depth": 1}, r"\w"), gets({"depth": 0}, "0"))
def recursion() -> Function:
    def deep(depth: int) -> str:
        return "0" if depth == 0 else deep(depth + 1)

    return deep


@ERRORS.shape("an unknown argument", refuses({"city": "Bern", "dayz": 3}, "dayz", r"\bdays\b"))
def unknown_argument() -> Function:
    def weather(city: str, days: int = 1) -> str:
        return f"{city} {days}"

    return weather


@ERRORS.shape("a misspelt required argument", refuses({"citi": "Bern"}, "citi", r"\bcity\b"))
def misspelt_argument() -> Function:
    def weather(city: str) -> str:
        return city

    return weather


@ERRORS.shape("an argument that is missing", refuses({}, "city"), refuses({"days": 2}, "city"))
def missing_argument() -> Function:
    def weather(city: str, days: int = 1) -> str:
        return f"{city} {days}"

    return weather


@ERRORS.shape(
    "several wrong arguments at once",
    refuses({"count": "x", "mode": "y", "extra": 1}, "count", "mode", "name", "extra"),
)
def several_wrong() -> Function:
    def run(name: str, count: int, mode: Literal["a", "b"] = "a") -> str:
        return f"{name} {count} {mode}"

    return run


@ERRORS.shape(
    "an error deep inside",
    refuses(
        {"accounts": [{"owner": "a", "credit": 1}, {"owner": "b", "credit": "x"}]}, "credit", "1"
    ),
)
def deep_error() -> Function:
    def total(accounts: list[Account]) -> str:
        return str(sum(account.credit for account in accounts))

    return total


@ERRORS.shape(
    "a number as text", gets({"count": "5", "ratio": "0.5"}, "int 5 float 0.5", valid=False)
)
def number_text() -> Function:
    def run(count: int, ratio: float) -> str:
        return f"{show(count)} {show(ratio)}"

    return run


@ERRORS.shape("true as text", gets({"on": "true"}, "bool True", valid=False))
def boolean_text() -> Function:
    def switch(on: bool) -> str:
        return show(on)

    return switch


@ERRORS.shape("JSON text for a list", gets({"tags": '["a", "b"]'}, "['a', 'b']", valid=False))
def list_text() -> Function:
    def label(tags: list[str]) -> str:
        return str(tags)

    return label


@ERRORS.shape(
    "JSON text for an optional list", gets({"tags": '["a", "b"]'}, "['a', 'b']", valid=False)
)
def optional_list_text() -> Function:
    def label(tags: list[str] | None = None) -> str:
        return str(tags)

    return label


@ERRORS.shape(
    "JSON text for a model and a dict",
    gets(
        {"account": '{"owner": "a", "credit": 1}', "more": '{"k": 2}'}, "a 1 {'k': 2}", valid=False
    ),
)
def model_text() -> Function:
    def pay(account: Account, more: dict[str, int]) -> str:
        return f"{account.owner} {account.credit} {more}"

    return pay


@ERRORS.shape(
    "text that looks like JSON for a str",
    *(gets({"text": text}, f"str {text}") for text in ("null", "5", "true", "[1]", '{"a": 1}')),
)
def json_for_text() -> Function:
    def keep(text: str) -> str:
        return show(text)

    return keep


@ERRORS.shape(
    "text that looks like JSON for an optional str",
    *(gets({"text": text}, f"str {text}") for text in ("null", "5", "true", "[1]", '{"a": 1}')),
)
def json_for_optional_text() -> Function:
    def keep(text: str | None = None) -> str:
        return show(text)

    return keep


@ERRORS.shape(
    "text that is no JSON for a list",
    refuses({"tags": "a, b"}, "tags"),
    answers(lambda value: value == "['x']", {"tags": ["x"]}),
)
def no_json_for_list() -> Function:
    def label(tags: list[str]) -> str:
        return str(tags)

    return label


@ERRORS.shape(
    "a wrong choice names the right ones",
    refuses({"unit": "kelvin"}, "unit", "celsius", "fahrenheit"),
)
def wrong_choice() -> Function:
    def weather(unit: Literal["celsius", "fahrenheit"]) -> str:
        return unit

    return weather


@ERRORS.shape("an exception of the author's", refuses({}, "The oven is cold; heat it first."))
def own_exception() -> Function:
    class ColdOvenError(ValueError):
        pass

    def bake() -> str:
        raise ColdOvenError("The oven is cold; heat it first.")

    return bake


@ERRORS.shape("an argument for a function that takes none", refuses({"city": "Bern"}, "city"))
def nothing_to_give() -> Function:
    def ping() -> str:
        return "pong"

    return ping


@ERRORS.shape(
    "null and an empty text for what needs a value",
    refuses({"city": None, "days": 1}, "city"),
    refuses({"city": "Bern", "days": ""}, "days"),
)
def null_for_required() -> Function:
    def weather(city: str, days: int) -> str:
        return f"{city} {days}"

    return weather


@ERRORS.shape(
    "a refused call does not run",
    refuses({"step": "x"}, "step"),
    refuses({"step": 1, "stepp": 2}, "stepp"),
    gets({"step": 1}, "[1]"),
)
def not_run() -> Function:
    taken: list[int] = []

    def walk(step: int) -> str:
        taken.append(step)
        return str(taken)

    return walk


@ERRORS.shape(
    "JSON text for sets, nested lists and optional dictionaries",
    gets(
        {"tags": '["a"]', "rows": "[[1], [2]]", "more": '{"k": 1}'},
        "['a'] [[1], [2]] {'k': 1}",
        valid=False,
    ),
)
def structure_texts() -> Function:
    def keep(tags: set[str], rows: list[list[int]], more: dict[str, int] | None = None) -> str:
        return f"{list(tags)} {rows} {more}"

    return keep


@ERRORS.shape("a number as text for an optional int", gets({"days": "5"}, "int 5", valid=False))
def optional_number_text() -> Function:
    def weather(days: int | None = None) -> str:
        return show(days)

    return weather


@ERRORS.shape("an unknown name in other letters", refuses({"City": "Bern"}, "City", r"\bcity\b"))
def other_case() -> Function:
    def weather(city: str = "Bern") -> str:
        return city

    return weather


@ERRORS.shape("true as text for an option", gets({"on": "true"}, "bool True", valid=False))
def optional_boolean_text() -> Function:
    def switch(on: bool | None = None) -> str:
        return show(on)

    return switch


@ERRORS.shape(
    "a ValueError of several parts and lines", refuses({}, "first line", "second line → {end}")
)
def long_value_error() -> Function:
    def fail() -> str:
        raise ValueError("first line\nsecond line → {end}")

    return fail


@ERRORS.shape(
    "a strict answer to a text or a list",
    gets({"value": "a, b"}, "str a, b"),
    gets({"value": ["a"]}, "list ['a']"),
)
def text_or_list() -> Function:
    def keep(value: str | list[str]) -> str:
        return show(value)

    return keep
