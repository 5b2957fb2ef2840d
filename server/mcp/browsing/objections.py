"""Checks whether a resource or prompt of a function can be offered."""

from __future__ import annotations

from collections.abc import Collection

from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from tools.core.offered import ResourceSpec, Spec

RESERVED = ("context://", "toolcrib://")
"""Prefixes reserved for our own addresses."""


def objection_to(prompts: Collection[str], spec: Spec) -> str:
    """Returns why it cannot be offered next to our own prompts; empty if it can."""
    if not isinstance(spec, ResourceSpec):
        taken = spec.name in prompts
        return f"The prompt {spec.name!r} is reserved by Toolcrib; rename yours." if taken else ""
    if spec.uri.lower().startswith(RESERVED):
        return f"The address {spec.uri!r} is reserved by Toolcrib; give {spec.name} another scheme."
    try:
        UriTemplate.parse(spec.uri)
    except InvalidUriTemplate as error:
        return f"The address {spec.uri!r} of {spec.name} is not a valid template: {error}."
    return ""
