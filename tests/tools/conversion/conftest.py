"""What the tables of types are examined with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.errors import InvalidArgumentsError

TypeCase = tuple[Any, dict[str, Any], list[tuple[Any, Any]], Any, str]
"""A type, its schema, what is sent and received, what is refused, and what is said of that."""


@pytest.fixture
def taking() -> Callable[[Any], Callable[..., Any]]:
    """Makes a function of one parameter of a type."""

    def of_type(annotation: Any) -> Callable[..., Any]:
        def take(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # annotated below
            return x

        take.__annotations__ = {"x": annotation}
        return take

    return of_type


@pytest.fixture
def examine(taking: Callable[[Any], Callable[..., Any]]) -> Callable[[TypeCase], None]:
    """Checks schema, received values and refusal of one type; `...` is no value at all."""

    def check(case: TypeCase) -> None:
        annotation, expected_schema, accepted, rejected, complaint = case
        spec = FunctionToMCP.convert(taking(annotation))
        schema = dict(spec.input_schema)
        jsonschema.Draft202012Validator.check_schema(schema)
        found = schema["properties"]["x"]
        if "$ref" in found:
            found = schema["$defs"][found["$ref"].removeprefix("#/$defs/")]
        assert found == expected_schema
        for raw, expected in accepted:
            received = spec.validate({"x": raw})["x"]
            assert received == expected
            assert isinstance(received, type(expected))
        with pytest.raises(InvalidArgumentsError) as caught:
            spec.validate({} if rejected is ... else {"x": rejected})
        assert complaint in caught.value.message

    return check
