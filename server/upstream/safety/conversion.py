"""The tools of other servers as tools of ours."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any

import mcp_types as types

from server.settings.gateway import ServerSettings
from tools.conversion.naming import SEPARATOR, exposed_name
from tools.core.audit.secret_schema import bears_secret
from tools.core.context import RequestContext
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope, ToolSpec

DEEPEST = 64
"""Objects and lists within each other; serializers of both sides give up at some 200."""

_ONE = frozenset({"contains", "else", "if", "items", "not", "propertyNames", "then"})
_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
_TEXT = frozenset({"$ref", "$schema", "description", "title"})
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")

_OLD, _NEW = "#/definitions/", "#/$defs/"
"""Where drafts before 2019-09 keep what is referred to, and where it is kept since."""


def rooted(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema as one of an object that can be listed.

    One tool whose schema is too deep, or is at its root not what the wire formats of both eras
    want, would have clients refuse the whole list. What is wrong there is left out; what is deeper
    than `DEEPEST` allows anything; all else stays as it is.
    """
    made = _cut(schema, DEEPEST) if _is_deep(schema, DEEPEST) else dict(schema)
    for key in ("$schema", "required"):
        if key in made and not _fits(key, made[key]):
            del made[key]
    if "properties" in made:
        properties = _named(made["properties"])
        made["properties"] = {name: _schema(each) for name, each in properties.items()}
    return {**made, "type": "object"}


def sound(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of an object in which each keyword has what JSON Schema (2020-12) wants there.

    What has not is left out: so the keyword allows anything, which its own server checks anyway.
    Left out are references too that lead out of the schema, nowhere or round in a circle.

    Args:
        schema: One that `rooted` returned.
    """
    definitions = schema.get("definitions")
    if isinstance(definitions, dict):  # of draft 7 and before
        schema = {**schema, "$defs": {**definitions, **_named(schema.get("$defs"))}}
        del schema["definitions"]
    made = _sound(schema)
    lost = {"writeOnly": True} if bears_secret(made, made) else {}
    return {**_referred(made, _straight(made.get("$defs", {})), lost), "type": "object"}


def _sound(schema: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED:
            made[key] = {name: _any_sound(each) for name, each in _named(value).items()}
        elif key in _ONE:
            made[key] = _any_sound(value)
        elif key in _MANY:
            if isinstance(value, list) and value:
                made[key] = [_any_sound(each) for each in value]
        elif _fits(key, value):
            made[key] = value
    return made


def _any_sound(schema: object) -> dict[str, Any]:
    """A schema below the root; `true` and `false` are schemas too."""
    return _sound(_schema(schema))


def _schema(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {"not": {}} if value is False else {}


def _fits(key: str, value: object) -> bool:
    if key == "type":
        return isinstance(value, str) or (_is_texts(value) and bool(value))
    if key == "required":
        return _is_texts(value)
    if key == "enum":
        return isinstance(value, list) and bool(value)
    return isinstance(value, str) or key not in _TEXT


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _named(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _target(schema: Mapping[str, Any]) -> str:
    """The name among the definitions that a schema refers to; empty where it does not."""
    reference: str = schema.get("$ref", "")
    for start in (_NEW, _OLD):
        if reference.startswith(start):
            return reference.removeprefix(start)
    return ""


def _straight(known: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The definitions that do not say, at however many removes, that they are themselves."""
    sorter = TopologicalSorter({name: set(_said_to_be(each)) for name, each in known.items()})
    with suppress(CycleError):  # it gives all that no circle keeps back
        sorter.prepare()
    straight: set[str] = set()
    while ready := sorter.get_ready():
        straight.update(ready)
        sorter.done(*ready)
    return straight & known.keys()


def _said_to_be(schema: Mapping[str, Any]) -> Iterator[str]:
    """What a schema refers to as what it is, itself or in one of its alternatives."""
    yield _target(schema)
    for key in _ALTERNATIVES:
        for each in schema.get(key, ()):
            yield from _said_to_be(each)


def _referred(value: Any, known: set[str], lost: Mapping[str, Any]) -> Any:  # noqa: ANN401  # any part of a schema
    """The same with references as this draft writes them, and none but to what is known.

    In the place of another stands what is `lost`: where there are secrets, it may lead to one.
    """
    if isinstance(value, list):
        return [_referred(each, known, lost) for each in value]
    if not isinstance(value, dict):
        return value
    made = {key: _referred(each, known, lost) for key, each in value.items()}
    if isinstance(made.get("$ref"), str):
        target = _target(made)
        del made["$ref"]
        if target in known:
            made["$ref"] = _NEW + target
        else:
            made |= lost
    return made


def _is_deep(value: object, left: int) -> bool:
    if isinstance(value, dict):
        return not left or any(_is_deep(each, left - 1) for each in value.values())
    if isinstance(value, list):
        return not left or any(_is_deep(each, left - 1) for each in value)
    return False


def _cut(value: Any, left: int) -> Any:  # noqa: ANN401  # any part of a schema
    if isinstance(value, dict):
        return {key: _cut(each, left - 1) for key, each in value.items()} if left else {}
    if isinstance(value, list):
        return [_cut(each, left - 1) for each in value] if left else []
    return value


Invoke = Callable[[dict[str, Any], RequestContext], Awaitable[ToolResult]]

_ANYTHING = frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.EXTERNAL})


def readable(tool: types.Tool) -> types.Tool:
    """The tool with schemas that every client can read; all else is as its server lists it.

    A schema of results that are no objects is left out: clients before protocol 2026-07-28 would
    refuse the whole list.
    """
    results = tool.output_schema
    schemas = {
        "input_schema": rooted(tool.input_schema),
        "output_schema": rooted(results) if results and results.get("type") == "object" else None,
    }
    return tool.model_copy(update=schemas)


def to_spec(server: str, tool: types.Tool, settings: ServerSettings, invoke: Invoke) -> ToolSpec:
    """A tool of another server as one of ours.

    Args:
        server: Name of the server in the settings.
        tool: Its definition, as `readable` returned it.
        settings: Those of the server; only of a trusted one the annotations are believed.
        invoke: Calls it.
    """
    name = exposed_name(server, tool.name)
    title = tool.title or (tool.annotations and tool.annotations.title) or ""
    said = (tool.annotations if settings.trusted else None) or types.ToolAnnotations()
    reads = bool(said.read_only_hint)
    return ToolSpec(
        name=name,
        title=title or tool.name,
        description=tool.description or "",
        input_schema=sound(tool.input_schema),
        output_schema=tool.output_schema,
        scope=ToolScope.MCP,
        effects=frozenset({Effect.READ}) if reads else _ANYTHING,
        validate=_as_given,  # its own server checks them
        invoke=invoke,
        destructive=not reads and said.destructive_hint is not False,
        idempotent=bool(said.idempotent_hint),
        tags=(server,),
        capabilities=(title,) if title else (),
        source=f"upstream:{server}",
        timeout=math.inf,  # a call keeps the time itself: it stands still while somebody is asked
        becomes_job=True,
        bare=tool.name,
        listed=tool.model_copy(update={"name": name}),
    )


def to_barred(spec: ToolSpec, reason: str) -> ToolSpec:
    """The same tool in quarantine: its names, and nothing else that its server says of it.

    What is not there reaches no model on any path. A bare name that had to be changed is left out
    with the rest: it may say more than a name does.

    Args:
        spec: The tool.
        reason: Why nobody may call it until a person has looked at it; in words of ours.
    """
    kept = spec.name == f"{spec.server}{SEPARATOR}{spec.bare}"
    return ToolSpec(
        name=spec.name,
        title=spec.name,
        description=f"In quarantine: {reason}.",
        input_schema={"type": "object"},
        output_schema=None,
        scope=ToolScope.MCP,
        effects=_ANYTHING,
        validate=_as_given,
        invoke=spec.invoke,
        destructive=True,
        tags=spec.tags,
        source=spec.source,
        bare=spec.bare if kept else "",
        barred=reason,
    )


def _as_given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return dict(arguments)
