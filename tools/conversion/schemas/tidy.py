"""Schemas as clients want them: no titles, no dead words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from tools.conversion.callables.docstrings import read_docstring
from tools.conversion.schemas.keywords import changed
from tools.conversion.schemas.nulls import without_null
from tools.conversion.schemas.reading import union
from tools.core.audit.secret_schema import is_secret

ENCODINGS = {"base64", "base64url"}
"""What pydantic calls formats, and JSON Schema (section 8.3) encodings of the content."""
NOISE = {"discriminator", "title"}
"""`discriminator` is OpenAPI's; strict validators refuse a word that JSON Schema does not have."""


def tidy(schema: Mapping[str, Any], *, nulls: bool) -> dict[str, Any]:
    """Returns a schema without noise, the attribute texts of class docstrings at the attributes.

    Without `nulls` a property that is None unless it is given lists no null: leaving it out is the
    same, and shorter. A secret lists no default, were it only stars.
    """
    tidied = {
        key: changed(key, value, partial(tidy, nulls=nulls))
        for key, value in schema.items()
        if key not in NOISE and not _says_nothing(key, value)
    }
    if tidied.get("format") in ENCODINGS:
        tidied.pop("contentMediaType", None)
        tidied["contentEncoding"] = tidied.pop("format")
    if any(map(is_secret, [tidied, *union(tidied)])):
        tidied.pop("default", None)
    if not nulls:
        _leave_null_out(tidied, schema)
    return _with_attribute_texts(tidied)


def _says_nothing(key: str, value: object) -> bool:
    if key == "default":
        return value is None or (isinstance(value, float) and not math.isfinite(value))
    return key == "additionalProperties" and value is True


def _leave_null_out(tidied: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        if name not in required and part.get("default", ...) is None:
            tidied["properties"][name] = without_null(tidied["properties"][name])


def _with_attribute_texts(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    if not properties or not isinstance(schema.get("description"), str):
        return schema
    documentation = read_docstring(schema.pop("description"))
    for name, text in documentation.parameters.items():
        if name in properties:
            properties[name].setdefault("description", text)
    if documentation.description:
        schema["description"] = documentation.description
    return schema
