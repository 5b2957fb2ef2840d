"""All that an author of functions imports."""

from __future__ import annotations

from tools.core.context import RequestContext
from tools.core.depends import Depends
from tools.core.errors import CallFailedError, DeclinedError, ToolError, UnavailableError
from tools.core.result import Media
from tools.core.spec import tool

__all__ = [
    "CallFailedError",
    "DeclinedError",
    "Depends",
    "Media",
    "RequestContext",
    "ToolError",
    "UnavailableError",
    "tool",
]
