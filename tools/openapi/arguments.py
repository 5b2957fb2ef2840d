"""Builds the arguments of an operation's tool from its parameters and its body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from tools.openapi.description import PLACE, Description, Operation, UnusableError, items, pairs
from tools.openapi.encoding import Body, Parameter, object_shape
from tools.openapi.schemas import LONGEST_TEXT, Schemas, clean_text

LONGEST_NAME = 64
"""Maximum length of an argument's name in model APIs, which accept only the characters below."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")

_OURS = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Parts of the answer, with dots and *, such as items.*.name; by default all",
}

_FRAMING = frozenset(
    {
        *("accept", "accept-encoding", "authorization", "connection", "content-length"),
        *("content-type", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""Headers that are not arguments: OpenAPI excludes the first, and the client sets the others."""


@dataclass(slots=True)
class Arguments:
    """A tool's arguments, and where each goes in the request."""

    properties: dict[str, dict[str, Any]] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)  # by argument
    fields: dict[str, str] = field(default_factory=dict)  # properties of the body, by argument
    body: Body | None = None
    whole: str = ""  # the argument that is the entire body; empty if its properties are arguments
    wanted: str = ""  # the argument that selects parts of the response
    references: set[str] = field(default_factory=set)  # the `$defs` that the schemas need

    def schema(self, schemas: Schemas) -> dict[str, Any]:
        """Returns the input schema."""
        made: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self.required:
            made["required"] = self.required
        made["additionalProperties"] = False
        definitions = schemas.definitions(sorted(self.references))
        return {**made, "$defs": definitions} if definitions else made

    def add(self, name: str, place: str, schema: dict[str, Any], *, required: bool) -> str:
        """Adds an argument under a valid, unused name and returns that name."""
        stem = _UNSAFE.sub("_", name).strip("_")[:LONGEST_NAME] or "argument"
        longer = f"{place}_{stem}"[:LONGEST_NAME]
        numbered = (f"{longer[: LONGEST_NAME - 6]}_{number}" for number in count(2))
        own = next(each for each in chain((stem, longer), numbered) if each not in self.properties)
        self.properties[own] = schema
        if required:
            self.required.append(own)
        return own

    def without_omitted(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments without nulls that mean an omitted argument."""
        return {
            name: value
            for name, value in arguments.items()
            if value is not None or name in self.required or self._may_be_null(name)
        }

    def body_of(self, given: Mapping[str, Any]) -> Any:  # noqa: ANN401  # any JSON value
        """Returns the value of the body; None if no part of it is given and it is optional."""
        if self.whole:
            return given.get(self.whole)
        value = {own: given[name] for name, own in self.fields.items() if name in given}
        return value if value or (self.body is not None and self.body.required) else None

    def _may_be_null(self, name: str) -> bool:
        if name in self.parameters or name == self.wanted:
            return False
        schema = self.properties.get(name, {})
        kinds = schema.get("type", ())
        return (
            not schema.keys() - {"description"}
            or "null" in ([kinds] if isinstance(kinds, str) else kinds)
            or {"type": "null"} in schema.get("anyOf", ())
        )


def arguments_of(operation: Operation, schemas: Schemas, hidden: frozenset[str]) -> Arguments:
    """Returns the arguments of an operation.

    `hidden` has the parameters that the model does not set, as `place:name` in lower case.
    """
    made, description = Arguments(), schemas.description
    parameters = _parameters(operation, description)
    described = {each.name for each in parameters if each.place == "path"}
    if missing := set(PLACE.findall(operation.path)) - described:
        raise UnusableError(f"its parameter {min(missing)!r} is not described")
    for parameter in parameters:
        if not _is_ours(parameter, hidden):
            schema = schemas.convert(description.follow(parameter.schema), made.references)
            schema = _texted(_without_null(schema), parameter.description)
            name = made.add(parameter.name, parameter.place, schema, required=parameter.required)
            made.parameters[name] = parameter
    body = Body.of(description.follow(operation.content.get("requestBody")), description)
    if body is not None and operation.method not in {"GET", "HEAD"}:
        made.body = body
        _add_body(made, body, schemas)
    if operation.method != "HEAD":
        made.wanted = made.add("fields", "answer", dict(_OURS), required=False)
    return made


def _parameters(operation: Operation, description: Description) -> Sequence[Parameter]:
    """Returns the parameters of the path and of the operation, which take precedence."""
    found: dict[tuple[str, str], Parameter] = {}
    for owner in (operation.item, operation.content):
        for each in items(owner.get("parameters")):
            parameter = Parameter.of(description.follow(each))
            found[parameter.place, parameter.name] = parameter
    return tuple(found.values())


def _is_ours(parameter: Parameter, hidden: frozenset[str]) -> bool:
    name = parameter.name.lower()
    if f"{parameter.place}:{name}" in hidden:
        return True
    return parameter.place == "header" and (name in _FRAMING or name.startswith("proxy-"))


def _add_body(made: Arguments, body: Body, schemas: Schemas) -> None:
    shape = None
    if body.form in {"json", "form", "multipart"}:
        shape = object_shape(body.schema, schemas.description)
    if shape is None or not shape.properties or (shape.required and not body.required):
        schema = _texted(_body_schema(made, body, schemas), body.description)
        made.whole = made.add("body", "request", schema, required=body.required)
        return
    for name, schema in _flat(made, body, shape.properties, schemas):
        added = made.add(name, "body", schema, required=name in shape.required)
        made.fields[added] = name


def _flat(
    made: Arguments, body: Body, properties: Mapping[str, Any], schemas: Schemas
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, each in properties.items():
        target = schemas.description.follow(each)
        if target.get("readOnly") is True or pairs(each).get("readOnly") is True:
            continue
        text = clean_text(pairs(each).get("description") or target.get("description"), LONGEST_TEXT)
        if name in body.files:
            yield name, _file_schema(text, several=body.files[name])
        else:
            yield name, _texted(schemas.convert(target, made.references), text)


def _body_schema(made: Arguments, body: Body, schemas: Schemas) -> dict[str, Any]:
    if body.form == "file":
        return _file_schema("", several=False)
    if body.form == "text":
        return {"type": "string", "description": f"A text of {body.media_type}"}
    schema = schemas.convert(schemas.description.follow(body.schema), made.references)
    if body.form == "json":
        return schema
    files = {name: _file_schema("", several=several) for name, several in body.files.items()}
    return {**schema, "type": "object", "properties": {**schema.get("properties", {}), **files}}


def _file_schema(text: str, *, several: bool) -> dict[str, Any]:
    path = {"type": "string"}
    kind = {"type": "array", "items": path} if several else path
    what = "Paths of files inside the root" if several else "Path of a file inside the root"
    return {**kind, "description": f"{what}: {text}" if text else what}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Removes null from a parameter's schema, since a URL or header cannot express it."""
    kinds = schema.get("type")
    if not isinstance(kinds, list):
        return schema
    left = [each for each in kinds if each != "null"]
    return {**schema, "type": left[0] if len(left) == 1 else left or ["string"]}


def _texted(schema: dict[str, Any], text: str) -> dict[str, Any]:
    text = clean_text(text, LONGEST_TEXT)
    return {**schema, "description": text} if text else schema
