"""Translates typer's parameter options to pydantic fields.

A function that typer turns into a command stays a function, with typer's objects as defaults. Typer
is never imported here: a caller that has such a function has imported typer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import AfterValidator, Field
from pydantic.json_schema import SkipJsonSchema

from tools.conversion.callables.annotations import python_signature
from tools.core.errors import ToolDefinitionError


def is_option(said: Any) -> bool:
    """Returns whether the value is a typer option or argument."""
    return type(said).__module__ == "typer.models" and hasattr(said, "default_factory")


def with_option(name: str, annotation: Any, default: Any) -> tuple[Any, Any]:
    """Returns the type and default of a parameter, with its typer options merged in."""
    bare, *said = get_args(annotation) if get_origin(annotation) is Annotated else [annotation]
    found = next(filter(is_option, [default, *said]), None)
    if found is None:
        return annotation, default
    if default is found:
        default = found.default
    empty = inspect.Parameter.empty
    field: dict[str, Any] = {"description": found.help}
    if found.default_factory:
        field["default_factory"] = found.default_factory
    elif default is not ... and default is not empty:
        field["default"] = default
    if not found.clamp:
        field |= {"ge": found.min, "le": found.max}
    if getattr(found, "count", False):
        field["ge"] = 0
    if getattr(found, "hide_input", False):
        field["json_schema_extra"] = {"writeOnly": True, "format": "password"}
    kept = [each for each in said if each is not found]
    checks = map(AfterValidator, _checks(name, found, bare))
    if found.parser or getattr(found, "click_type", None) or found.formats:
        bare = str
    hint: Any = Annotated[(bare, *checks, *kept, Field(**field))]
    if found.hidden and not {"default", "default_factory"}.isdisjoint(field):
        hint = Annotated[hint, SkipJsonSchema]
    return hint, empty


def _checks(name: str, said: Any, kind: Any) -> list[Callable[[Any], Any]]:
    """Returns the conversions and checks that typer applies to a value, in order."""
    checks: list[Callable[[Any], Any]] = []
    if said.parser is not None:
        checks.append(said.parser)
    if getattr(said, "click_type", None) is not None:
        checks.append(lambda value: said.click_type.convert(value, None, None))
    if said.formats:
        checks.append(lambda text: _time(text, said.formats))
    if kind is Path:
        checks.append(lambda path: _path(path, said))
    if said.callback is not None:
        if len(python_signature(said.callback).parameters) != 1:
            raise ToolDefinitionError(
                f"The parameter {name} has a callback that asks for typer's context; check the "
                "value in the function itself."
            )
        checks.append(said.callback)
    return [_refusing(each) for each in checks]


def _refusing(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wraps a check so that click's error about a bad value becomes a ValueError."""

    def checked(value: Any) -> Any:
        try:
            return check(value)
        except Exception as error:
            if hasattr(error, "format_message"):
                raise ValueError(getattr(error, "message", str(error))) from error
            raise

    return checked


def _time(text: str, formats: list[str]) -> datetime:
    for each in formats:
        try:
            return datetime.strptime(text, each)  # noqa: DTZ007  # as typer reads it
        except ValueError:
            continue
    raise ValueError(f"send it in one of the forms {', '.join(formats)}")


def _path(path: Path, said: Any) -> Path:
    if said.exists and not path.exists():
        raise ValueError("this path does not exist")
    if not said.file_okay and path.is_file():
        raise ValueError("it is a file and must be a directory")
    if not said.dir_okay and path.is_dir():
        raise ValueError("it is a directory and must be a file")
    return path.resolve() if said.resolve_path else path
