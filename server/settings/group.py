"""The base class of groups of settings, and parsers of their values."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_ARRAY = re.compile(r"\s*\[\s*(?:[\"\[\]{]|$)")  # but not an address such as [::1]:443
_COMMA = re.compile(r",(?![^()]*\))")


class SettingsGroup(BaseModel):
    """A group of settings; immutable, rejects unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        defer_build=True,  # parts are built once, together with the whole
    )


def split_commas(value: object) -> object:
    """Parses a list from the environment: comma-separated, or a JSON array.

    Commas in parentheses do not separate: `bash(git log --format=%h,%s)` is one rule.

    Raises:
        ValueError: If a text looks like a JSON array but is invalid.
    """
    if not isinstance(value, str):
        return value
    if _ARRAY.match(value):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError('is not JSON: write a,b or ["a", "b"]') from None
    return tuple(part for part in map(str.strip, _COMMA.split(value)) if part)


def parse_object(value: object) -> object:
    """Parses a table from the environment.

    Raises:
        ValueError: If a text is not JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None


def expand(path: Path) -> Path:
    """Returns the absolute path of a setting.

    Raises:
        ValueError: If it cannot be looked up: the name is too long, or a user has no home.
    """
    try:
        expanded = path.expanduser().absolute()
        expanded.exists()  # raises if the path cannot be looked up
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    except OSError as error:
        raise ValueError(f"cannot be looked up: {error.strerror}") from error
    return expanded


GivenName = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")]
"""A table name that the user chooses."""

ServerName = Annotated[str, Field(pattern=r"^[a-z0-9]([-_]?[a-z0-9])*$", max_length=30)]
"""A server name that the user chooses; with "__" it prefixes the names of its tools."""

Names = Annotated[tuple[str, ...], BeforeValidator(split_commas)]
