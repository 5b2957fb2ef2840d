"""Converts tools of other servers to our own form."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

import mcp_types as types

from server.settings.gateway import ArgumentSettings, OverrideSettings, ServerSettings
from tools.conversion.naming import SEPARATOR, exposed_name
from tools.conversion.schema_reading import MANY_SCHEMAS, NAMED_SCHEMAS, ONE_SCHEMA, bears_secret
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolResult
from tools.core.spec import Effect, Prepared, ToolScope, ToolSpec

DEEPEST = 64
"""Maximum nesting of objects and lists; serializers of both sides give up at about 200."""

_ONE = ONE_SCHEMA - {"additionalProperties"}  # `false` stays: clients understand it
_TEXT = frozenset({"$ref", "$schema", "description", "title"})
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")

_OLD, _NEW = "#/definitions/", "#/$defs/"
"""The location of definitions in drafts before 2019-09, and since."""

Invoke = Callable[[dict[str, Any], RequestContext], Awaitable[ToolResult]]

_ANYTHING = frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.EXTERNAL})


def rooted(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a schema to one that can be listed.

    A single schema that is too deep, or whose root violates the wire formats of either era, would
    make clients reject the whole list. Invalid parts of the root are removed, parts deeper than
    `DEEPEST` allow anything, and the rest is unchanged.
    """
    made: dict[str, Any] = _cut(schema, DEEPEST)
    for key in ("$schema", "required"):
        if key in made and not _fits(key, made[key]):
            del made[key]
    if "properties" in made:
        properties = _as_mapping(made["properties"])
        made["properties"] = {name: _schema(each) for name, each in properties.items()}
    return {**made, "type": "object"}


def sound(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Removes keywords whose values are invalid in JSON Schema (2020-12).

    Without the keyword anything is allowed, and the tool's server checks arguments anyway.
    References that lead out of the schema, nowhere or in a circle are removed too.
    """
    definitions = schema.get("definitions")
    if isinstance(definitions, dict):  # drafts up to 7
        schema = {**schema, "$defs": {**definitions, **_as_mapping(schema.get("$defs"))}}
        del schema["definitions"]
    made = _clean(schema)
    lost = {"writeOnly": True} if bears_secret(made, made) else {}
    return {**_rewrite_references(made, _straight(made.get("$defs", {})), lost), "type": "object"}


def _clean(schema: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in NAMED_SCHEMAS:
            made[key] = {name: _clean_subschema(each) for name, each in _as_mapping(value).items()}
        elif key in _ONE:
            made[key] = _clean_subschema(value)
        elif key in MANY_SCHEMAS:
            if isinstance(value, list) and value:
                made[key] = [_clean_subschema(each) for each in value]
        elif _fits(key, value):
            made[key] = value
    return made


def _clean_subschema(schema: object) -> dict[str, Any]:
    """Cleans a subschema; `true` and `false` are schemas too."""
    return _clean(_schema(schema))


def _schema(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {"not": {}} if value is False else {}


def _fits(key: str, value: object) -> bool:
    if key == "type":
        return isinstance(value, str) or (is_texts(value) and bool(value))
    if key == "required":
        return is_texts(value)
    if key == "enum":
        return isinstance(value, list) and bool(value)
    return isinstance(value, str) or key not in _TEXT


def is_texts(value: object) -> bool:
    """Returns whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _as_mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _target(schema: Mapping[str, Any]) -> str:
    """Returns the name of the definition that a schema refers to; empty without a reference."""
    reference: str = schema.get("$ref", "")
    for start in (_NEW, _OLD):
        if reference.startswith(start):
            return reference.removeprefix(start)
    return ""


def _straight(known: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Returns the definitions that do not refer to themselves, even indirectly."""
    sorter = TopologicalSorter(
        {name: set(_equal_definitions(each)) for name, each in known.items()}
    )
    with suppress(CycleError):  # it still yields those outside of cycles
        sorter.prepare()
    straight: set[str] = set()
    while ready := sorter.get_ready():
        straight.update(ready)
        sorter.done(*ready)
    return straight & known.keys()


def _equal_definitions(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields the definitions that a schema equals, directly or in an alternative."""
    yield _target(schema)
    for key in _ALTERNATIVES:
        for each in schema.get(key, ()):
            yield from _equal_definitions(each)


def _rewrite_references(value: Any, known: set[str], lost: Mapping[str, Any]) -> Any:  # noqa: ANN401  # any part of a schema
    """Rewrites references for this draft, and removes those to unknown definitions.

    A removed reference is replaced by `lost`: in a schema with secrets, it may lead to one.
    """
    if isinstance(value, list):
        return [_rewrite_references(each, known, lost) for each in value]
    if not isinstance(value, dict):
        return value
    made = {key: _rewrite_references(each, known, lost) for key, each in value.items()}
    if isinstance(made.get("$ref"), str):
        target = _target(made)
        del made["$ref"]
        if target in known:
            made["$ref"] = _NEW + target
        else:
            made |= lost
    return made


def _cut(value: Any, left: int) -> Any:  # noqa: ANN401  # any part of a schema
    if isinstance(value, dict):
        return {key: _cut(each, left - 1) for key, each in value.items()} if left else {}
    if isinstance(value, list):
        return [_cut(each, left - 1) for each in value] if left else []
    return value


def readable(tool: types.Tool) -> types.Tool:
    """Returns the tool with schemas that every client accepts; the rest is unchanged.

    Removes output schemas that are not objects: clients before protocol 2026-07-28 would reject the
    whole list.
    """
    results = tool.output_schema
    schemas = {
        "input_schema": rooted(tool.input_schema),
        "output_schema": rooted(results) if results and results.get("type") == "object" else None,
    }
    return tool.model_copy(update=schemas)


def to_spec(server: str, tool: types.Tool, settings: ServerSettings, invoke: Invoke) -> ToolSpec:
    """Converts a tool from `readable`; its annotations count if its server is trusted."""
    name = exposed_name(server, tool.name)
    said = (tool.annotations if settings.trusted else None) or types.ToolAnnotations()
    prepare = None
    if (override := settings.tools.get(tool.name)) is not None:
        said = said.model_copy(update=_claims(override))
        if override.arguments:
            prepare = partial(_complete, f"servers.{server}.tools.{tool.name}", override.arguments)
        tool = _overridden(tool, override)
    title = tool.title or (tool.annotations and tool.annotations.title) or ""
    reads = bool(said.read_only_hint)
    return ToolSpec(
        name=name,
        title=title or tool.name,
        description=tool.description or "",
        input_schema=sound(tool.input_schema),
        output_schema=tool.output_schema,
        scope=ToolScope.MCP,
        effects=frozenset({Effect.READ}) if reads else _ANYTHING,
        validate=dict,  # its own server checks them
        invoke=invoke,
        destructive=not reads and said.destructive_hint is not False,
        idempotent=bool(said.idempotent_hint),
        tags=(server,),
        capabilities=(title,) if title else (),
        source=f"upstream:{server}",
        timeout=math.inf,  # calls keep their own deadline, which pauses while a user is asked
        may_become_job=True,
        bare=tool.name,
        listed=tool.model_copy(update={"name": name}),
        prepare=prepare,
    )


def _claims(override: OverrideSettings) -> dict[str, bool]:
    claims = override.annotations.model_dump(exclude_none=True)
    return {f"{name}_hint": value for name, value in claims.items()}


def _overridden(tool: types.Tool, override: OverrideSettings) -> types.Tool:
    """Returns the tool as the user defines it; its pin stays that of its server's definition."""
    schema = dict(tool.input_schema)
    properties = dict(_as_mapping(schema.get("properties")))
    for name, argument in override.arguments.items():
        known = properties.pop(name, {})
        if argument.default is not None:
            properties[name] = {**known, "default": argument.default}
    schema["properties"] = properties
    if "required" in schema:
        schema["required"] = [each for each in schema["required"] if each not in override.arguments]
    claims: dict[str, Any] = dict(_claims(override))
    if override.title:
        claims["title"] = override.title
    said = tool.annotations or types.ToolAnnotations()
    return tool.model_copy(
        update={
            "title": override.title or tool.title,
            "description": override.description or tool.description,
            "annotations": said.model_copy(update=claims) if claims else tool.annotations,
            "input_schema": schema,
        }
    )


async def _complete(
    setting: str, known: Mapping[str, ArgumentSettings], given: Mapping[str, Any], _: object
) -> Prepared:
    """Adds the arguments in the settings, so that rules and approvals see what is sent."""
    sent = dict(given)
    for name, argument in known.items():
        is_own = argument.default is None and name in given
        if is_own and (argument.hidden or given[name] != argument.value):
            raise InvalidArgumentsError(
                f"{name} is set by the user, in {setting}.arguments.{name}.",
                next_actions=[f"Call it without {name}."],
            )
        if not argument.hidden:
            sent.setdefault(name, argument.value if argument.default is None else argument.default)
    return Prepared(sent, "")


def to_barred(spec: ToolSpec, reason: str) -> ToolSpec:
    """Returns the tool in quarantine: its names, without any other text of its server.

    Omitted texts cannot reach a model on any path. A bare name that had to be changed is omitted
    too, as it may contain a message.
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
        validate=dict,
        invoke=spec.invoke,
        destructive=True,
        tags=spec.tags,
        source=spec.source,
        bare=spec.bare if kept else "",
        quarantine_reason=reason,
    )
