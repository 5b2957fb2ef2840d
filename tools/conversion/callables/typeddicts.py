"""TypedDicts: their fields, and `typing.TypedDict` as pydantic can read it on Python 3.11."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import types
import typing
from typing import Annotated, Any, Generic, Literal, NotRequired, Required, get_args, get_origin

import typing_extensions
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema

from tools.conversion.callables.annotations import resolve_class, substituted, type_arguments
from tools.core.errors import ToolDefinitionError

__all__ = ["make_readable", "typed_dict_fields"]

HOOK = "__get_pydantic_core_schema__"
QUALIFIERS = (Required, NotRequired, typing_extensions.ReadOnly)


def typed_dict_fields(made: Any) -> dict[str, tuple[Any, bool]]:
    """Returns the fields of a TypedDict: the type of each, and whether it is required.

    Raises:
        ToolDefinitionError: If an annotation names nothing that can be found.
    """
    cls: Any = get_origin(made) or made
    arguments = type_arguments(made)
    fields = {}
    for name, hint in resolve_class(cls).items():
        bare, needed = _unqualified(hint, needed=name in cls.__required_keys__)
        fields[name] = substituted(bare, arguments), needed
    return fields


def make_readable(annotation: Any) -> None:
    """Teaches each `typing.TypedDict` within a type to be read by pydantic on Python 3.11.

    Pydantic refuses them there since they do not tell it where their fields come from. A method
    that it asks every type for hands it a twin made with `typing_extensions`.
    """
    if sys.version_info < (3, 12):
        _teach(annotation, set())


def _teach(annotation: Any, seen: set[int]) -> None:
    origin = get_origin(annotation)
    if origin is Literal or id(annotation) in seen:
        return
    parts = get_args(annotation) if origin else ()
    seen.add(id(annotation))
    for part in parts[:1] if origin is Annotated else parts:
        _teach(part, seen)
    cls: Any = origin or annotation
    if not isinstance(cls, type) or not (
        typing.is_typeddict(cls) or dataclasses.is_dataclass(cls) or hasattr(cls, "_field_defaults")
    ):
        return
    if typing.is_typeddict(cls) and HOOK not in vars(cls):
        setattr(cls, HOOK, classmethod(_schema_of_twin))
    with contextlib.suppress(ToolDefinitionError):  # pydantic says it with the place
        for hint in resolve_class(cls).values():
            _teach(hint, seen)


def _schema_of_twin(cls: Any, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    twin = vars(cls).get("__toolcrib_twin__") or _twin(cls)
    arguments = get_args(source)
    return handler.generate_schema(twin[arguments] if arguments else twin)


def _twin(cls: Any) -> Any:
    variables = getattr(cls, "__parameters__", ())
    generic: Any = Generic
    bases = (typing_extensions.TypedDict, *([generic[variables]] if variables else []))
    kept = {
        name: getattr(cls, name)
        for name in ("__doc__", "__module__", "__qualname__", "__pydantic_config__")
        if hasattr(cls, name)
    }
    hints = {
        name: hint if needed else NotRequired[hint]
        for name, (hint, needed) in typed_dict_fields(cls).items()
    }
    twin = types.new_class(
        cls.__name__, bases, {}, lambda body: body.update(kept, __annotations__=hints)
    )
    cls.__toolcrib_twin__ = twin  # the same one each time, so that a type may refer to itself
    return twin


def _unqualified(hint: Any, *, needed: bool) -> tuple[Any, bool]:
    """The type without Required, NotRequired and ReadOnly, and what these say.

    `__required_keys__` does not know of those that stand in the text of a postponed annotation.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in QUALIFIERS:
        required = needed if origin is typing_extensions.ReadOnly else origin is Required
        return _unqualified(arguments[0], needed=required)
    if origin is Annotated:
        bare, needed = _unqualified(arguments[0], needed=needed)
        return Annotated[(bare, *arguments[1:])], needed
    return hint, needed
