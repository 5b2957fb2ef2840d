"""Results in containers of every kind, and types that only a result has."""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NewType, NoReturn, Self, TypeVar

import anyio
from pydantic import BaseModel, Field, field_serializer, model_serializer

from benchmarks.function_shapes.checks import answers, gets, outputs, refuses, replies
from benchmarks.function_shapes.shape import Theme
from benchmarks.function_shapes.subjects import Colour, Page

Function = Callable[..., Any]

ItemT = TypeVar("ItemT")
TownId = NewType("TownId", int)

CONTAINERS = Theme("results")


class Town(BaseModel):
    """A town."""

    name: str


class Shouted(BaseModel):
    """Says how it is written."""

    name: str

    @field_serializer("name")
    def shout(self, name: str) -> str:
        """In capitals."""
        return name.upper()


class Flat(BaseModel):
    """Is written as something else."""

    name: str

    @model_serializer
    def write(self) -> str:
        """As its name only."""
        return self.name


@dataclass
class Point:
    """Makes itself."""

    x: int

    @classmethod
    def make(cls, x: int) -> Self:
        """One of this class."""
        return cls(x)


class Broken:
    """Cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


@CONTAINERS.shape_made(
    "abstract containers", gets({}, {"towns": [{"name": "Bern"}], "ages": {"a": 1}})
)
def abstract() -> Function:
    class Both(BaseModel):
        towns: Sequence[Town]
        ages: Mapping[str, int]

    def find() -> Both:
        return Both(towns=(Town(name="Bern"),), ages={"a": 1})

    return find


@CONTAINERS.shape("a Sequence and a Mapping", gets({}, [{"Bern": 1}]), outputs("result"))
def sequence() -> Sequence[Mapping[str, int]]:
    return ({"Bern": 1},)


@CONTAINERS.shape("an iterator that a function returns", gets({}, [1, 2]))
def returned_iterator() -> Iterator[int]:
    return iter([1, 2])


@CONTAINERS.shape("an Iterable", gets({}, [1, 2]))
def returned_iterable() -> Iterable[int]:
    return [1, 2]


@CONTAINERS.shape("a Generator by its full name", gets({}, [1, 2]))
def full_generator() -> Generator[int, None, None]:
    yield 1
    yield 2


@CONTAINERS.shape("an AsyncGenerator of models", gets({}, [{"name": "Bern"}]))
async def full_async_generator() -> AsyncGenerator[Town, None]:
    await anyio.lowlevel.checkpoint()
    yield Town(name="Bern")


@CONTAINERS.shape(
    "deque, Counter, defaultdict, OrderedDict and range",
    gets({}, {"a": [1], "b": {"x": 2}, "c": {"y": [1]}, "d": {"z": 1}, "e": [0, 1]}),
)
def library_containers() -> dict[str, Any]:
    return {
        "a": deque([1]),
        "b": Counter("xx"),
        "c": defaultdict(list, y=[1]),
        "d": OrderedDict(z=1),
        "e": range(2),
    }


@CONTAINERS.shape("keys that are enums", gets({}, {"#f00": 1}))
def enum_keys() -> dict[Colour, int]:
    return {Colour.RED: 1}


@CONTAINERS.shape("a set of enums and a tuple of models", gets({}, [["#f00"], [{"name": "Bern"}]]))
def sets_and_tuples() -> tuple[set[Colour], tuple[Town, ...]]:
    return {Colour.RED}, (Town(name="Bern"),)


@CONTAINERS.shape("bytes in lists", gets({}, ["/w==", "/g=="], ["_w==", "_g=="]))
def bytes_list() -> list[bytes]:
    return [b"\xff", b"\xfe"]


@CONTAINERS.shape("bytearray and memoryview", gets({}, ["/w==", "/g=="], ["_w==", "_g=="]))
def other_buffers() -> list[Any]:
    return [bytearray(b"\xff"), memoryview(b"\xfe")]


@CONTAINERS.shape("a generic model", outputs("items"), gets({}, {"items": [1]}))
def generic_model() -> Page[int]:
    return Page(items=[1])


@CONTAINERS.shape("a model with a serializer of its own for a field", gets({}, {"name": "BERN"}))
def field_serialized() -> Shouted:
    return Shouted(name="Bern")


@CONTAINERS.shape("a model that is written as a text", gets({}, "Bern"))
def model_serialized() -> Flat:
    return Flat(name="Bern")


@CONTAINERS.shape(
    "an optional list, once None",
    gets({"any": True}, [{"name": "Bern"}]),
    gets({"any": False}, None),
)
def optional_list(any: bool) -> list[Town] | None:  # noqa: A002  # the shape
    return [Town(name="Bern")] if any else None


@CONTAINERS.shape(
    "a model or a text", gets({"model": True}, {"name": "Bern"}), gets({"model": False}, "none")
)
def model_or_text(model: bool) -> Town | str:
    return Town(name="Bern") if model else "none"


@CONTAINERS.shape("Literal, NewType and Annotated", gets({}, ["a", 1, 2]))
def thin_types() -> tuple[Literal["a"], TownId, Annotated[int, Field(ge=1)]]:
    return "a", TownId(1), 2


@CONTAINERS.shape_made("Self", outputs("x"), gets({"x": 3}, {"x": 3}))
def self_type() -> Function:
    return Point.make


@CONTAINERS.shape("a type variable", gets({"value": {"a": 1}}, {"a": 1}), gets({"value": 3}, 3))
def type_variable(value: ItemT) -> ItemT:
    return value


@CONTAINERS.shape("NoReturn", refuses({}, "it never does"))
def no_return() -> NoReturn:
    raise ValueError("it never does")


@CONTAINERS.shape("an object that cannot be shown", replies({}), replies({}))
def broken() -> dict[str, Any]:
    return {"broken": Broken()}


@CONTAINERS.shape("an object", answers(lambda value: value == {"a": 1}))
def plain_object() -> object:
    return {"a": 1}
