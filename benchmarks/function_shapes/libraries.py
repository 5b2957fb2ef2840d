"""Types as users of pydantic, attrs and typer write them, and classes with parts of their own."""

import datetime as dt
import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, Protocol

import attrs
import typer
from pydantic import (
    AliasChoices,
    Base64Bytes,
    BaseModel,
    Discriminator,
    Field,
    Tag,
    field_serializer,
    model_validator,
)

from benchmarks.function_shapes.checks import (
    allows,
    answers,
    describes,
    gets,
    optional,
    outputs,
    property_has,
    refuses,
    required,
    takes,
    types,
)
from benchmarks.function_shapes.shape import Theme, show
from benchmarks.function_shapes.subjects import Level

Function = Callable[..., Any]

LIBRARIES = Theme("types")
LIBRARY_RESULTS = Theme("results")


@attrs.define
class Order:
    """A class of attrs."""

    number: int
    lines: list[str] = attrs.field(factory=list)


class Colour(enum.Enum):
    """One value has two names."""

    RED = "red"
    BLUE = "blue"
    CRIMSON = "red"  # noqa: PIE796  # the shape


class Watched(BaseModel):
    """Has a field that no caller can give."""

    path: str
    on_change: Callable[[str], None] | None = None


class Circle(BaseModel):
    """Round."""

    radius: float


class Square(BaseModel):
    """Not round."""

    side: float


class Span(BaseModel):
    """Two numbers in order."""

    low: int
    high: int

    @model_validator(mode="after")
    def check(self) -> "Span":
        """Says what is wrong with both."""
        if self.low > self.high:
            raise ValueError("low must not exceed high")
        return self


class Search(BaseModel):
    """Has several names for one field."""

    text: str = Field(validation_alias=AliasChoices("query", "q"))


class Meeting(BaseModel):
    """Writes its time in a way of its own."""

    at: dt.datetime

    @field_serializer("at")
    def year(self, at):  # type: ignore[no-untyped-def]  # noqa: ANN001  # the shape
        """A number, where the type says a date."""
        return at.year


@dataclass
class Invoice:
    """Sets a field itself."""

    net: int
    gross: int = field(init=False)

    def __post_init__(self) -> None:
        self.gross = self.net * 2


class Named(Protocol):
    """Whatever has a name."""

    name: str


@LIBRARIES.shape(
    "a class of attrs",
    gets({"order": {"number": 1}}, "Order 1 []"),
    refuses({"order": {"number": "x"}}, "number"),
    refuses({"order": {}}, "number"),
)
def attrs_class(order: Order) -> str:
    return f"{type(order).__name__} {order.number} {order.lines}"


@LIBRARIES.shape(
    "an enum with two names for one value",
    allows("colour", "red", "blue"),
    gets({"colour": "red"}, "Colour Colour.RED"),
)
def enum_with_an_alias(colour: Colour) -> str:
    return show(colour)


@LIBRARIES.shape(
    "a dict whose keys are numbers of an enum",
    gets({"counts": {"1": 5}}, "{<Level.LOW: 1>: 5}"),
    refuses({"counts": {"3": 5}}, "3"),
)
def enum_keys(counts: dict[Level, int]) -> str:
    return str(counts)


@LIBRARIES.shape(
    "a dict whose keys match a pattern",
    gets({"sizes": {"x-a": 1}}, "{'x-a': 1}"),
    refuses({"sizes": {"y": 1}}, "sizes"),
)
def keys_with_a_pattern(sizes: dict[Annotated[str, Field(pattern="^x-")], int]) -> str:
    return str(sizes)


@LIBRARIES.shape(
    "a union of which JSON can say one part",
    types("values", "array"),
    gets({"values": [1, 2]}, "list [1.0, 2.0]"),
)
def union_in_part(values: range | list[float]) -> str:
    return show(values)


@LIBRARIES.shape(
    "a model with an optional callback",
    gets({"watched": {"path": "a"}}, "a None"),
    refuses({"watched": {}}, "path"),
)
def model_with_a_callback(watched: Watched) -> str:
    return f"{watched.path} {watched.on_change}"


@LIBRARIES.shape(
    "a union that a function tells apart",
    gets({"form": {"side": 1}}, "Square"),
    refuses({"form": {"side": "x"}}, "side", "number"),
)
def callable_discriminator(
    form: Annotated[
        Annotated[Circle, Tag("circle")] | Annotated[Square, Tag("square")],
        Discriminator(lambda value: "square" if "side" in value else "circle"),
    ],
) -> str:
    return type(form).__name__


@LIBRARIES.shape(
    "a model whose fields are checked together",
    gets({"span": {"low": 1, "high": 2}}, 1),
    refuses({"span": {"low": 2, "high": 1}}, "low must not exceed high"),
)
def validated_together(span: Span) -> int:
    return span.high - span.low


@LIBRARIES.shape(
    "a field with several names",
    gets({"search": {"query": "a"}}, "a"),
    refuses({"search": {}}, "query"),
)
def several_names(search: Search) -> str:
    return search.text


@LIBRARIES.shape("bytes as Base64", gets({"data": "aGk="}, "bytes b'hi'"), types("data", "string"))
def base64_bytes(data: Base64Bytes) -> str:
    return show(data)


@LIBRARIES.shape("a Literal of bytes", gets({"mode": "r"}, "bytes b'r'"), refuses({"mode": "w"}))
def literal_bytes(mode: Literal[b"r"]) -> str:
    return show(mode)


@LIBRARIES.shape(
    "no number in the text of a float",
    gets({"size": 1.5}, "float 1.5"),
    refuses({"size": "NaN"}, "size"),
    refuses({"size": "-inf"}, "size"),
)
def endless_float(size: float) -> str:
    return show(size)


@LIBRARIES.shape(
    "bounds of a date",
    gets({"day": "2026-01-01"}, "2026-01-01"),
    refuses({"day": "2019-01-01"}, "2020-01-01"),
)
def bounded_date(day: Annotated[dt.date, Field(ge=dt.date(2020, 1, 1))]) -> str:
    return str(day)


@LIBRARIES.shape(
    "options of a command line program",
    describes("who", "Who is greeted."),
    describes("times", "How often."),
    required("who", "times"),
    optional("loud"),
    property_has("times", minimum=1),
    takes("who", "times", "loud"),
    gets({"who": "Ann", "times": 2}, "Ann 2 False"),
)
def command_line_options(
    who: Annotated[str, typer.Argument(help="Who is greeted.")],
    times: int = typer.Option(..., min=1, help="How often."),
    loud: bool = typer.Option(default=False),
) -> str:
    return f"{who} {times} {loud}"


@LIBRARY_RESULTS.shape(
    "a serializer that does not say what it makes", outputs("at"), gets({}, {"at": 2026})
)
def untold_serializer() -> Meeting:
    return Meeting(at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))


@LIBRARY_RESULTS.shape(
    "a dataclass that sets a field itself",
    outputs("net", "gross"),
    gets({}, {"net": 1, "gross": 2}),
)
def late_field() -> Invoice:
    return Invoice(1)


@LIBRARY_RESULTS.shape_made(
    "a protocol", answers(lambda value: value == {"name": "Ann", "age": 5} or "Ann" in str(value))
)
def protocol() -> Function:
    class Person:
        def __init__(self) -> None:
            self.name = "Ann"
            self.age = 5

    def find() -> Named:
        return Person()

    return find


@LIBRARY_RESULTS.shape(
    "a Decimal that is no number",
    answers(lambda value: value is None or str(value).lower() == "nan"),
)
def endless_decimal() -> Decimal:
    return Decimal("NaN")
