"""Why a resource or a prompt of a function cannot be offered."""

from __future__ import annotations

from collections.abc import Collection

from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from tools.core.browsing.offered import Spec
from tools.core.browsing.resource import ResourceSpec

RESERVED = ("context://", "toolcrib://")
"""What addresses of ours begin with, and no others."""


def objection_to(prompts: Collection[str], spec: Spec) -> str:
    """Says why it cannot be offered here; nothing where it can.

    Args:
        prompts: Names of our own prompts.
        spec: The resource or the prompt.
    """
    if not isinstance(spec, ResourceSpec):
        taken = spec.name in prompts
        return f"The prompt {spec.name!r} is Toolcrib's own; give yours a name." if taken else ""
    if spec.uri.lower().startswith(RESERVED):
        return f"The address {spec.uri!r} is Toolcrib's own; give {spec.name} another scheme."
    try:
        UriTemplate.parse(spec.uri)
    except InvalidUriTemplate as error:
        return f"The address {spec.uri!r} of {spec.name} is no template that can be read: {error}."
    return ""
