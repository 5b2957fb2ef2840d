"""Runs a cell's process, which waits with little loaded until it gets its task."""

from __future__ import annotations

from tools.functions.programs.program import serve as serve_program
from tools.functions.workers.channel import Channel
from tools.functions.workers.memory import limit_memory


def main(channel: Channel) -> None:
    """Runs what the server sends first, and then exits."""
    load = channel.first()
    limit_memory(load.memory_bytes)
    if load.kind == "program":
        serve_program(channel, load)
    else:
        from tools.functions.programs import functions  # takes half a second, once per process

        functions.serve(channel, load)
