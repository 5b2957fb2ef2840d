"""Reads the arguments that construct a class, with the metadata of its fields."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Annotated, Any, Unpack, get_origin, is_typeddict

import typing_extensions
from pydantic import AliasChoices, BaseModel, RootModel, ValidationError
from pydantic.dataclasses import is_pydantic_dataclass
from pydantic.fields import FieldInfo

from tools.conversion.callables.annotations import (
    label,
    python_signature,
    resolve_class,
    substituted,
    type_arguments,
)
from tools.core.errors import ToolDefinitionError

OMITTED: Any = type("Omitted", (), {"__repr__": lambda _: "<omitted>"})()
"""The default of a parameter whose omitted value is computed, for example by a factory."""
MODEL_INITS: tuple[Any, ...] = (BaseModel.__init__, RootModel.__init__)
Parameter = inspect.Parameter


def class_signature(made: Any, signature: Callable[[Any], inspect.Signature]) -> inspect.Signature:
    """Returns a class's constructor signature; a generic class has its type arguments filled in."""
    cls: Any = get_origin(made) or made
    if inspect.isabstract(cls) or getattr(cls, "_is_protocol", False):
        raise ToolDefinitionError(
            f"{label(cls)} is abstract and has no instances; convert a class that implements it."
        )
    types = {**type_arguments(made), typing_extensions.Self: made}
    parameters = [
        each.replace(annotation=substituted(each.annotation, types))
        for each in _parameters(cls, signature)
    ]
    return inspect.Signature(parameters, return_annotation=made)


def constructor(function: Any, refusal: Callable[[ValidationError], Exception]) -> Any:
    """Returns the callable that constructs a class, or the function itself if it is not a class.

    Pydantic fields can be valid one by one but not together. `refusal` turns that ValidationError
    into an error about the caller's arguments.
    """
    if not inspect.isclass(function):
        return function
    fields = getattr(function, "__pydantic_fields__", None)
    if fields is None or issubclass(function, RootModel):
        return function
    aliases = {name: caller_name(field, name) for name, field in fields.items()}

    def construct(**values: Any) -> Any:
        try:
            return function(**{aliases.get(name, name): value for name, value in values.items()})
        except ValidationError as error:
            raise refusal(error) from error

    return construct


def caller_name(field: FieldInfo, name: str) -> str:
    """Returns the name that callers use for a field: its alias, or its own name."""
    alias: Any = field.validation_alias or field.alias
    if isinstance(alias, AliasChoices):
        alias = next((each for each in alias.choices if isinstance(each, str)), None)
    return alias if isinstance(alias, str) else name


def _parameters(
    cls: Any, signature: Callable[[Any], inspect.Signature]
) -> Iterator[inspect.Parameter]:
    if is_typeddict(cls) or typing_extensions.is_typeddict(cls):
        yield Parameter("values", Parameter.VAR_KEYWORD, annotation=Unpack[cls])
    elif issubclass(cls, enum.Enum):
        yield Parameter("value", Parameter.POSITIONAL_ONLY, annotation=cls)
    elif issubclass(cls, BaseModel) and cls.__init__ in MODEL_INITS:
        yield from _of_fields(cls.model_fields)
        if cls.model_config.get("extra") == "allow":
            yield Parameter("extra", Parameter.VAR_KEYWORD)
    elif is_pydantic_dataclass(cls):
        yield from _of_fields(cls.__pydantic_fields__)
    elif _makes_own_init(cls):
        yield from _of_dataclass(cls)
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        yield from _hinted(resolve_class(cls), cls.__new__)
    else:
        yield from _of_plain(cls, signature)


def _of_fields(fields: Mapping[str, FieldInfo]) -> Iterator[inspect.Parameter]:
    for name, field in fields.items():
        if field.init is not False:
            hint: Any = Annotated[(field.annotation, field)]
            yield Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint)


def _makes_own_init(cls: type) -> bool:
    owner = next(each for each in cls.__mro__ if "__init__" in vars(each))
    parameters = vars(owner).get("__dataclass_params__")
    return parameters is not None and parameters.init


def _of_dataclass(cls: Any) -> Iterator[inspect.Parameter]:
    made = {
        field.name
        for field in dataclasses.fields(cls)
        if field.default_factory is not dataclasses.MISSING
    }
    for each in _hinted(resolve_class(cls), cls.__init__):
        hint = each.annotation
        if isinstance(hint, dataclasses.InitVar):
            hint = hint.type
        default = OMITTED if each.name in made else each.default
        yield each.replace(annotation=hint, default=default)


def _hinted(hints: Mapping[str, Any], maker: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Yields all parameters but the first, with their types replaced by `hints`."""
    for each in list(python_signature(maker).parameters.values())[1:]:
        yield each.replace(annotation=hints.get(each.name, each.annotation))


def _of_plain(
    cls: Any, signature: Callable[[Any], inspect.Signature]
) -> Iterator[inspect.Parameter]:
    makers = (vars(each).get(name) for each in cls.__mro__ for name in ("__init__", "__new__"))
    maker: Any = next((each for each in makers if each is not None), None)
    if isinstance(maker, staticmethod):
        maker = maker.__func__
    if isinstance(inspect.unwrap(maker), FunctionType) and "__signature__" not in vars(cls):
        return iter(list(signature(maker).parameters.values())[1:])
    try:
        return iter(python_signature(cls).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            f"{label(cls)} has no signature that Python can read; wrap it in a function with typed "
            "parameters."
        ) from error
