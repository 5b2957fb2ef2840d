"""Runs a created tool in its cell: a function that can call tools, called repeatedly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from tools.functions.programs.namespace import NAME, Namespace, ToolError
from tools.functions.workers.channel import Channel
from tools.functions.workers.host import serve as serve_file
from tools.functions.workers.messages import Load
from tools.functions.workers.peer import current_peer


def serve(channel: Channel, load: Load) -> None:
    """Loads functions that can call tools as programs do, and serves their calls."""
    namespace = Namespace(_ask, set())
    given = {NAME: namespace, "ToolError": ToolError, "asyncio": asyncio, "json": json}
    serve_file(channel, load, given)


async def _ask(tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return await current_peer().answer(tool, arguments, in_turn=True)
