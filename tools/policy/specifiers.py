"""Specifiers: narrow a rule to certain calls of a tool."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.policy.paths import Wildcard

NAMED = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)=")
NEXT = re.compile(r",\s*(?=[A-Za-z_][A-Za-z0-9_]*=)")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A value in a rule."""

    text: Wildcard  # the pattern for a scalar
    is_text: bool  # whether only a string matches, because the value is quoted

    def matches(self, value: object) -> bool:
        """Returns whether a value matches."""
        if isinstance(value, str):
            return self.text.matches(value)
        return not self.is_text and _is_scalar(value) and self.text.matches(_scalar_text(value))


@dataclass(frozen=True, slots=True)
class Arguments:
    """Conditions on arguments, all of which must hold."""

    wanted: Mapping[str, Wanted]  # the wanted values, by name

    @staticmethod
    def begin(text: str) -> bool:
        """Returns whether a specifier begins like conditions on arguments."""
        return NAMED.match(text) is not None

    @classmethod
    def parse(cls, text: str) -> Arguments:
        """Parses `name=value, …`; values are JSON scalars, or bare words with `*`."""
        wanted: dict[str, Wanted] = {}
        position = 0
        while found := NAMED.match(text, position):
            if found[1] in wanted:
                raise ValueError(f"{found[1]!r} appears twice in {text!r}")
            wanted[found[1]], position = _value(text, found.end())
            if position >= len(text):
                return cls(wanted)
        raise ValueError(f"{text!r} is not like 'name=value, name=value'")

    def unknown(self, schema: Mapping[str, Any]) -> list[str]:
        """Returns the names that are not parameters."""
        return [name for name in self.wanted if name not in schema.get("properties", {})]

    def match(self, argument: Callable[[str], object]) -> bool:
        """Returns whether all conditions hold."""
        return all(wanted.matches(argument(name)) for name, wanted in self.wanted.items())


def _value(text: str, start: int) -> tuple[Wanted, int]:
    """Parses the value at a position; returns it and the position of the next name."""
    if text.startswith('"', start):
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            raise ValueError(f"{text!r} ends within a quote") from None
        literal = re.sub(r"[\\*]", r"\\\g<0>", value)
        rest = NEXT.match(text, end)
        if rest is None and text[end:].strip():
            raise ValueError(f"{text!r}: a comma is missing after {text[start:end]}")
        return Wanted(Wildcard.parse(literal), is_text=True), rest.end() if rest else len(text)
    rest = NEXT.search(text, start)
    word = text[start : rest.start() if rest else len(text)].strip()
    return Wanted(Wildcard.parse(word), is_text=False), rest.end() if rest else len(text)


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float))


def _scalar_text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value)
