"""A cell's process: it waits, empty and light, for what it is to run."""

from __future__ import annotations

import anyio

from tools.functions.workers.channel import Channel

__all__ = ["main"]


def main(channel: Channel) -> None:
    """Runs what the server sends first, and ends with it."""
    # Now rather than when somebody waits.
    anyio.run(anyio.lowlevel.checkpoint)
    from tools.functions.programs import program

    load = channel.first()
    if load.kind == "program":
        program.serve(channel, load)
    else:
        from tools.functions.workers.host import serve

        serve(channel, load)
