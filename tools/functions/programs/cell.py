"""A cell's process: it waits, empty and light, for what it is to run."""

from __future__ import annotations

from tools.functions.programs.program import serve as serve_program
from tools.functions.workers.channel import Channel
from tools.functions.workers.memory import limit_memory


def main(channel: Channel) -> None:
    """Runs what the server sends first, and ends with it."""
    load = channel.first()
    limit_memory(load.memory_bytes)
    if load.kind == "program":
        serve_program(channel, load)
    else:
        from tools.functions.programs import functions  # half a second, and kept afterwards

        functions.serve(channel, load)
