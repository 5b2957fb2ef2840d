"""Texts of a tool and its parameters: docstrings that look like markup, annotations and fields."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import Doc

from benchmarks.function_shapes.checks import (
    describes,
    gets,
    leaves_out,
    mentions,
    property_has,
    says,
    spells,
    takes,
)
from benchmarks.function_shapes.shape import Options, Theme
from benchmarks.function_shapes.subjects import Place

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


@dataclass
class Window:
    """A window of time.

    Attributes:
        start: First hour of it.
        end: Hour after the last.
    """

    start: int
    end: int


@PROSE.shape(
    "Annotated with a text", describes("city", "Name of the city."), gets({"city": "Bern"}, "Bern")
)
def annotated_text(city: Annotated[str, "Name of the city."]) -> str:
    return city


@PROSE.shape("Annotated with a Field", describes("city", "Name of the city."))
def annotated_field(city: Annotated[str, Field(description="Name of the city.")]) -> str:
    return city


@PROSE.shape("a Field as default", describes("city", "Name of the city."), gets({}, "Bern"))
def field_default(city: str = Field("Bern", description="Name of the city.")) -> str:
    return city


@PROSE.shape("Annotated with a Doc", describes("city", "Name of the city."))
def annotated_doc(city: Annotated[str, Doc("Name of the city.")]) -> str:
    return city


@PROSE.shape(
    "a text beside None",
    describes("city", "Name of the city."),
    describes("land", "Name of the land."),
)
def annotated_optional(
    city: Annotated[str | None, "Name of the city."] = None,
    land: Annotated[str, Field(description="Name of the land.")] | None = None,
) -> str:
    return f"{city} {land}"


@PROSE.shape("a Field before the docstring", describes("city", "From the field."))
def field_wins(city: Annotated[str, Field(description="From the field.")]) -> str:
    """Tells the weather.

    Args:
        city: From the docstring.
    """
    return city


@PROSE.shape("no docstring", takes("city"), gets({"city": "Bern"}, "Bern"))
def nothing_said(city: str) -> str:
    return city


@PROSE.shape(
    "a description given beside",
    says("Tells it all."),
    leaves_out("Tells the weather"),
    describes("city", "Name of the city."),
    options=Options(description="Tells it all."),
)
def given_description(city: str) -> str:
    """Tells the weather.

    Args:
        city: Name of the city.
    """
    return city


@PROSE.shape("a description inside a model", mentions("Name of the town"))
def nested_text(place: Place) -> str:
    return place.town


@PROSE.shape("a dataclass that documents its attributes", mentions("First hour of it"))
def attributes_text(window: Window) -> str:
    return str(window.start)


@PROSE.shape("examples of a Field", property_has("city", examples=["Bern", "Oslo"]))
def examples(city: Annotated[str, Field(examples=["Bern", "Oslo"])]) -> str:
    return city
