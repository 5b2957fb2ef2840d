"""Errors: what the model reads when something was wrong, and what counts as wrong."""

import sys
from collections.abc import Callable
from typing import Any, Literal

import anyio
from pydantic import BaseModel

from benchmarks.function_shapes.checks import answers, gets, refuses
from benchmarks.function_shapes.shape import Theme, show

Function = Callable[..., Any]

ERRORS = Theme("errors")


class Account(BaseModel):
    """Somebody's account."""

    owner: str
    credit: int


@ERRORS.shape("the author's ValueError", refuses({"city": "x"}, "No city is called x; try Bern."))
def value_error(city: str) -> str:
    raise ValueError(f"No city is called {city}; try Bern.")


@ERRORS.shape("the author's ValueError, async", refuses({"city": "x"}, "No city is called x"))
async def async_value_error(city: str) -> str:
    await anyio.lowlevel.checkpoint()
    raise ValueError(f"No city is called {city}")


@ERRORS.shape("a ValueError without a text", refuses({"city": "x"}, r"\w"))
def empty_value_error(city: str) -> str:  # noqa: ARG001  # the shape
    raise ValueError


@ERRORS.shape("a crash", refuses({"city": "x"}, "RuntimeError", "no road to x"))
def crash(city: str) -> str:
    raise RuntimeError(f"There is no road to {city}.")


@ERRORS.shape("a crash, async", refuses({"city": "x"}, "KeyError", "'x'"))
async def async_crash(city: str) -> str:
    await anyio.lowlevel.checkpoint()
    return {"Bern": "sun"}[city]


@ERRORS.shape(
    "a model that the function cannot build",
    refuses({"city": "x"}, "ValidationError", "Account", "credit"),
)
def inner_validation(city: str) -> str:
    return Account.model_validate({"owner": city, "credit": "much"}).owner


@ERRORS.shape("a function that exits", refuses({"stop": True}, r"\w"), gets({"stop": False}, "on"))
def exits(stop: bool) -> str:
    if stop:
        sys.exit(3)
    return "on"


@ERRORS.shape_made("endless recursion", refuses({"depth": 1}, r"\w"), gets({"depth": 0}, "0"))
def recursion() -> Function:
    def deep(depth: int) -> str:
        return "0" if depth == 0 else deep(depth + 1)

    return deep


@ERRORS.shape("an unknown argument", refuses({"city": "Bern", "dayz": 3}, "dayz", r"\bdays\b"))
def unknown_argument(city: str, days: int = 1) -> str:
    return f"{city} {days}"


@ERRORS.shape("a misspelt required argument", refuses({"citi": "Bern"}, "citi", r"\bcity\b"))
def misspelt_argument(city: str) -> str:
    return city


@ERRORS.shape("an argument that is missing", refuses({}, "city"), refuses({"days": 2}, "city"))
def missing_argument(city: str, days: int = 1) -> str:
    return f"{city} {days}"


@ERRORS.shape(
    "several wrong arguments at once",
    refuses({"count": "x", "mode": "y", "extra": 1}, "count", "mode", "name", "extra"),
)
def several_wrong(name: str, count: int, mode: Literal["a", "b"] = "a") -> str:
    return f"{name} {count} {mode}"


@ERRORS.shape(
    "an error deep inside",
    refuses(
        {"accounts": [{"owner": "a", "credit": 1}, {"owner": "b", "credit": "x"}]}, "credit", "1"
    ),
)
def deep_error(accounts: list[Account]) -> str:
    return str(sum(account.credit for account in accounts))


@ERRORS.shape(
    "a number as text", gets({"count": "5", "ratio": "0.5"}, "int 5 float 0.5", valid=False)
)
def number_text(count: int, ratio: float) -> str:
    return f"{show(count)} {show(ratio)}"


@ERRORS.shape("true as text", gets({"on": "true"}, "bool True", valid=False))
def boolean_text(on: bool) -> str:
    return show(on)


@ERRORS.shape("JSON text for a list", gets({"tags": '["a", "b"]'}, "['a', 'b']", valid=False))
def list_text(tags: list[str]) -> str:
    return str(tags)


@ERRORS.shape(
    "JSON text for an optional list", gets({"tags": '["a", "b"]'}, "['a', 'b']", valid=False)
)
def optional_list_text(tags: list[str] | None = None) -> str:
    return str(tags)


@ERRORS.shape(
    "JSON text for a model and a dict",
    gets(
        {"account": '{"owner": "a", "credit": 1}', "more": '{"k": 2}'}, "a 1 {'k': 2}", valid=False
    ),
)
def model_text(account: Account, more: dict[str, int]) -> str:
    return f"{account.owner} {account.credit} {more}"


@ERRORS.shape(
    "text that looks like JSON for a str",
    *(gets({"text": text}, f"str {text}") for text in ("null", "5", "true", "[1]", '{"a": 1}')),
)
def json_for_text(text: str) -> str:
    return show(text)


@ERRORS.shape(
    "text that looks like JSON for an optional str",
    *(gets({"text": text}, f"str {text}") for text in ("null", "5", "true", "[1]", '{"a": 1}')),
)
def json_for_optional_text(text: str | None = None) -> str:
    return show(text)


@ERRORS.shape(
    "text that is no JSON for a list",
    refuses({"tags": "a, b"}, "tags"),
    answers(lambda value: value == "['x']", {"tags": ["x"]}),
)
def no_json_for_list(tags: list[str]) -> str:
    return str(tags)


@ERRORS.shape(
    "a wrong choice names the right ones",
    refuses({"unit": "kelvin"}, "unit", "celsius", "fahrenheit"),
)
def wrong_choice(unit: Literal["celsius", "fahrenheit"]) -> str:
    return unit


@ERRORS.shape_made("an exception of the author's", refuses({}, "The oven is cold; heat it first."))
def own_exception() -> Function:
    class ColdOvenError(ValueError):
        pass

    def bake() -> str:
        raise ColdOvenError("The oven is cold; heat it first.")

    return bake


@ERRORS.shape("an argument for a function that takes none", refuses({"city": "Bern"}, "city"))
def nothing_to_give() -> str:
    return "pong"


@ERRORS.shape(
    "null and an empty text for what needs a value",
    refuses({"city": None, "days": 1}, "city"),
    refuses({"city": "Bern", "days": ""}, "days"),
)
def null_for_required(city: str, days: int) -> str:
    return f"{city} {days}"


@ERRORS.shape_made(
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
def structure_texts(
    tags: set[str], rows: list[list[int]], more: dict[str, int] | None = None
) -> str:
    return f"{list(tags)} {rows} {more}"


@ERRORS.shape("a number as text for an optional int", gets({"days": "5"}, "int 5", valid=False))
def optional_number_text(days: int | None = None) -> str:
    return show(days)


@ERRORS.shape("an unknown name in other letters", refuses({"City": "Bern"}, "City", r"\bcity\b"))
def other_case(city: str = "Bern") -> str:
    return city


@ERRORS.shape("true as text for an option", gets({"on": "true"}, "bool True", valid=False))
def optional_boolean_text(on: bool | None = None) -> str:
    return show(on)


@ERRORS.shape(
    "a ValueError of several parts and lines", refuses({}, "first line", "second line → {end}")
)
def long_value_error() -> str:
    raise ValueError("first line\nsecond line → {end}")


@ERRORS.shape(
    "a strict answer to a text or a list",
    gets({"value": "a, b"}, "str a, b"),
    gets({"value": ["a"]}, "list ['a']"),
)
def text_or_list(value: str | list[str]) -> str:
    return show(value)
