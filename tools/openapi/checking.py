"""Arguments checked against the schema of an operation's tool, as far as that is ours to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tools.conversion.arguments.descriptions import describe_schema, show
from tools.conversion.arguments.validation_errors import unknown_name
from tools.core.audit.secret_schema import bears_secret
from tools.core.errors import InvalidArgumentsError

if TYPE_CHECKING:
    from jsonschema import ValidationError  # type: ignore[import-untyped]  # ships no types

MOST_ERRORS = 5

_UNCHECKED = ("pattern", "patternProperties", "uniqueItems")
"""What may take for ever, of a pattern and a text that nobody here has chosen."""


class Checker:
    """Checks arguments; what its schema does not say, the API decides.

    Args:
        tool: Name of the tool.
        schema: Its input schema.
    """

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self._tool = tool
        self._schema = schema

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Refuses arguments that do not fit.

        Raises:
            InvalidArgumentsError: If some do not; it names all of them, but not too many.
        """
        lines = list(dict.fromkeys(self._lines(arguments)))
        if lines:
            raise InvalidArgumentsError(
                f"The arguments of {self._tool} do not fit. " + " ".join(lines[:MOST_ERRORS]),
                next_actions=["Correct these arguments and call it again."],
            )

    def _lines(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        known = self._schema["properties"]
        for name in arguments:
            if name not in known:
                yield unknown_name("", name, known)
        try:
            yield from map(self._line, self._validator.iter_errors(dict(arguments)))
        except RecursionError:
            return  # a schema that is itself, or a value that is too deep: the API has to say

    @cached_property
    def _validator(self) -> Any:  # noqa: ANN401  # a class made just now
        from jsonschema import Draft202012Validator
        from jsonschema.validators import extend  # type: ignore[import-untyped]  # ships no types

        checked = extend(Draft202012Validator, dict.fromkeys(_UNCHECKED))
        return checked({**self._schema, "additionalProperties": True})

    def _line(self, error: ValidationError) -> str:
        path = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.path)
        path = path.removeprefix(".")
        if error.validator == "required":
            missing = next(each for each in error.validator_value if each not in error.instance)
            return f"`{path}{'.' * bool(path)}{missing}` is missing."
        schema = error.schema if isinstance(error.schema, Mapping) else {}
        is_untold = bears_secret(schema, self._schema)
        found = "does not fit" if is_untold else f"is {show(error.instance)}"
        return f"`{path}` {found}; send {describe_schema(schema, self._schema)}."
