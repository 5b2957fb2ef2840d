"""Prints our entry for copying, and links that open a client's own installation."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from server.cli.terminal.screen import echo, echo_link
from server.clients.table import DESCRIPTION

if TYPE_CHECKING:
    from server.clients.client import Client, Launch
    from server.clients.launch import Wanted


def print_copies(clients: Sequence[Client], wanted: Wanted, *, links: bool) -> None:
    """Prints links, or the entry in the form of each client; without one, in the usual form."""
    if links:
        for title, link in _links(wanted.launch()):
            echo_link(title, link)
        return
    if not clients:
        entry = {"mcpServers": {"toolcrib": wanted.launch().entry}}
        echo(json.dumps(entry, indent=2, ensure_ascii=False))
    for client in clients:
        file = wanted.file(client)
        if len(clients) > 1:
            echo(f"{client.title}  {file}")
        echo(wanted.snippet(client))


def _links(launch: Launch) -> Iterator[tuple[str, str]]:
    plain = json.dumps(launch.entry, separators=(",", ":"))
    encoded = base64.b64encode(plain.encode()).decode()
    query = urlencode({"name": "toolcrib", "config": encoded})
    yield "Cursor", f"cursor://anysphere.cursor-deeplink/mcp/install?{query}"
    named = json.dumps({"name": "toolcrib", "type": "stdio", **launch.entry}, separators=(",", ":"))
    yield "VS Code", f"vscode:mcp/install?{quote(named, safe='')}"
    yield "VS Code Insiders", f"vscode-insiders:mcp/install?{quote(named, safe='')}"
    fields = [("cmd", launch.command), *(("arg", each) for each in launch.args)]
    fields += [("id", "toolcrib"), ("name", "Toolcrib"), ("description", DESCRIPTION)]
    yield "goose", f"goose://extension?{urlencode(fields, quote_via=quote)}"
