"""Removes secrets from what is recorded and answered: by schema, by key and by pattern.

Also finds what is recorded of stored content: its ids.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from os.path import commonprefix
from typing import Any, cast

from tools.conversion.schema_reading import (
    Schema,
    bears_secret,
    is_secret,
    of_item,
    of_name,
    of_property,
    of_same_place,
)
from tools.core.audit.secret_patterns import REDACTED, redacted_text
from tools.core.result import ToolFailure, ToolResult
from tools.core.spec import ToolSpec
from tools.core.unicode_safety import encodable
from tools.sandbox.secrets.redaction import Redaction

CUT = "…"
LEVELS = 6  # maximum levels of nesting that are kept
ITEMS = 20  # maximum entries of a list or an object that are kept
KEY_CHARACTERS = 64
WORTH = 16
"""The minimum cost of a value in characters, so that a list of a thousand zeros is cut too."""

MOST_LOOKED_AT = 5_000
"""Maximum values of a result that are searched for ids."""

MOST_IDS = 100

CONTEXT_ID = re.compile(r"[0-9a-f]{32}")
_TEXTS = ("content", "text")
"""The keys under which results hold the text of a context, next to its id."""

MOST_BITS = 128
"""A longer number is recorded as its length, since writing it out takes quadratic time."""

_SECRET_KEY = re.compile(
    r"passw|passcode|passphrase|pwd|token|secret|apikey|accesskey|privatekey|signingkey"
    r"|authorization|cookie|credential|bearer|^auth$|^pin$|^otp$|(?<!by)(?<!com)pass$"
)
_NO_LETTER = re.compile(r"[\W_]+")


SHORTEST = 4
"""Minimum length of a value to search for anywhere; shorter ones occur in too many words."""

END = 8  # length of a long value's ends that are searched for too, since many texts show only these
MOST = 100  # maximum number of values that are searched for in texts
PLACEHOLDER = "\ue000"
"""Replaces secrets temporarily: a word could match another secret and be replaced twice."""


Find = Callable[[str], ToolSpec | None]


def redacted(value: Mapping[str, Any], budget: int, names: Collection[str] = ()) -> dict[str, Any]:
    """Returns an object for recording: JSON without secrets, of about `budget` characters.

    A value whose key names a secret is replaced completely, whatever its type and depth; so is
    anything in texts that looks like a secret. Values nested too deeply, or beyond the budget, are
    replaced by an ellipsis.

    `names` are those of stored secrets, which are not secret themselves.
    """
    return _Budget(budget, names).mapping(value, LEVELS)


@lru_cache(1_000)
def _redacted_key(key: str) -> str:
    """Redacts a short key; cached, because calls repeat the same few keys."""
    return redacted_text(key, KEY_CHARACTERS)


class _Budget:
    """Copies values until the character budget is spent."""

    def __init__(self, budget: int, names: Collection[str]) -> None:
        self._left = budget
        self._names = names

    def mapping(self, value: Mapping[str, Any], levels: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for number, (key, inner) in enumerate(value.items()):
            if number == ITEMS or self._left <= 0:
                kept[CUT] = CUT
                break
            given = key if isinstance(key, str) else type(key).__name__
            is_short = len(given) <= KEY_CHARACTERS
            name = _redacted_key(given) if is_short else redacted_text(given, KEY_CHARACTERS)
            self._left -= len(name) + WORTH
            is_name = isinstance(inner, str) and inner in self._names
            is_secret = _is_secret(given, inner) and not is_name
            kept[name] = REDACTED if is_secret else self._value(inner, levels - 1)
        return kept

    def _value(self, value: object, levels: int) -> Any:  # noqa: ANN401  # any JSON value
        if isinstance(value, str):
            text = redacted_text(value, max(self._left, WORTH))
            self._left -= len(text)
            return text
        if value is None or isinstance(value, int | float):
            return _json_number(value)
        spent = levels <= 0 or self._left <= 0
        if isinstance(value, Mapping):
            return CUT if spent else self.mapping(value, levels)
        if isinstance(value, list | tuple):
            return CUT if spent else self._list(value, levels)
        return type(value).__name__

    def _list(self, value: list[Any] | tuple[Any, ...], levels: int) -> list[Any]:
        kept: list[Any] = []
        for number, inner in enumerate(value):
            if number == ITEMS or self._left <= 0:
                kept.append(CUT)
                break
            self._left -= WORTH
            kept.append(self._value(inner, levels - 1))
        return kept


def _json_number(value: float | None) -> float | str | None:
    """Returns a number in JSON form, or a text describing it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return f"a number of {value.bit_length()} bits"
    return value


def _is_secret(key: str, value: object) -> bool:
    """Returns whether a key names a secret; empty values and booleans are never secret."""
    if value is None or isinstance(value, bool) or value == "":
        return False
    return _SECRET_KEY.search(_NO_LETTER.sub("", key[:256]).lower()) is not None


class SecretArguments:
    """The secrets among the arguments of one call; without a tool, none are known.

    A value is secret if its schema has `writeOnly` or `format: password`, as that of `SecretStr`
    does. If a value does not match its schema, as in a rejected call, everything is secret that is
    in a place where a secret is possible.

    Attributes:
        arguments: The arguments without secrets, under their schema names.
        found: Whether there are any secrets.
    """

    def __init__(self, spec: ToolSpec | None, arguments: object, find: Find) -> None:
        self._find = find
        self._spec = spec
        self._values: set[str] = set()
        self._bearing: dict[int, bool] = {}
        self.found = False
        self.arguments = arguments if spec is None else self._without(spec, arguments)

    @cached_property
    def _redaction(self) -> Redaction:
        return Redaction(lambda _: PLACEHOLDER)

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
            if spec.bears_secrets:
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


def context_ids(roots: list[object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the ids of contexts in JSON values, and those next to a text."""
    told: dict[str, None] = {}
    read: dict[str, None] = {}
    for value in _values(roots):
        if isinstance(value, str) and CONTEXT_ID.fullmatch(value):
            told[value] = None
        elif isinstance(value, dict) and any(value.get(name) for name in _TEXTS):
            own = value.get("id")
            if isinstance(own, str) and CONTEXT_ID.fullmatch(own):
                read[own] = None
        if len(told) >= MOST_IDS:
            break
    return tuple(told), tuple(read)


def _values(roots: list[object]) -> Iterator[object]:
    waiting = deque(roots)
    for _ in range(MOST_LOOKED_AT):
        if not waiting:
            return
        value = waiting.popleft()
        yield value
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
