"""Finds and masks the secret arguments of a call, using its tool's schema.

A value is secret if its schema has `writeOnly` or `format: password`, as that of `SecretStr` does.
If a value does not match its schema, as in a rejected call, everything is secret that is in a place
where a secret is possible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from os.path import commonprefix
from typing import Any, cast

from tools.conversion.schema_reading import Schema
from tools.core.audit.redact import REDACTED
from tools.core.audit.secret_schema import (
    bears_secret,
    is_secret,
    of_item,
    of_name,
    of_property,
    of_same_place,
)
from tools.core.result import ToolFailure, ToolResult
from tools.core.spec import ToolSpec
from tools.core.unicode_safety import encodable
from tools.sandbox.secrets.redaction import Redaction

SHORTEST = 4
"""Minimum length of a value to search for anywhere; shorter ones occur in too many words."""

END = 8  # length of a long value's ends that are searched for too, since many texts show only these
MOST = 100  # maximum number of values that are searched for in texts
PLACEHOLDER = "\ue000"
"""Replaces secrets temporarily: a word could match another secret and be replaced twice."""


Find = Callable[[str], ToolSpec | None]


class SecretTools:
    """Finds the secret arguments of calls, and remembers which tools have any."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[ToolSpec, bool]] = {}

    def of(self, spec: ToolSpec | None, arguments: object, find: Find) -> SecretArguments:
        """Returns the secrets of a call; without a tool none are known."""
        return SecretArguments(self, spec, arguments, find)

    def bears(self, spec: ToolSpec) -> bool:
        """Returns whether any argument of a tool may hold a secret; cached for each tool."""
        known, bears = self._known.get(spec.name, (None, False))
        if known is not spec:  # also replaced by a newer version of the tool
            bears = bears_secret(spec.input_schema, spec.input_schema)
            self._known[spec.name] = spec, bears
        return bears


class SecretArguments:
    """The secrets among the arguments of one call.

    Attributes:
        arguments: The arguments without secrets, under their schema names.
        found: Whether there are any secrets.
    """

    def __init__(
        self, tools: SecretTools, spec: ToolSpec | None, arguments: object, find: Find
    ) -> None:
        self._tools = tools
        self._find = find
        self._spec = spec
        self._values: set[str] = set()
        self._redaction = Redaction(lambda _: PLACEHOLDER)
        self._bearing: dict[int, bool] = {}
        self.found = False
        self.arguments = arguments if spec is None else self._without(spec, arguments)

    def mask_validated(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the validated arguments without secrets, defaults included."""
        if self._spec is None:
            return arguments
        masked = cast("Mapping[str, object]", self._without(self._spec, arguments))
        given = self.arguments if isinstance(self.arguments, Mapping) else {}
        return {
            name: value if masked[name] is value else given.get(name, masked[name])
            for name, value in arguments.items()
        }

    def text(self, text: str) -> str:
        """Removes the secrets from a text, or redacts all of it if there are too many."""
        if not self._values:
            return text
        if len(self._values) > MOST:
            return REDACTED
        for value in self._values:
            if len(value) >= SHORTEST:
                self._redaction.learn("", value)
        text = self._redaction.text(text)
        for value in self._values:
            if len(value) < SHORTEST:
                text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", PLACEHOLDER, text)
            elif len(value) >= 2 * END:
                text = _without_beginning(text, value)
                text = _without_beginning(text[::-1], value[::-1])[::-1]
        return text.replace(PLACEHOLDER, REDACTED)

    def mask_failure(self, result: ToolResult) -> ToolResult:
        """Removes secrets from a failure for the caller; another server's result stays verbatim."""
        if not self._values or not result.is_error or result.verbatim is not None:
            return result
        failure = ToolFailure.model_validate(result.structured)
        failure.message = self.text(failure.message)
        failure.suggestions = [*map(self.text, failure.suggestions)]
        failure.next_actions = [*map(self.text, failure.next_actions)]
        return replace(result, structured=failure.model_dump(mode="json"), text=failure.to_text())

    def recorded(self, result: ToolResult | None) -> ToolResult | None:
        """Removes the secrets from a result for recording."""
        return result and replace(result, text=self.text(result.text))

    def _without(self, spec: ToolSpec, arguments: object) -> object:
        try:
            if self._tools.bears(spec):
                given = cast("Mapping[str, Any]", arguments)
                schema = spec.input_schema
                arguments = self._masked(spec.canonical(given), [schema], schema)
            return self._passed_on(arguments) if spec.is_proxy else arguments
        except RecursionError:
            return self._mask(arguments)

    def _masked(self, value: object, schemas: Sequence[Schema], root: Schema) -> object:
        """Returns a value without what any of its schemas marks as possibly secret."""
        here = list(of_same_place(schemas, root))
        if any(map(is_secret, here)):
            return self._mask(value)
        if not any(self._bears(each, root) for each in here):
            return value
        if isinstance(value, Mapping):
            names = of_name(here)
            return {
                self._masked(key, names, root): self._inner(inner, of_property(here, key), root)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [
                self._inner(inner, of_item(here, place), root) for place, inner in enumerate(value)
            ]
        return self._mask(value)

    def _bears(self, schema: Schema, root: Schema) -> bool:
        """Caches `bears_secret` by schema: many values share a schema, and some are large."""
        if id(schema) not in self._bearing:
            self._bearing[id(schema)] = bears_secret(schema, root)
        return self._bearing[id(schema)]

    def _inner(self, value: object, schemas: Sequence[Schema], root: Schema) -> object:
        return self._masked(value, schemas, root) if schemas else self._mask(value)

    def _passed_on(self, value: object) -> object:
        """Masks the arguments of calls nested in a value, using the schemas of their own tools."""
        if isinstance(value, str) and (decoded := _decoded(value)) is not None:
            kept = self._passed_on(decoded)
            return value if kept == decoded else self._mask(value)
        if isinstance(value, list | tuple):
            return [*map(self._passed_on, value)]
        if not isinstance(value, Mapping):
            return value
        if "arguments" not in value:
            return {key: self._passed_on(inner) for key, inner in value.items()}
        return {**value, "arguments": self._of_call(value.get("name"), value["arguments"])}

    def _of_call(self, name: object, arguments: object) -> object:
        spec = self._find(name) if isinstance(name, str) else None
        if spec is None or spec.is_proxy:
            return self._mask(arguments)
        return self._without(spec, arguments)

    def _mask(self, value: object) -> object:
        """Returns the mask of a secret; empty values and booleans are never secret."""
        is_nothing = isinstance(value, str | list | Mapping) and not value
        if value is None or isinstance(value, bool) or is_nothing:
            return value
        self.found = True
        self._values.update(filter(None, _texts(value)))
        return REDACTED


def _without_beginning(text: str, value: str) -> str:
    """Removes the beginning of a secret from a text, as far as it matches."""
    at = text.find(value[:END])
    while at >= 0:
        length = len(commonprefix((value, text[at : at + len(value)])))  # noqa: RUF071  # not paths
        text = f"{text[:at]}{PLACEHOLDER}{text[at + length :]}"
        at = text.find(value[:END], at + 1)
    return text


def _decoded(text: str) -> object:
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, list | dict) else None


def _texts(value: object) -> Iterator[str]:
    """Yields each text or number in a secret, including those in JSON texts."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
        elif isinstance(part, str):
            yield encodable(part)
            waiting.append(_decoded(part))
        elif part is not None and not isinstance(part, bool):
            with suppress(ValueError):  # an integer of more digits than Python writes
                yield str(part)
