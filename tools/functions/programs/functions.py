"""A created tool in its cell: a function that is called as often as the server wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.functions.programs.program import Tools
from tools.functions.workers.channel import Channel
from tools.functions.workers.host import serve as serve_file
from tools.functions.workers.messages import Load
from tools.functions.workers.peer import CURRENT

__all__ = ["serve"]


def serve(channel: Channel, load: Load) -> None:
    """Loads functions that know the tools as programs do, and runs what is called."""
    serve_file(channel, load, {"tools": Tools(_ask)})


async def _ask(name: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401  # a result
    result = await CURRENT.get().call(None, name, arguments)
    return result.structured
