"""Secret arguments: what of a call nobody but its tool is to read, by the schema of its tool.

A value is secret where its schema says `writeOnly` or `format: password`, as that of `SecretStr`
does. Where a value cannot be held against its schema, as in a call that is refused, all of it is
secret that stands where a secret may stand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from os.path import commonprefix
from typing import Any, cast

from tools.core.audit.redact import REDACTED
from tools.core.audit.secret_schema import (
    Schema,
    bears_secret,
    is_secret,
    of_item,
    of_name,
    of_property,
    of_same_place,
)
from tools.core.invisible import encodable
from tools.core.result import ToolFailure, ToolResult
from tools.core.spec import ToolSpec
from tools.sandbox.secrets.redaction import Redaction

SHORTEST = 4
"""Characters of a value that is looked for anywhere; a shorter one is in too many words."""

END = 8
"""Characters at either end of a long value that are looked for, too: many show no more of one."""

MOST = 100
"""Values that are looked for in texts."""

PLACEHOLDER = "\ue000"
"""Stands in a secret's place meanwhile: a word could be another secret, and be replaced again."""


Find = Callable[[str], ToolSpec | None]


class SecretTools:
    """Knows which tools have secret arguments, and finds them in calls."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[ToolSpec, bool]] = {}

    def of(self, spec: ToolSpec | None, arguments: object, find: Find) -> SecretArguments:
        """Returns the secrets of a call; where there is no such tool, none are known."""
        return SecretArguments(self, spec, arguments, find)

    def bears(self, spec: ToolSpec) -> bool:
        """Returns whether any argument of a tool may hold a secret: few do, and all are asked."""
        known, bears = self._known.get(spec.name, (None, False))
        if known is not spec:  # which another version of it may have become
            bears = bears_secret(spec.input_schema, spec.input_schema)
            self._known[spec.name] = spec, bears
        return bears


class SecretArguments:
    """The secrets among the arguments of one call.

    Args:
        tools: Knows the tools.
        spec: The one that is called; None where there is none.
        arguments: As the caller gave them.
        find: Finds a tool that the caller has by any name.

    Attributes:
        arguments: The same without the secrets, by the names that the tool has.
        found: Whether there are any.
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

    def shown(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What validation made of the arguments, without the secrets, defaults too."""
        if self._spec is None:
            return arguments
        masked = cast("Mapping[str, object]", self._without(self._spec, arguments))
        given = self.arguments if isinstance(self.arguments, Mapping) else {}
        return {
            name: value if masked[name] is value else given.get(name, masked[name])
            for name, value in arguments.items()
        }

    def text(self, text: str) -> str:
        """A text without the secrets; nothing of it where they are too many to look for."""
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

    def told(self, result: ToolResult) -> ToolResult:
        """A result as its caller has it: no failure repeats a secret, but for another server's."""
        if not self._values or not result.is_error or result.verbatim is not None:
            return result
        failure = ToolFailure.model_validate(result.structured)
        failure.message = self.text(failure.message)
        failure.suggestions = [*map(self.text, failure.suggestions)]
        failure.next_actions = [*map(self.text, failure.next_actions)]
        return replace(result, structured=failure.model_dump(mode="json"), text=failure.to_text())

    def recorded(self, result: ToolResult | None) -> ToolResult | None:
        """A result as it may be recorded."""
        return result and replace(result, text=self.text(result.text))

    def _without(self, spec: ToolSpec, arguments: object) -> object:
        try:
            if self._tools.bears(spec):
                given = cast("Mapping[str, Any]", arguments)
                schema = spec.input_schema
                arguments = self._masked(spec.canonical(given), [schema], schema)
            return self._passed_on(arguments) if spec.passes_on else arguments
        except RecursionError:
            return self._mask(arguments)

    def _masked(self, value: object, schemas: Sequence[Schema], root: Schema) -> object:
        """A value without what any of its schemas calls a secret, or might."""
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
        """As `bears_secret`, once a schema: many values have the same one, and some are large."""
        if id(schema) not in self._bearing:
            self._bearing[id(schema)] = bears_secret(schema, root)
        return self._bearing[id(schema)]

    def _inner(self, value: object, schemas: Sequence[Schema], root: Schema) -> object:
        return self._masked(value, schemas, root) if schemas else self._mask(value)

    def _passed_on(self, value: object) -> object:
        """The same of the arguments of calls that stand in a value, by their own tools."""
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
        if spec is None or spec.passes_on:
            return self._mask(arguments)
        return self._without(spec, arguments)

    def _mask(self, value: object) -> object:
        """What stands in the place of a secret; nothing and yes or no are none."""
        is_nothing = isinstance(value, str | list | Mapping) and not value
        if value is None or isinstance(value, bool) or is_nothing:
            return value
        self.found = True
        self._values.update(filter(None, _texts(value)))
        return REDACTED


def _without_beginning(text: str, value: str) -> str:
    """A text without what a value begins with, as far as it goes on."""
    at = text.find(value[:END])
    while at >= 0:
        length = len(commonprefix((value, text[at : at + len(value)])))  # noqa: RUF071  # no paths
        text = f"{text[:at]}{PLACEHOLDER}{text[at + length :]}"
        at = text.find(value[:END], at + 1)
    return text


def _decoded(text: str) -> object:
    """The list or object that a text is the JSON of, or None."""
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, list | dict) else None


def _texts(value: object) -> Iterator[str]:
    """Each text or number in a secret, those too that a text is the JSON of."""
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
