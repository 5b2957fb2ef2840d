"""Removes titles and keywords without effect from schemas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from tools.conversion.callables.docstrings import read_docstring
from tools.conversion.schemas.reading import changed, union, without_null
from tools.core.audit.secret_schema import is_secret

ENCODINGS = {"base64", "base64url"}
"""Formats of pydantic's that JSON Schema (section 8.3) treats as content encodings."""
NOISE = {"discriminator", "title"}
"""Strict validators reject keywords outside JSON Schema; `discriminator` is OpenAPI's."""


def tidy(schema: Mapping[str, Any], *, nulls: bool) -> dict[str, Any]:
    """Removes noise from a schema, and moves attribute texts of docstrings to the attributes.

    Without `nulls`, an optional property whose default is None does not list null: omitting it
    means the same. A secret lists no default, not even a masked one.
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
