"""Converts any Python value to JSON, and to content blocks where it is content."""

from __future__ import annotations

import inspect
import math
import re
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from inspect import isawaitable, iscoroutine
from io import BytesIO, IOBase, StringIO
from types import NoneType, SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import (
    PydanticSerializationError,
    SchemaSerializer,
    core_schema,
    to_json,
    to_jsonable_python,
)

from tools.conversion.results.arrays import is_foreign, json_form, to_builtin
from tools.conversion.results.attachments import BLOCKS, NOTE, media_of, note, without_data
from tools.core.content import Attachment, Block, EmbeddedResource, ResourceLink
from tools.core.errors import UnsendableError
from tools.core.unicode_safety import encodable

MOST_ITEMS = 1_000_000
"""Maximum number of items taken from an iterable that may be endless."""
ENDLESS = re.compile(rb"NaN|Infinity")
NULLS = "[Null stands for numbers that JSON does not have: "
"""The beginning of the note that lists where NaN and infinities were."""
MOST_NAMED = 5
"""Maximum values that the note lists."""
READY = frozenset({NoneType, bool, int, float})
"""Types whose values are JSON as they are."""
SIMPLE = frozenset({Decimal, UUID, complex, date, datetime, time, timedelta})
"""Types whose values pydantic converts to text."""
ANYTHING = SchemaSerializer(core_schema.any_schema())
ADDRESS = re.compile(r" (at|object at|of) 0x[0-9A-Fa-f]+")


class Converted(NamedTuple):
    """A value as JSON that every encoder accepts, its text, and where NaN and infinities were."""

    value: Any
    text: str
    note: str  # "" without any


def to_jsonable(value: Any, media: list[Attachment] | None = None) -> Any:
    """Converts a value to JSON that every encoder and client accepts.

    NaN and infinities become null, bytes Base64 (RFC 4648, section 4), sets sorted lists, other
    collections and iterators lists. Dates and durations become ISO 8601, enum members their values,
    and unpaired surrogates question marks. Images, sounds and resources become notes and are added
    to `media`. Unknown objects become their own text, else an object of their public attributes.

    Raises:
        UnsendableError: If the value, or something in it, cannot be sent.
        RecursionError: If it contains itself or is nested too deeply.
    """
    return convert(value, [] if media is None else media).value


def convert(value: Any, media: list[Attachment]) -> Converted:
    """Does the same, and returns the JSON text and the note too."""
    return without_endless(_to_plain(value, media))


def without_endless(value: Any) -> Converted:
    """Replaces NaN and infinities in JSON by null."""
    if type(value) is str:
        return Converted(value, value, "")
    text = to_json(value, inf_nan_mode="constants")
    found: list[str] = []
    if ENDLESS.search(text):  # perhaps only in a string
        value = _with_nulls(value, "", found)
    if not found:
        return Converted(value, text.decode(), "")
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    note = f"{NULLS}{', '.join(found[:MOST_NAMED])}{more}.]"
    return Converted(value, to_json(value).decode(), note)


def _with_nulls(value: Any, path: str, found: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _with_nulls(each, f"{path}.{key}", found) for key, each in value.items()}
    if isinstance(value, list):
        parts = enumerate(value)
        return [_with_nulls(each, f"{path}.{place}", found) for place, each in parts]
    if not is_endless(value):
        return value
    name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    found.append(f"{path.removeprefix('.') or 'it'} is {name}")
    return None


def ordered(items: list[Any]) -> list[Any]:
    """Returns the items of a set in a stable order.

    NaN and infinities are one null, which comes first.
    """
    rest = [each for each in items if each is not None and not is_endless(each)]
    first = [each for each in items if each is None or is_endless(each)][:1]
    try:
        return [*first, *sorted(rest)]
    except TypeError:
        return [*first, *sorted(rest, key=to_json)]


def is_endless(value: Any) -> bool:
    """Returns whether a value is NaN or an infinity, which JSON does not have."""
    return type(value) is float and not math.isfinite(value)


def _bounded(values: Iterable[Any]) -> Iterator[Any]:
    """Yields the same values one by one, up to a limit: the iterable may be endless."""
    for place, value in enumerate(values):
        if place == MOST_ITEMS:
            raise UnsendableError(f"more than {MOST_ITEMS:,} items; return fewer")
        yield value


def _to_plain(value: Any, media: list[Attachment]) -> Any:
    kind = type(value)
    if kind in READY:
        return value
    if kind is str:
        return value if value.isascii() else encodable(value)
    if kind is dict:
        return _object(value, media)
    if kind is list or kind is tuple:
        return _list(value, media)
    if kind in SIMPLE:
        return to_jsonable_python(value)
    return _other(value, media)


def _other(value: Any, media: list[Attachment]) -> Any:  # noqa: PLR0911  # one line a type
    match value:
        case str():
            return encodable(value)
        case int():
            return int(value)
        case float():
            return _to_plain(float(value), media)
        case bytes() | bytearray() | memoryview():
            return b64encode(bytes(value)).decode()
        case Mapping():
            return _object(value, media)
        case type():
            return _label(value)
        case Enum():
            return _to_plain(value.value, media)
    return _instance(value, media)


def _instance(value: Any, media: list[Attachment]) -> Any:
    if isinstance(value, BaseModel):
        return _taken_apart(value, media)
    found = value if isinstance(value, EmbeddedResource) else media_of(value)
    if found is not None:
        media.append(found)
        return note(found, len(media) - 1)
    if is_foreign(type(value)):
        form = json_form(value, partial(_to_plain, media=media))
        return _opaque(value, media) if form is NotImplemented else form
    if is_dataclass(value):
        return _taken_apart(value, media)
    return _collection(value, media)


def _collection(value: Any, media: list[Attachment]) -> Any:  # noqa: PLR0911  # one line a type
    kind = type(value)
    match value:
        case AbstractSet():
            return ordered(_list(list(value), media))
        case list() | tuple() | deque() | range():
            return _list(list(_bounded(value)), media)
        case BytesIO() | StringIO():
            return _to_plain(value.getvalue(), media)
        case IOBase():
            raise UnsendableError("an open file; return what is in it, or its path")
        case re.Match():
            span = {"text": value.group(), "start": value.start(), "end": value.end()}
            groups = {"groups": value.groups(), "named": value.groupdict()}
            return _to_plain(span | groups, media)
    _refuse_waiting(value)
    if hasattr(kind, "tolist"):
        return _to_plain(value.tolist(), media)
    if hasattr(kind, "keys") and hasattr(kind, "__getitem__"):
        return _object({key: value[key] for key in value.keys()}, media)  # noqa: SIM118  # a sqlite3.Row iterates over its values
    if hasattr(kind, "__next__") or (is_mute(kind) and isinstance(value, Collection)):
        return _list(list(_bounded(value)), media)
    return _opaque(value, media)


def _refuse_waiting(value: object) -> None:
    if isawaitable(value) or hasattr(type(value), "__aiter__"):
        if iscoroutine(value):
            value.close()
        kind = type(value).__name__
        raise UnsendableError(f"a {kind} inside its result; await it before it returns")


def _opaque(value: Any, media: list[Attachment]) -> Any:
    try:
        return to_jsonable_python(value)
    except PydanticSerializationError:
        text = _own_text(value)
    if text is not None:
        return encodable(text)
    return _object(_attributes(value), media) or _label(type(value))


def _list(values: Any, media: list[Attachment]) -> list[Any]:
    kinds = set(map(type, values))
    alike = kinds <= READY or (kinds == {str} and all(map(str.isascii, values)))
    return list(values) if alike else [_to_plain(value, media) for value in values]


def _object(values: Mapping[Any, Any], media: list[Attachment]) -> dict[str, Any]:
    jsonable = {
        key if type(key) is str and key.isascii() else _key(key, media): _to_plain(value, media)
        for key, value in values.items()
    }
    if len(jsonable) < len(values):
        raise UnsendableError(f"a {type(values).__name__} in which two keys have the same text")
    return jsonable


def _key(key: Any, media: list[Attachment]) -> str:
    if isinstance(key, str):
        return encodable(key)
    try:
        (text,) = to_jsonable_python({to_builtin(key): None}, bytes_mode="base64")
    except (PydanticSerializationError, TypeError):
        form = _to_plain(key, media)
        text = form if isinstance(form, str) else to_json(form).decode()
    return encodable(text)


def _taken_apart(value: Any, media: list[Attachment]) -> Any:
    return _to_plain(ANYTHING.to_python(without_data(value, media), by_alias=True), media)


def _own_text(value: object) -> str | None:
    """Returns the text that an object or its class defines, or None.

    Memory addresses are removed: they mean nothing to a reader and differ in every run.
    """
    kind = type(value)
    if inspect.isroutine(value) or inspect.ismodule(value):
        return _label(value)
    if isinstance(value, BaseException):
        return f"{kind.__name__}: {error_text(value)}".removesuffix(": ")
    if isinstance(value, SimpleNamespace) or hasattr(kind, "__attrs_attrs__"):
        return None  # their text is only a list of their attributes
    if is_mute(kind) and getattr(kind, "__repr__", None) is object.__repr__:
        return None
    return ADDRESS.sub("", error_text(value)) or _label(kind)


def _attributes(value: object) -> dict[str, Any]:
    kind = type(value)
    names = [*_slots(kind), *getattr(value, "__dict__", ())]
    public = dict.fromkeys(name for name in names if not name.startswith("_"))
    return {name: getattr(value, name) for name in public if hasattr(value, name)}


def _label(value: object) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    return f"{module}.{name}" if module not in {None, "builtins"} else str(name)


def is_mute(kind: type) -> bool:
    """Returns whether a class does not define how to display its objects as text."""
    return getattr(kind, "__str__", None) is object.__str__


def error_text(value: object) -> str:
    """Returns the text of an object, or "" if its own method fails."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # an author's method may raise anything
        return ""


def _slots(kind: type) -> list[str]:
    found: list[str] = []
    for base in reversed(kind.__mro__):
        slots = base.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return found


def blocks_of(value: Any, clean: Any, media: Sequence[Attachment]) -> tuple[Block, ...]:
    """Returns the content blocks of a value, or () if any part of it is not content.

    Content is an image, a sound, a resource, a link, an MCP content block, or a list of these and
    texts. `clean` is the same value as JSON, with notes instead of the attachments in `media`.
    """
    is_list = isinstance(value, list | tuple) and isinstance(clean, list)
    values, forms = (value, clean) if is_list else ([value], [clean])
    if all(isinstance(each, str) for each in values):
        return ()
    blocks: list[Block] = []
    for each, form in zip(values, forms, strict=True):
        block = _block(each, form, media)
        if block is None:
            return ()
        blocks.append(block)
    return tuple(blocks)


def _block(value: Any, form: Any, media: Sequence[Attachment]) -> Block | None:
    match value, form:
        case str(), str(text):
            return text
        case EmbeddedResource() | ResourceLink(), _:
            block: Block = value
            return block
        case BaseModel(), {"type": kind} if kind in BLOCKS:
            return _of_protocol(value, form, media)
        case dict(), _:
            return None
        case _, {"media": int(place)} if form.keys() == set(NOTE["required"]):
            return media[place]
    return None


def _of_protocol(value: Any, form: Any, media: Sequence[Attachment]) -> Block | None:
    """Converts an MCP content block, whose class cannot be imported here."""
    match value.type:
        case "text":
            return str(form["text"])
        case "image" | "audio":
            noted = str(form.get("data", "")).removeprefix("media ")
            return media[int(noted)] if noted.isdecimal() else None
        case "resource":
            found = value.resource
            text = getattr(found, "text", None)
            data = b64decode(found.blob) if text is None else text
            return EmbeddedResource(str(found.uri), data, _mime_type(found) or "")
    return ResourceLink(
        uri=str(value.uri),
        name=value.name,
        title=value.title,
        description=value.description,
        mime_type=_mime_type(value),
        size=value.size,
    )


def _mime_type(block: Any) -> str | None:
    """Returns a block's format under the attribute name of either SDK generation."""
    given: dict[str, Any] = vars(block)
    found: str | None = given.get("mime_type") or given.get("mimeType")
    return found
