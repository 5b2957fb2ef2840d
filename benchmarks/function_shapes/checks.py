"""What can be asked of a tool: of its definition, and of what it answers."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # ships no types

from benchmarks.function_shapes.schemas import branches, json_types, resolved, values_of
from benchmarks.function_shapes.shape import Answer, Check, Miss, Tool

Json = dict[str, Any]


def says(*words: str) -> Check:
    """The description has these words."""

    async def check(tool: Tool) -> None:
        for word in words:
            if _flat(word) not in _flat(tool.description):
                raise Miss(f"the description lacks {word!r}: {tool.description!r}")

    return check


def spells(text: str) -> Check:
    """The description has this text, line for line."""

    async def check(tool: Tool) -> None:
        if text not in tool.description:
            raise Miss(f"the description lacks {text!r} as it stands: {tool.description!r}")

    return check


def leaves_out(*words: str) -> Check:
    """The description has none of these words."""

    async def check(tool: Tool) -> None:
        for word in words:
            if word in tool.description:
                raise Miss(f"the description still has {word!r}")

    return check


def mentions(*words: str) -> Check:
    """The definition has these words anywhere."""

    async def check(tool: Tool) -> None:
        text = _flat(json.dumps(tool.definition, ensure_ascii=False).replace("\\n", " "))
        for word in words:
            if _flat(word) not in text:
                raise Miss(f"{word!r} is nowhere in the definition")

    return check


def describes(name: str, text: str) -> Check:
    """A parameter is described with exactly this text, white space and a final stop aside."""

    async def check(tool: Tool) -> None:
        schema = _property(tool, name)
        places = (schema, *branches(schema, tool.input_schema))
        found = str(next(filter(None, (each.get("description") for each in places)), ""))
        if _flat(found).rstrip(".") != _flat(text).rstrip("."):
            raise Miss(f"`{name}` is described as {found!r}, not {text!r}")

    return check


def takes(*names: str) -> Check:
    """The parameters are exactly these."""

    async def check(tool: Tool) -> None:
        found = set(tool.input_schema.get("properties", {}))
        if found != set(names):
            raise Miss(f"the schema has {sorted(found)}, not {sorted(names)}")

    return check


def lacks(*names: str) -> Check:
    """None of these is a parameter."""

    async def check(tool: Tool) -> None:
        for name in names:
            if name in tool.input_schema.get("properties", {}):
                raise Miss(f"`{name}` is in the schema")

    return check


def required(*names: str) -> Check:
    """These parameters are required."""

    async def check(tool: Tool) -> None:
        for name in names:
            if name not in tool.input_schema.get("required", ()):
                raise Miss(f"`{name}` is not required")

    return check


def optional(*names: str) -> Check:
    """These are parameters, and not required."""

    async def check(tool: Tool) -> None:
        for name in names:
            _property(tool, name)
            if name in tool.input_schema.get("required", ()):
                raise Miss(f"`{name}` is required")

    return check


def property_has(name: str, **keywords: object) -> Check:
    """The schema of a parameter has these keywords, in one of its branches."""

    async def check(tool: Tool) -> None:
        schema = _property(tool, name)
        parts = (schema, *branches(schema, tool.input_schema))
        for key, value in keywords.items():
            if not any(key in part and part[key] == value for part in parts):
                raise Miss(f"the schema of `{name}` lacks {key} {value!r}: {_short(schema)}")

    return check


def types(name: str, *expected: str) -> Check:
    """The schema of a parameter names exactly these JSON types; null does not count."""

    async def check(tool: Tool) -> None:
        found = {
            kind
            for part in branches(_property(tool, name), tool.input_schema)
            for kind in json_types(part)
        }
        if found - {"null"} != set(expected):
            raise Miss(f"`{name}` may be {sorted(found)}, not {sorted(expected)}")

    return check


def allows(name: str, *expected: object) -> Check:
    """The schema of a parameter lists exactly these values, null aside."""

    async def check(tool: Tool) -> None:
        schema = _property(tool, name)
        found = [each for part in branches(schema, tool.input_schema) for each in values_of(part)]
        found = [each for each in found if each is not None]
        if sorted(map(repr, found)) != sorted(map(repr, expected)):
            raise Miss(f"`{name}` lists {found}, not {list(expected)}")

    return check


def outputs(*names: str) -> Check:
    """An output schema is listed, an object with these properties."""

    async def check(tool: Tool) -> None:
        schema = tool.output_schema
        if schema is None:
            raise Miss("no output schema is listed")
        found = resolved(schema, schema).get("properties", {})
        for name in names:
            if name not in found:
                raise Miss(f"the output schema lacks `{name}`: {_short(schema)}")

    return check


def gets(arguments: Json, *accepted: object, valid: bool = True) -> Check:
    """A call gives one of the accepted values, and the schema accepts it where `valid` says so."""
    return answers(lambda value: value in accepted, arguments, valid=valid, wanted=accepted)


def answers(
    fits: Callable[[Any], bool],
    arguments: Json | None = None,
    *,
    valid: bool = True,
    wanted: object = None,
) -> Check:
    """A call succeeds, and its value fits."""

    async def check(tool: Tool) -> None:
        if valid:
            _check_valid(arguments or {}, tool)
        answer = await tool.answer(arguments or {})
        _check_success(answer, arguments)
        if not _fits(fits, answer.value):
            want = "" if wanted is None else f", not {_short(wanted)}"
            raise Miss(f"{_short(arguments or {})} gave {_short(answer.value)}{want}")

    return check


def refuses(arguments: Json, *words: str) -> Check:
    """A call with these arguments is an error whose text says each word, in either case."""

    async def check(tool: Tool) -> None:
        answer = await tool.answer(arguments)
        if not answer.is_error:
            raise Miss(f"{_short(arguments)} was accepted and gave {_short(answer.value)}")
        for word in words:
            if not re.search(word, answer.text, re.IGNORECASE):
                raise Miss(f"the error for {_short(arguments)} lacks {word!r}: {answer.text!r}")

    return check


def ignores(arguments: Json, wanted: object) -> Check:
    """A call with these arguments is an error, or gives this value all the same."""

    async def check(tool: Tool) -> None:
        answer = await tool.answer(arguments)
        if not answer.is_error and answer.value != wanted:
            raise Miss(f"{_short(arguments)} gave {_short(answer.value)}, not {_short(wanted)}")

    return check


def replies(arguments: Json) -> Check:
    """A call with these arguments is answered, with a result or an error that says something."""

    async def check(tool: Tool) -> None:
        answer = await tool.answer(arguments)
        if not answer.text:
            raise Miss(f"{_short(arguments)} was answered with nothing to read")

    return check


def shows(kind: str, mime_type: str, data: bytes) -> Check:
    """The result has a part of this kind, with exactly this data."""

    async def check(tool: Tool) -> None:
        answer = await tool.answer({})
        _check_success(answer, {})
        parts = [part for part in answer.content if part["type"] == kind]
        if not parts:
            raise Miss(f"there is no {kind} among {[part['type'] for part in answer.content]}")
        if parts[0]["mimeType"] != mime_type or (
            data and base64.b64decode(parts[0]["data"]) != data
        ):
            raise Miss(f"the {kind} is a {parts[0]['mimeType']} or has other data")

    return check


def progresses(arguments: Json, *words: str, times: int) -> Check:
    """A call reports its progress, at least so many times, with these words in order of sending."""

    async def check(tool: Tool) -> None:
        answer = await tool.answer(arguments)
        _check_success(answer, arguments)
        if len(answer.progress) < times:
            raise Miss(f"progress was reported {len(answer.progress)} times, not {times}")
        for word in words:
            if not any(word in message for message in answer.progress):
                raise Miss(f"no progress says {word!r}: {answer.progress}")

    return check


def _fits(fits: Callable[[Any], bool], value: object) -> bool:
    try:
        return fits(value)
    except (KeyError, IndexError, TypeError, ValueError):  # of another form than was asked for
        return False


def _check_success(answer: Answer, arguments: Json | None) -> None:
    if answer.is_error:
        raise Miss(f"{_short(arguments or {})} failed: {answer.text!r}")


def _check_valid(arguments: Json, tool: Tool) -> None:
    validator = jsonschema.Draft202012Validator(tool.input_schema)
    for error in validator.iter_errors(arguments):
        place = ".".join(map(str, error.absolute_path)) or "the arguments"
        raise Miss(f"the schema refuses {_short(arguments)} at {place}: {error.message[:200]}")


def _property(tool: Tool, name: str) -> Json:
    properties = tool.input_schema.get("properties", {})
    if name not in properties:
        raise Miss(f"`{name}` is not in the schema, which has {sorted(properties)}")
    return resolved(properties[name], tool.input_schema)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"  # noqa: PLR2004  # enough for one line
