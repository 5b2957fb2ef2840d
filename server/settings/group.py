"""What every group of settings is, and how values that several of them have are read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_ARRAY = re.compile(r"\s*\[\s*(?:[\"\[\]{]|$)")  # and no address such as [::1]:443
_COMMA = re.compile(r",(?![^()]*\))")


class SettingsGroup(BaseModel):
    """Settings that belong together; immutable, and without what nobody knows."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        defer_build=True,  # a start needs the whole, and builds each part once with it
    )


def split_commas(value: object) -> object:
    """A list as the environment has it: separated by commas, or a JSON array.

    A comma in parentheses separates nothing: `bash(git log --format=%h,%s)` is one rule.

    Raises:
        ValueError: If a text begins as a JSON array and is none.
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
    """A table as the environment has it.

    Raises:
        ValueError: If a text is no JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None


def expand(path: Path) -> Path:
    """A path that a setting names, from the root of the file system on.

    Raises:
        ValueError: It cannot be looked up: a name that is too long, a user without a home.
    """
    try:
        expanded = path.expanduser().absolute()
        expanded.exists()  # raises where nobody could look
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    except OSError as error:
        raise ValueError(f"cannot be looked up: {error.strerror}") from error
    return expanded


GivenName = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")]
"""What the user calls a table of theirs."""

ServerName = Annotated[str, Field(pattern=r"^[a-z0-9]([-_]?[a-z0-9])*$", max_length=30)]
"""What the user calls another server; it stands before the names of its tools, and "__"."""

Names = Annotated[tuple[str, ...], BeforeValidator(split_commas)]
