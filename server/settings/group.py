"""The base class of groups of settings, and parsers and checks of their values."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationInfo

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


def as_tuple(value: object) -> object:
    """Accepts a single text as a list of one."""
    return (value,) if isinstance(value, str) else value


def split_commas(value: object) -> object:
    """Parses a list from the environment: comma-separated, or a JSON array.

    Commas in parentheses do not separate: `bash(git log --format=%h,%s)` is one rule.
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
    """Parses a table from the environment."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None


def expand(path: Path) -> Path:
    """Returns the absolute path of a setting."""
    try:
        expanded = path.expanduser().absolute()
        expanded.exists()  # raises if the path cannot be looked up
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    except OSError as error:
        raise ValueError(f"cannot be looked up: {error.strerror}") from error
    return expanded


def texts_in(value: object) -> Iterator[str]:
    """Yields the texts in a dump of settings, among them secret ones."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from texts_in(each)


KeyT = TypeVar("KeyT")
TableT = TypeVar("TableT")
Tables = Annotated[Mapping[KeyT, TableT], BeforeValidator(parse_object)]
"""Tables under names that the user chooses; a JSON object in the environment."""

GivenName = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")]
"""A table name that the user chooses."""

ServerName = Annotated[str, Field(pattern=r"^[a-z0-9]([-_]?[a-z0-9])*$", max_length=30)]
"""A server name that the user chooses; with "__" it prefixes the names of its tools."""

Names = Annotated[tuple[str, ...], BeforeValidator(split_commas)]


OWN_FILES = "files"
"""The folder in the data directory where agents work if they should not work elsewhere."""


def check_root(path: Path, info: ValidationInfo) -> Path:
    """Resolves and checks a root, which exists unless it is the one that we create."""
    data_dir = info.data.get("data_dir")
    if data_dir is not None and path == data_dir / OWN_FILES and not path.exists():
        return path
    if not path.is_dir():  # checked first: a loop of links cannot be resolved
        raise ValueError("is not an existing directory")
    resolved = path.resolve()
    if resolved == Path(resolved.anchor):
        raise ValueError("is the whole file system; choose the directory that agents may work in")
    return resolved


def default_root(values: Mapping[str, Any]) -> Path:
    """Returns the working directory if it is a place for work, else `<data_dir>/files`.

    Desktop clients start servers in `/`, in the home directory or in the program's folder, none of
    which should be given to an agent.
    """
    fallback: Path = values["data_dir"] / OWN_FILES
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return fallback
    system = here == Path(here.anchor) or not os.access(here, os.W_OK)
    holds_home = any(home.is_relative_to(here) for home in _homes())
    return fallback if system or holds_home else here


def is_broad(path: Path) -> bool:
    """Returns whether a directory is or contains the user's home, under any name."""
    places = {each for home in _homes() for each in (home, *home.parents)}
    for each in (*places, Path("/home"), Path("/Users")):
        with suppress(OSError):
            if each.samefile(path):
                return True
    return False


def _homes() -> Iterator[Path]:
    """Yields the home from the environment, and the user's actual home."""
    with suppress(RuntimeError):  # the user has no home
        yield Path.home().resolve()
    with suppress(ImportError, KeyError):
        import pwd  # not on Windows

        yield Path(pwd.getpwuid(os.geteuid()).pw_dir).resolve()
