"""A created tool in its cell: a function that knows the tools, and is called again and again."""

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
    """Loads functions that know the tools as programs do, and runs what is called."""
    namespace = Namespace(_ask, set())
    given = {NAME: namespace, "ToolError": ToolError, "asyncio": asyncio, "json": json}
    serve_file(channel, load, given)


async def _ask(tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Has the server call a tool for the call that runs here."""
    return await current_peer().answer(tool, arguments, in_turn=True)
