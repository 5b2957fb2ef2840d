"""Errors and warnings about a spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.conversion.arguments.descriptions import describe_schema, show
from tools.conversion.arguments.validation_errors import unknown_name
from tools.data.catalogue.catalogue import ParameterInfo


@dataclass(slots=True)
class Findings:
    """Errors, for which Data-Juicer would not run a spec, and warnings; a sentence each."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Adds the findings of another check."""
        self.errors += other.errors
        self.warnings += other.warnings


def faults(
    where: str, values: Mapping[str, Any], known: Mapping[str, ParameterInfo]
) -> Iterator[str]:
    """Checks values against parameters of the release; yields a sentence for each fault."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types

    for name, value in values.items():
        if name not in known:
            yield unknown_name(where, name, known)
        elif not Draft202012Validator(schema := known[name].value_schema).is_valid(value):
            path = f"{where}.{name}" if where else name
            yield f"`{path}` is {show(value)}; send {describe_schema(schema, schema)}."
    for name, parameter in known.items():
        if parameter.is_required and name not in values:
            yield f"`{where}.{name}` is missing: {parameter.description or 'it has no default'}"
