"""What an author of tools writes with."""

from __future__ import annotations

from tools.core.context import RequestContext
from tools.core.depends import Depends
from tools.core.result import Media
from tools.core.spec import tool

__all__ = ["Depends", "Media", "RequestContext", "tool"]
