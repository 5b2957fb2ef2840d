"""`toolcrib servers login` and `logout`: signs a person in to a server, and out again."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.gateway.trial import settings_with
from server.cli.terminal.options import ConfigOption, DataDirOption, ServerArgument
from server.cli.terminal.screen import echo, fail
from server.mcp.visible import visible

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from server.upstream.sign_in.account import Account


def login(
    name: ServerArgument,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Sign in to a remote server that requires it (OAuth)."""
    import webbrowser

    async def show(page: str) -> None:
        echo(f"To sign in to {name}, open this page in a browser on this machine:")
        echo(f"\n{visible(page)}\n")
        if browser and _has_display():
            webbrowser.open(page)

    _with_account(name, data_dir, config, lambda account: account.sign_in(show))
    echo(f"Signed in to {name}. A Toolcrib that is running connects within a few seconds.")


def logout(
    name: ServerArgument, data_dir: DataDirOption = None, config: ConfigOption = None
) -> None:
    """Sign out of a remote server: revoke its tokens, and remove them."""
    is_revoked = _with_account(name, data_dir, config, lambda account: account.revoke())
    how = "revoked and removed" if is_revoked else "removed; the server did not confirm revoking"
    echo(f"Signed out of {name}: its tokens are {how}.")


def _with_account(
    name: str,
    data_dir: Path | None,
    config: Path | None,
    act: Callable[[Account], Awaitable[object]],
) -> object:
    """Returns what an action on the account at a server returns; ends the command if it fails."""
    import anyio
    import httpx2
    from mcp.client.auth import OAuthFlowError

    from server.app import App
    from server.upstream.connections.http_link import has_token
    from tools.core.audit.secret_patterns import redacted_text
    from tools.core.errors import ToolError

    settings = settings_with(name, data_dir, config)
    server = settings.servers[name]
    if not server.url:
        fail(f"{name} is a program; only servers with a url have a sign-in.")
    if server.token.get_secret_value() or has_token(server.headers):
        fail(f"{name} has a token in its settings. Remove it there to sign in instead.")
    settings.create_directories()

    async def run() -> object:
        return await act(await App(settings).parts.transports().account(name, server))

    try:
        return anyio.run(run)
    except TimeoutError:
        fail(f"Not signed in to {name}: timed out. Run the command again.")
    except (OAuthFlowError, ToolError, OSError, ValueError, httpx2.HTTPError) as error:
        reason = redacted_text(visible(str(error) or type(error).__name__), 500).rstrip(".")
        fail(f"Not signed in to {name}: {reason}.")


def _has_display() -> bool:
    if sys.platform == "darwin":
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
