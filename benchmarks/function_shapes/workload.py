"""What the cost is measured on: a thousand distinct functions, and two tools to call."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

Function = Callable[..., Any]

PARAMETERS = (
    ("name", "str", "", "Name of what is looked for."),
    ("count", "int", " = 10", "How many at most, from the best."),
    ("mode", 'Literal["fast", "exact", "v{number}"]', ' = "fast"', "How carefully it is done."),
    ("tags", "list[str] | None", " = None", "Only what has one of these tags."),
    ("part", "Annotated[int, Field(ge=0, le={number})]", " = 0", "Which part of the whole."),
    ("verbose", "bool", " = False", "Whether to tell every step."),
)
"""Name, type, default and description of each parameter, in the order in which they are added.

Some types are the same in every function, some are shared by a few only.
"""

VARIANTS = 50
"""How many different choices and bounds there are among the functions."""

NESTED = (
    '''class Filter{number}(BaseModel):
    """What is left out."""

    words: list[str]
    since: Optional[str] = None
''',
    '''@dataclass
class Filter{number}:
    """What is left out."""

    words: list[str]
    since: Optional[str] = None
''',
)
RETURNS = (
    ("str", "name"),
    ("int", "len(name)"),
    ("list[str]", "[name]"),
    ("dict[str, int]", "{name: 1}"),
)
HEAD = """from dataclasses import dataclass
from typing import Annotated, Literal, Optional

from pydantic import BaseModel, Field
"""
FUNCTION = '''{nested}

def find_{number}({signature}) -> {returns}:
    """Finds what is asked for, in catalogue {number}.

    It looks at the newest entries first.

    Args:
{texts}

    Returns:
        What was found.
    """
    return {value}
'''


class Item(BaseModel):
    """One line of an order."""

    title: str
    price: float
    count: int = 1


class Order(BaseModel):
    """What somebody wants."""

    customer: str
    items: list[Item]


class Invoice(BaseModel):
    """What somebody owes."""

    customer: str
    total: float
    lines: list[str]


def distinct_functions(number: int) -> list[Function]:
    """So many functions of one to six parameters; one in four takes a model or a dataclass."""
    source = HEAD + "".join(map(_source, range(number)))
    code = compile(source, "distinct.py", "exec", dont_inherit=True)
    scope: dict[str, Any] = {"__name__": __name__}
    exec(code, scope)  # noqa: S102  # nobody writes a thousand by hand
    return [scope[f"find_{each}"] for each in range(number)]


def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: The one.
        b: The other.
    """
    return a + b


def charge(order: Order) -> Invoice:
    """Says what an order costs.

    Args:
        order: What was ordered.
    """
    total = sum(item.price * item.count for item in order.items)
    lines = [f"{item.count} of {item.title}" for item in order.items]
    return Invoice(customer=order.customer, total=total, lines=lines)


CALLS: dict[str, tuple[Function, dict[str, Any]]] = {
    "add": (add, {"a": 1, "b": 2}),
    "charge": (
        charge,
        {
            "order": {
                "customer": "Ann",
                "items": [
                    {"title": "Nail", "price": 0.5, "count": 10},
                    {"title": "Saw", "price": 9},
                ],
            }
        },
    ),
}
"""Each tool that is called, with its arguments."""


def _source(number: int) -> str:
    taken = list(itertools.islice(PARAMETERS, 1 + number % len(PARAMETERS)))
    nested = ""
    if number % 4 == 0:
        nested = NESTED[number // 4 % len(NESTED)].format(number=number)
        taken.insert(1, ("without", f"Filter{number}", "", "What is left out of it."))
    signature = ", ".join(f"{name}: {kind}{default}" for name, kind, default, _ in taken)
    returns, value = RETURNS[number // 2 % len(RETURNS)]
    return FUNCTION.format(
        nested=nested,
        number=number,
        signature=signature.format(number=number % VARIANTS),
        returns=returns,
        value=value,
        texts="\n".join(f"        {name}: {text}" for name, _, _, text in taken),
    )
