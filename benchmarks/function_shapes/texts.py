"""Texts: what the model reads of a tool and of each parameter, and where it was written."""

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
    takes,
)
from benchmarks.function_shapes.shape import Options, Theme
from benchmarks.function_shapes.subjects import Place

__all__ = ["TEXTS"]

Function = Callable[..., Any]

TEXTS = Theme("texts")


@dataclass
class Window:
    """A window of time.

    Attributes:
        start: First hour of it.
        end: Hour after the last.
    """

    start: int
    end: int


@TEXTS.shape(
    "Annotated with a text", describes("city", "Name of the city."), gets({"city": "Bern"}, "Bern")
)
def annotated_text(city: Annotated[str, "Name of the city."]) -> str:
    return city


@TEXTS.shape("Annotated with a Field", describes("city", "Name of the city."))
def annotated_field(city: Annotated[str, Field(description="Name of the city.")]) -> str:
    return city


@TEXTS.shape("a Field as default", describes("city", "Name of the city."), gets({}, "Bern"))
def field_default(city: str = Field("Bern", description="Name of the city.")) -> str:
    return city


@TEXTS.shape("Annotated with a Doc", describes("city", "Name of the city."))
def annotated_doc(city: Annotated[str, Doc("Name of the city.")]) -> str:
    return city


@TEXTS.shape(
    "a text beside None",
    describes("city", "Name of the city."),
    describes("land", "Name of the land."),
)
def annotated_optional(
    city: Annotated[str | None, "Name of the city."] = None,
    land: Annotated[str, Field(description="Name of the land.")] | None = None,
) -> str:
    return f"{city} {land}"


@TEXTS.shape("a Field before the docstring", describes("city", "From the field."))
def field_wins(city: Annotated[str, Field(description="From the field.")]) -> str:
    """Tells the weather.

    Args:
        city: From the docstring.
    """
    return city


@TEXTS.shape("no docstring", takes("city"), gets({"city": "Bern"}, "Bern"))
def nothing_said(city: str) -> str:
    return city


@TEXTS.shape(
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


@TEXTS.shape("a description inside a model", mentions("Name of the town"))
def nested_text(place: Place) -> str:
    return place.town


@TEXTS.shape("a dataclass that documents its attributes", mentions("First hour of it"))
def attributes_text(window: Window) -> str:
    return str(window.start)


@TEXTS.shape("examples of a Field", property_has("city", examples=["Bern", "Oslo"]))
def examples(city: Annotated[str, Field(examples=["Bern", "Oslo"])]) -> str:
    return city
