"""Generated signatures and arguments: schema, validation and call say the same of them."""

from __future__ import annotations

import datetime as dt
import enum
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Union

import jsonschema  # type: ignore[import-untyped]  # ships no types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from tools.conversion.arguments.input_types import input_type
from tools.conversion.arguments.validator import ArgumentSchemaGenerator
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.conversion.results.return_type import ResultSchemaGenerator
from tools.conversion.schema_generator import arguments_schema, simple_schema
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.spec import ToolSpec


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.Enum):
    SMALL = (1, 2)
    LARGE = (3, 4)


@dataclass
class Span:
    start: int
    end: int = 9


class Order(BaseModel):
    name: str
    spans: list[Span] = Field(default_factory=list)


class Options(TypedDict):
    depth: int
    mode: NotRequired[Literal["fast", "slow"]]


@dataclass(frozen=True)
class Kind:
    """A type: its annotation, JSON that fits it, and whether a value is one of it."""

    annotation: Any
    fits: st.SearchStrategy[Any]
    received: Callable[[Any], bool]


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in types


TEXT = st.text(st.characters(codec="utf-8"), max_size=4)
SPANS = st.fixed_dictionaries({"start": st.integers()}, optional={"end": st.integers()})
LEAVES = [
    Kind(int, st.integers(), _is(int)),
    Kind(float, st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9), _is(float)),
    Kind(str, TEXT, _is(str)),
    Kind(bool, st.booleans(), _is(bool)),
    Kind(bytes, TEXT, _is(bytes)),
    Kind(
        Annotated[int, Field(ge=0, lt=9)],
        st.integers(0, 8),
        lambda value: _is(int)(value) and value in range(9),
    ),
    Kind(
        Annotated[str, Field(min_length=1, max_length=2)],
        TEXT.filter(lambda text: 0 < len(text) < 3),
        lambda value: isinstance(value, str) and 0 < len(value) < 3,
    ),
    Kind(int | list[str], st.integers() | st.lists(TEXT, max_size=2), _is(int, list)),
    Kind(Literal["a", 1, True], st.sampled_from(["a", 1, True]), _is(str, int, bool)),
    Kind(Colour, st.sampled_from(["red", "blue"]), _is(Colour)),
    Kind(Size, st.sampled_from(["SMALL", "LARGE"]), _is(Size)),
    Kind(dt.date, st.dates().map(dt.date.isoformat), _is(dt.date)),
    Kind(Span, SPANS, _is(Span)),
    Kind(Order, st.fixed_dictionaries({"name": TEXT, "spans": st.lists(SPANS)}), _is(Order)),
    Kind(Options, st.fixed_dictionaries({"depth": st.integers()}), _is(dict)),
]


def _list_of(kind: Kind) -> Kind:
    return Kind(
        list[kind.annotation],  # type: ignore[name-defined]  # a type of any form
        st.lists(kind.fits, max_size=3),
        lambda value: isinstance(value, list) and all(map(kind.received, value)),
    )


def _dict_of(kind: Kind) -> Kind:
    return Kind(
        dict[str, kind.annotation],  # type: ignore[name-defined]  # a type of any form
        st.dictionaries(TEXT, kind.fits, max_size=3),
        lambda value: isinstance(value, dict) and all(map(kind.received, value.values())),
    )


def _pair_of(kind: Kind) -> Kind:
    return Kind(
        tuple[kind.annotation, ...],  # type: ignore[name-defined]  # a type of any form
        st.lists(kind.fits, max_size=3),
        lambda value: isinstance(value, tuple) and all(map(kind.received, value)),
    )


def _optional(kind: Kind) -> Kind:
    return Kind(
        kind.annotation | None
        if isinstance(kind.annotation, type)
        else Union[kind.annotation, None],  # noqa: UP007  # not all take |
        st.none() | kind.fits,
        lambda value: value is None or kind.received(value),
    )


KINDS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.builds(
        lambda make, kind: make(kind),
        st.sampled_from([_list_of, _dict_of, _pair_of, _optional]),
        inner,
    ),
    max_leaves=3,
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
PLACES = [
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
]
DEFAULT = object()
"""A default that JSON cannot represent."""


@dataclass
class Case:
    """A tool, what its function received, and the kinds of its parameters."""

    spec: ToolSpec
    received: dict[str, Any]
    kinds: dict[str, Kind]
    raw: dict[str, Any]


@st.composite
def _cases(draw: st.DrawFn, *, fitting: bool) -> Case:
    parameters, kinds, raw = [], {}, {}
    for place, kind in enumerate(draw(st.lists(KINDS, max_size=4))):
        form = draw(st.sampled_from(PLACES))
        needed = form is not inspect.Parameter.VAR_POSITIONAL and draw(st.booleans())
        name = f"p{place}"
        parameters.append((form, not needed, name, kind))
        kinds[name] = kind
    parameters.sort(key=lambda each: (each[0], each[1]))
    stars = [name for form, _, name, _ in parameters if form is inspect.Parameter.VAR_POSITIONAL]
    parameters = [each for each in parameters if each[2] not in stars[1:]]
    signature = inspect.Signature(_ordered(parameters))
    for form, optional, name, kind in parameters:
        fits = kind.fits if form is not inspect.Parameter.VAR_POSITIONAL else _list_of(kind).fits
        if not optional or draw(st.booleans()):
            raw[name] = draw(fits if fitting or draw(st.integers(0, 2)) else ANY_JSON)
    received: dict[str, Any] = {}

    def function(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        received.update(bound.arguments)

    function.__signature__ = signature  # type: ignore[attr-defined]  # generated
    return Case(FunctionToMCP.convert(function), received, kinds, raw)


def _ordered(parameters: list[Any]) -> list[inspect.Parameter]:
    """The parameters; a positional one has a default as soon as one before it has."""
    made: list[inspect.Parameter] = []
    optional = False
    for form, has_default, name, kind in parameters:
        starred = form is inspect.Parameter.VAR_POSITIONAL
        positional = form < inspect.Parameter.VAR_POSITIONAL
        optional = optional or (has_default and positional)
        default = (
            DEFAULT
            if (has_default or (positional and optional)) and not starred
            else inspect.Parameter.empty
        )
        made.append(inspect.Parameter(name, form, annotation=kind.annotation, default=default))
    return made


def _as_sent(raw: dict[str, Any]) -> dict[str, Any]:
    sent: dict[str, Any] = json.loads(json.dumps(raw))
    return sent


def _accepted(spec: ToolSpec, sent: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return spec.validate(sent)
    except InvalidArgumentsError:
        return None


@given(_cases(fitting=True))
async def test_what_fits_is_accepted_and_reaches_the_function_as_its_type(case: Case) -> None:
    sent = _as_sent(case.raw)
    jsonschema.validate(sent, case.spec.input_schema, jsonschema.Draft202012Validator)
    await case.spec.invoke(case.spec.validate(sent), RequestContext())
    for name, value in case.received.items():
        if value is DEFAULT:
            assert name not in sent
        elif isinstance(value, tuple) and name in sent and not case.kinds[name].received(value):
            assert all(map(case.kinds[name].received, value))  # *args
        elif name in sent:
            assert case.kinds[name].received(value)


@given(_cases(fitting=False))
def test_what_the_schema_accepts_is_accepted_and_what_is_accepted_means_its_type(
    case: Case,
) -> None:
    sent = _as_sent(case.raw)
    values = _accepted(case.spec, sent)
    if values is None:
        validator = jsonschema.Draft202012Validator(
            case.spec.input_schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        )
        assert not validator.is_valid(sent)
        return
    for name in sent:
        kind = case.kinds[name]
        value: Any = values.get(name)  # null for *args leaves them out
        fits = value is None or value is DEFAULT or kind.received(value)
        assert fits or all(map(kind.received, value))


@given(_cases(fitting=True))
def test_a_schema_is_one_and_the_same_and_without_noise(case: Case) -> None:
    schema = dict(case.spec.input_schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    text = json.dumps(schema)
    assert '"title"' not in text
    assert schema["additionalProperties"] is False


@given(KINDS)
def test_what_is_said_directly_is_what_pydantic_says(kind: Kind) -> None:
    made: Any = TypedDict("Made", {"x": input_type(kind.annotation)})  # type: ignore[misc]  # generated
    adapter: TypeAdapter[Any] = TypeAdapter(made)
    generated = adapter.json_schema(schema_generator=ArgumentSchemaGenerator)
    assert (
        arguments_schema(adapter, ArgumentSchemaGenerator)["properties"] == generated["properties"]
    )


@given(KINDS)
def test_the_same_holds_for_results(kind: Kind) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(input_type(kind.annotation))
    said = simple_schema(adapter.core_schema)
    if said is not None and "number" not in json.dumps(said):
        assert said == adapter.json_schema(
            mode="serialization", schema_generator=ResultSchemaGenerator
        )
