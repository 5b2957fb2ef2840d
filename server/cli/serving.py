"""Runs `toolcrib serve` after its command line is parsed."""

from __future__ import annotations

import resource
import shlex
import sys
from collections.abc import Awaitable, Mapping
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from server.fast_start.reader import uncollected

if TYPE_CHECKING:
    import httpx2

    from server.fast_start.attach import Hosting
    from server.fast_start.reader import EarlyReader
    from server.settings import Settings


# A write hands the interpreter lock over at each step of its statements, and waits this long for
# each busy search. With Python's 5 ms, recording a call took 560 ms next to 16 of them, not 80.
SWITCH_SECONDS = 0.0005

# Limit on the files of the process; some programs that it starts go through all that are possible.
MOST_FILES = 65_536


class Transport(StrEnum):
    """The transport that clients use."""

    STDIO = "stdio"
    SSE = "sse"
    HTTP = "http"


def serve(
    flags: Mapping[str, object],
    config: Path | None,
    *,
    transport: Transport = Transport.STDIO,
    early_reader: EarlyReader | None = None,
    hosting: Hosting | None = None,  # clients that attach, instead of one over stdio
) -> None:
    """Serves until the client disconnects or a signal arrives; `flags` are as in `load`."""
    sys.setswitchinterval(SWITCH_SECONDS)
    _raise_file_limit()
    with uncollected():
        from server import logs
        from server.app import build
        from server.cli.invocation import invocation_elsewhere
        from server.composition.policy import warn_of_rules
        from server.settings.sources import load

        settings = load(flags, config_file=config)
        settings.create_directories()
        logs.configure(settings)
        app = build(settings, command=invocation_elsewhere(settings))
        warn_of_rules(settings, app.registry)

    def connect(url: str) -> Awaitable[httpx2.AsyncClient]:
        return app.parts.transports().client(url)

    match transport:
        case Transport.STDIO if hosting is not None:
            from server.transport.attached import serve_attached

            ids, end = app.sessions.attaching, app.requests.end
            run = partial(serve_attached, app.server, app.running(), hosting, ids, end)
        case Transport.STDIO:
            if sys.stdin is not None and sys.stdin.isatty():
                _tell_person(settings, config)
            from server.transport.stdio import serve_stdio

            run = partial(serve_stdio, app.server, app.running(), early_reader)
        case Transport.SSE:
            from server.transport.http import serve_sse

            run = partial(serve_sse, app.server, app.http, app.running(), connect)
        case Transport.HTTP:
            from server.transport.hooks import HookRoute
            from server.transport.http import serve_http

            hooks = HookRoute(app.current.refresh, app.identity).route
            run = partial(serve_http, app.server, app.http, app.running(), hooks, connect)
    anyio.run(run)


def _raise_file_limit() -> None:
    """Raises the soft limit of open files to the hard one: many users need more than 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _tell_person(settings: Settings, config: Path | None) -> None:
    """Explains at a terminal, which has no client, what this command waits for."""
    from server.cli.invocation import invocation
    from server.clients.client import Launch
    from server.clients.launch import snippet  # imported late: no client needs it
    from server.clients.locations import command_path
    from server.clients.table import CLIENTS

    launch = Launch(str(command_path()), tuple(_arguments(settings, config)))
    sys.stderr.write(
        "Waiting for an MCP client on stdin. Clients start this command themselves; there is\n"
        "nothing to type here. Press Ctrl-C to stop.\n\n"
        f"To add it to the clients on this machine: `{invocation()} install`\n\n"
        "To connect Claude Code by hand, run:\n\n"
        # --scope precedes the name: arguments after `--` belong to the server.
        f"claude mcp add --scope user toolcrib -- {shlex.join(launch.words)}\n\n"
        "For another client, put this into its configuration file, or for a project into\n"
        f".mcp.json:\n\n{snippet(CLIENTS['claude-desktop'], launch)}\n\n"
        f"Over HTTP: `{invocation()} serve --transport http`\n"
    )


def _arguments(settings: Settings, config: Path | None) -> list[str]:
    """Returns the arguments with which any client starts this same server."""
    named = [("--root", settings.root)]
    if settings.source_of("functions.paths") == "--functions":
        named += [("--functions", each) for each in settings.functions.paths]
    if settings.source_of("data_dir") == "--data-dir":
        named.append(("--data-dir", settings.data_dir))
    if config is not None:
        named.append(("--config", config))
    words = ((option, str(path.absolute())) for option, path in named)
    allowed = ["--allow-broad-root"] if settings.allow_broad_root else []
    return ["serve", *chain.from_iterable(words), *allowed]
