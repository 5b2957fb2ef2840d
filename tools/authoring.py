"""The names that authors of functions import."""

from __future__ import annotations

from tools.core.content import EmbeddedResource, Media, ResourceLink
from tools.core.context import Grant, RequestContext
from tools.core.depends import Depends
from tools.core.errors import (
    CallFailedError,
    DeclinedError,
    NotFoundError,
    ToolError,
    UnavailableError,
)
from tools.core.offered import Message, prompt, resource
from tools.core.spec import tool

__all__ = [
    "CallFailedError",
    "DeclinedError",
    "Depends",
    "EmbeddedResource",
    "Grant",
    "Media",
    "Message",
    "NotFoundError",
    "RequestContext",
    "ResourceLink",
    "ToolError",
    "UnavailableError",
    "prompt",
    "resource",
    "tool",
]
