"""Values against the parameters of the release: known names, right types, nothing missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tools.conversion.arguments.descriptions import describe_schema, show
from tools.conversion.arguments.validation_errors import unknown_name
from tools.data.catalogue.operator import Parameter


def faults(where: str, values: Mapping[str, Any], known: Mapping[str, Parameter]) -> Iterator[str]:
    """What is wrong with values, a sentence each.

    Args:
        where: What they are of, such as an operator.
        values: The values by name.
        known: The parameters by name.
    """
    for name, value in values.items():
        if name not in known:
            yield unknown_name(where, name, known)
        else:
            yield from _misfits(f"{where}.{name}" if where else name, value, known[name].schema)
    for name, parameter in known.items():
        if parameter.is_required and name not in values:
            yield f"`{where}.{name}` is missing: {parameter.description or 'it has no default'}"


def _misfits(path: str, value: object, schema: Mapping[str, Any]) -> Iterator[str]:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types

    if next(Draft202012Validator(schema).iter_errors(value), None) is not None:
        yield f"`{path}` is {show(value)}; send {describe_schema(schema, schema)}."
