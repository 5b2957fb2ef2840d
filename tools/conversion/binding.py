"""Splits a function's arguments into positional and keyword arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from tools.conversion.callables.signature import NOTHING, OMITTED, Parameter

POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


class Binding:
    """Binds a call's values to the parameters of a function.

    Args:
        parameters: The parameters in order.
        is_open: Whether `**kwargs` accepts further names.
    """

    def __init__(self, parameters: Iterable[Parameter], *, is_open: bool) -> None:
        self._parameters = tuple(
            each
            for each in parameters
            if each.hidden or each.kind is not inspect.Parameter.VAR_KEYWORD
        )
        self._by_name = not is_open and all(map(_is_passed_by_name, self._parameters))

    def arguments(
        self, values: dict[str, Any], injected: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Returns the positional and keyword arguments of one call.

        Args:
            values: The caller's values, by public name.
            injected: The injected values, by the function's own parameter names.
        """
        if self._by_name:
            return [], values
        rest = dict(values)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        by_place = any(_is_starred(each) and rest.get(each.alias) for each in self._parameters)
        for each in self._parameters:
            if _is_starred(each):
                positional += rest.pop(each.alias, ())
                continue
            placed = each.kind is each.kind.POSITIONAL_ONLY or (
                by_place and each.kind in POSITIONAL
            )
            value = _value(each, rest, injected, needed=placed)
            if value is OMITTED:
                continue
            if placed:
                positional.append(value)
            else:
                named[each.name] = value
        return positional, {**rest, **named}


def _value(
    parameter: Parameter, rest: dict[str, Any], injected: Mapping[str, Any], *, needed: bool
) -> Any:
    """Removes and returns a parameter's value from the rest; OMITTED if none is needed."""
    if parameter.injected:
        return injected[parameter.name]
    if parameter.alias in rest and not parameter.hidden:
        return rest.pop(parameter.alias)
    field = parameter.field
    if field is not None and not field.is_required():
        return field.get_default(call_default_factory=True, validated_data={})
    return parameter.default if needed and parameter.default is not NOTHING else OMITTED


def _is_starred(parameter: Parameter) -> bool:
    return parameter.kind is inspect.Parameter.VAR_POSITIONAL


def _is_passed_by_name(parameter: Parameter) -> bool:
    by_name = parameter.kind in (parameter.kind.POSITIONAL_OR_KEYWORD, parameter.kind.KEYWORD_ONLY)
    return (
        by_name
        and parameter.alias == parameter.name
        and not parameter.injected
        and not (parameter.hidden and parameter.field)
    )
