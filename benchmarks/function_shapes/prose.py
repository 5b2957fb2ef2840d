"""Docstrings whose prose looks like markup, and is none."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from benchmarks.function_shapes.checks import describes, property_has, says, spells
from benchmarks.function_shapes.shape import Theme

__all__ = ["PROSE"]

Function = Callable[..., Any]

PROSE = Theme("texts")


@PROSE.shape(
    "words that look like sections",
    says(
        "Args are read from a file.",
        "Usage:",
        "weather --city Bern",
        "See: https://example.com/a:b",
    ),
    describes("city", "Name of the city."),
)
def looks_like_sections(city: Annotated[str, "Name of the city."]) -> str:
    """Tells the weather. Args are read from a file.

    Usage:
        weather --city Bern

    See: https://example.com/a:b
    """
    return city


@PROSE.shape(
    "words that look like fields of reST and Epytext",
    says("Mail ann@example.com or read :class:`Weather`.", "@home it is warm", "a :: b"),
)
def looks_like_fields(city: str) -> str:
    """Tells the weather.

    Mail ann@example.com or read :class:`Weather`.
    @home it is warm, and a :: b is none of it.
    """
    return city


@PROSE.shape(
    "lists and code keep their lines",
    spells("- one: first\n- two: second"),
    spells("    if city:\n        ask(city)"),
)
def layout(city: str) -> str:
    """Tells the weather.

    - one: first
    - two: second

    It works like this::

        if city:
            ask(city)
    """
    return city


@PROSE.shape(
    "sections in another order, and one after the parameters",
    says("Tells the weather.", "Never ask twice."),
    describes("city", "Name of the city. Defaults to 'Bern'."),
    describes("days", "How many."),
)
def section_order(city: str = "Bern", days: int = 1) -> str:
    """Tells the weather.

    Returns:
        A sentence.

    Args:
        city (str, optional): Name of the city. Defaults to 'Bern'.
        days: How many.

    Warning:
        Never ask twice.
    """
    return f"{city} {days}"


@PROSE.shape(
    "a text and a Field together", describes("days", "How many."), property_has("days", minimum=1)
)
def text_and_field(days: Annotated[int, "How many.", Field(ge=1)]) -> str:
    return str(days)


@PROSE.shape(
    "a docstring of a function that takes its parameters' names with stars",
    describes("cities", "Where to look."),
)
def starred_names(*cities: str) -> str:
    """Tells the weather.

    Args:
        *cities: Where to look.
    """
    return str(cities)


@PROSE.shape(
    "a role of reST at the beginning of a line",
    describes("path", "Where to write, a text or a :class:`Path` of Python."),
    describes("mode", "How to write."),
)
def role_at_the_beginning(path: str, mode: str = "w") -> str:
    """Writes a file.

    :param path: Where to write, a text or a
        :class:`Path` of Python.
    :param mode: How to write.
    """
    return path + mode


@PROSE.shape(
    "parameters that share a text",
    describes("width", "Sizes in pixels."),
    describes("height", "Sizes in pixels."),
    describes("name", "What it is called."),
)
def shared_text(name: str, width: int, height: int) -> str:  # the shape
    """Draws a picture.

    Args:
        name: What it is called.
        width, height: Sizes in pixels.
    """
    return f"{name} {width} {height}"
