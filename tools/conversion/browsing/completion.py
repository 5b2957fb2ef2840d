"""Completes the arguments of prompts and the variables of resource templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tools.conversion.function_to_mcp import FunctionToMCP
from tools.conversion.schemas.reading import branches
from tools.core.context import RequestContext
from tools.core.errors import InternalError, ToolDefinitionError
from tools.core.spec import ToolSpec

TYPED = "value"
"""The parameter of a completing function that receives the text typed so far."""


class Completion:
    """Suggests values from parameter types and from completing functions.

    Args:
        owner: The prompt or resource that has the arguments.
        schema: The schema of the arguments.
        functions: The completing function of each argument that has one.
        source: Where these come from, as in ToolSpec.

    Raises:
        ToolDefinitionError: If an argument does not exist, or its function takes an unknown
            parameter.
    """

    def __init__(
        self,
        owner: str,
        schema: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
        source: str,
    ) -> None:
        properties = schema["properties"]
        for name in functions:
            if name not in properties:
                has = ", ".join(properties) or "none"
                raise ToolDefinitionError(f"{owner} has no {name!r} to complete; it has {has}.")
        self._owner = owner
        self._choices = {name: list(_choices(part, schema)) for name, part in properties.items()}
        self._functions = {
            name: _converted(f"{name} of {owner}", each, properties, source)
            for name, each in functions.items()
        }

    async def __call__(
        self, argument: str, typed: str, given: Mapping[str, str], context: RequestContext
    ) -> list[str]:
        """Returns the matching values, best first."""
        function = self._functions.get(argument)
        if function is None:
            return fitting(self._choices.get(argument, ()), typed)
        known = {**given, TYPED: typed}
        taken = function.input_schema["properties"]
        if not known.keys() >= set(function.input_schema.get("required", ())):
            return []  # they depend on arguments not chosen yet
        values = function.validate({name: known[name] for name in taken if name in known})
        found = (await function.invoke(values, context)).structured.get("result")
        if not isinstance(found, list):
            raise InternalError(
                f"What completes {argument} of {self._owner} returns no list of texts. This is a "
                "defect of the function."
            )
        texts = list(map(str, found))
        return texts if TYPED in taken else fitting(texts, typed)


def fitting(values: Iterable[str], typed: str) -> list[str]:
    """Returns the values that begin with the typed text, then those that contain it."""
    folded = typed.casefold()
    fit = [value for value in values if folded in value.casefold()]
    return sorted(fit, key=lambda value: not value.casefold().startswith(folded))


def _choices(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[str]:
    """Yields the values of a type that has few: a Literal, an Enum or a bool."""
    for branch in branches(schema, root):
        if "const" in branch:
            yield str(branch["const"])
        elif branch.get("type") == "boolean":
            yield from ("true", "false")
        else:
            yield from map(str, branch.get("enum", ()))


def _converted(
    completed: str, function: Callable[..., Any], others: Mapping[str, Any], source: str
) -> ToolSpec:
    spec = FunctionToMCP.convert(function, name="complete", description="", source=source)
    for name in spec.input_schema["properties"]:
        if name != TYPED and name not in others:
            raise ToolDefinitionError(
                f"What completes {completed} takes {name!r}; it may take {TYPED!r}, "
                f"which is what has been typed, and {', '.join(others)}."
            )
    return spec
