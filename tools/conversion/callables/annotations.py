"""Resolves annotations, rewrites the types in them, and reads TypedDicts."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from types import SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import typing_extensions
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema

from tools.core.errors import ToolDefinitionError

LIBRARIES = {"abc", "builtins", "enum", "pydantic", "typing"}
"""Packages whose base classes say nothing about the classes derived from them."""

HOOK = "__get_pydantic_core_schema__"
REFERENCE = re.compile(r"ForwardRef\('(\w+)")
"""The trace that Python 3.14 leaves of a name that cannot be found."""
QUALIFIERS = (Required, NotRequired, typing_extensions.ReadOnly)


def is_library(found: Any) -> bool:
    """Returns whether a class or function is one of Python's or pydantic's foundations."""
    return str(getattr(found, "__module__", "")).partition(".")[0] in LIBRARIES


class UnfoundNameError(ToolDefinitionError):
    """An annotation of `owner` has a name that cannot be found.

    Inside a type's `Annotated` it marks the type as only partly resolved.
    """

    def __init__(self, owner: Any, name: str) -> None:
        super().__init__(
            f"{label(owner)} has an annotation that names {name!r}, which cannot be found; import "
            "or define it at the top of its module, and not only under `if TYPE_CHECKING:`, which "
            "is false when the program runs."
        )
        self.name = name


class _StandIn(type):
    """The metaclass of placeholders for names that cannot be found, and for their attributes."""

    def __getattr__(cls, name: str) -> _StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __getitem__(cls, _arguments: object) -> _StandIn:
        return cls

    def __call__(cls, *_arguments: object, **_named: object) -> _StandIn:
        return cls


def python_signature(function: Any, *, follow_wrapped: bool = True) -> inspect.Signature:
    """Returns a callable's signature even if its annotations cannot be resolved.

    Python 3.14 looks names up when annotations are read. Names that cannot be found stay in them as
    references, as they do in postponed annotations.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(
            function, follow_wrapped=follow_wrapped, annotation_format=Format.FORWARDREF
        )
    return inspect.signature(function, follow_wrapped=follow_wrapped)


def resolve(annotations: Mapping[str, Any], owner: Any) -> dict[str, Any]:
    """Resolves annotations, looking names up where the owner was defined.

    An annotation with an unknown name carries an UnfoundNameError in its `Annotated`; callers that
    need the type raise it.
    """
    names = getattr(owner, "__globals__", None)
    if names is None:
        names = dict(vars(inspect.getmodule(owner) or object))
    holder = SimpleNamespace(__annotations__=dict(annotations))
    try:
        found = _hints(holder, owner, names)
    except UnfoundNameError:
        found = {
            each: _resolve_partly(each, annotations[each], owner, names) for each in annotations
        }
    try:
        getattr(owner, "__annotations__", None)
    except NameError:  # Python 3.14 looks names up only here
        for each, hint in found.items():
            if left := REFERENCE.search(repr(hint)):
                found[each] = Annotated[hint, UnfoundNameError(owner, left[1])]
    return found


def _resolve_partly(each: str, annotation: Any, owner: Any, names: dict[str, Any]) -> Any:
    """Resolves one annotation as far as possible, with placeholders for unknown names."""
    holder = SimpleNamespace(__annotations__={each: annotation})
    stand_ins: dict[str, Any] = {}
    unfound = None
    while True:
        try:
            hint = _hints(holder, owner, {**names, **stand_ins})[each]
        except UnfoundNameError as error:
            unfound = unfound or error
            stand_ins[error.name] = _StandIn(error.name, (), {})
        else:
            return hint if unfound is None else Annotated[hint, unfound]


def needed(annotation: Any) -> Any:
    """Returns the type, or raises the UnfoundNameError of a name in it."""
    for each in _unfound(annotation):
        raise each
    return annotation


def is_known(annotation: Any) -> bool:
    """Returns whether every name in a type was found."""
    return not _unfound(annotation)


def _unfound(annotation: Any) -> list[UnfoundNameError]:
    metadata = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return [each for each in metadata if isinstance(each, UnfoundNameError)]


def resolve_class(owner: type) -> dict[str, Any]:
    """Returns the annotations of a class and its bases, resolved where each was defined."""
    return _hints(owner, owner, None)


def local_names(owner: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the local names around a function or class, which its module's globals lack.

    These are its closure, then the locals of its module's running functions: one of them defined
    the owner, if it was defined inside a function.
    """
    code = getattr(owner, "__code__", None)
    if code is not None:
        filled: dict[str, Any] = {}
        for name, cell in zip(code.co_freevars, owner.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # the cell is still empty
                filled[name] = cell.cell_contents
        yield filled
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == owner.__module__:
            yield frame.f_locals
        frame = frame.f_back


def label(owner: Any) -> str:
    """Returns the name of a callable for messages."""
    return str(getattr(owner, "__qualname__", None) or repr(owner))


def _hints(holder: Any, owner: Any, names: dict[str, Any] | None) -> dict[str, Any]:
    found = {each.__name__: each for each in getattr(owner, "__type_params__", ())}
    while True:
        try:
            return get_type_hints(holder, names, found or None, include_extras=True)
        except NameError as error:
            name = error.name or ""
            local = next((names for names in local_names(owner) if name in names), None)
            if name in found or local is None:
                raise UnfoundNameError(owner, name) from error
            found[name] = local[name]
        except (AttributeError, SyntaxError, TypeError) as error:
            raise ToolDefinitionError(
                f"{label(owner)} has an annotation that is not a type: {error}."
            ) from error


def substituted(annotation: Any, replacements: Mapping[Any, Any]) -> Any:
    """Returns a type with the given types replaced, nested ones included."""
    try:
        if annotation in replacements:
            return replacements[annotation]
    except TypeError:  # Annotated with metadata that has no hash
        pass
    return with_arguments(annotation, lambda part: substituted(part, replacements))


def bare(annotation: Any) -> Any:
    """Returns a type without its `Annotated` metadata."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def type_arguments(alias: Any) -> dict[Any, Any]:
    """Returns the arguments that `Class[...]` gives the type variables of a generic class."""
    variables = getattr(get_origin(alias), "__parameters__", ())
    return dict(zip(variables, get_args(alias), strict=False))


def with_arguments(annotation: Any, change: Any) -> Any:
    """Returns a type with each of its arguments changed, or the same object if none changes."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if not arguments or origin is Literal:
        return annotation
    if origin is Annotated:
        inner = change(arguments[0])
        return annotation if inner is arguments[0] else Annotated[(inner, *arguments[1:])]
    changed = tuple(part if isinstance(part, list) else change(part) for part in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return annotation
    if origin is UnionType:
        origin = Union
    if hasattr(annotation, "copy_with"):  # keeps `List`, `Sequence` and the like as they were
        return annotation.copy_with(changed)
    return origin[changed[0] if len(changed) == 1 else changed]


def typed_dict_fields(made: Any) -> dict[str, tuple[Any, bool]]:
    """Returns each field of a TypedDict with its type and whether it is required."""
    cls: Any = get_origin(made) or made
    arguments = type_arguments(made)
    fields = {}
    for name, hint in resolve_class(cls).items():
        bare, needed = _unqualified(hint, needed=name in cls.__required_keys__)
        fields[name] = substituted(bare, arguments), needed
    return fields


def make_readable(annotation: Any) -> None:
    """Makes each `typing.TypedDict` within a type readable for pydantic on Python 3.11.

    Pydantic rejects them there because they do not record where their fields come from. A hook that
    it calls on every type returns a twin made with `typing_extensions`.
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
    with contextlib.suppress(ToolDefinitionError):  # pydantic reports it with the location
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
    cls.__toolcrib_twin__ = twin  # reused, so that a type may refer to itself
    return twin


def _unqualified(hint: Any, *, needed: bool) -> tuple[Any, bool]:
    """Strips Required, NotRequired and ReadOnly from a type and returns what they say.

    `__required_keys__` does not see those inside postponed annotations.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in QUALIFIERS:
        required = needed if origin is typing_extensions.ReadOnly else origin is Required
        return _unqualified(arguments[0], needed=required)
    if origin is Annotated:
        bare, needed = _unqualified(arguments[0], needed=needed)
        return Annotated[(bare, *arguments[1:])], needed
    return hint, needed
