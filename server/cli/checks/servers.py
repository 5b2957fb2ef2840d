"""What is looked at of the other MCP servers in the settings, none of which is started for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.checks.findings import Finding, judged

if TYPE_CHECKING:
    from server.settings import Settings
    from server.settings.gateway import ServerSettings

EVERYBODYS_PATH = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""Where programs are found that were started from a window."""


def check_servers(settings: Settings) -> Iterator[Finding]:
    """Looks whether each server could be started or reached.

    Args:
        settings: Those with the servers.
    """
    for name, server in settings.servers.items():
        subject = f"Server {name}"
        if not server.enabled:
            yield Finding(subject, ok=None, detail="not enabled")
        else:
            yield judged(subject, partial(_seen, server, settings))


def _seen(server: ServerSettings, settings: Settings) -> str:
    _check_other(server, settings)
    _check_variables(server)
    return _reached(server) if server.url else _started(server)


def _check_other(server: ServerSettings, settings: Settings) -> None:
    """Whether it is another one.

    Raises:
        ValueError: If it is this one.
    """
    from server.clients.own import OwnAddress, is_toolcrib

    entry = {"command": server.command, "args": list(server.args), "url": server.url}
    if is_toolcrib(entry, OwnAddress(settings.http.host, settings.http.port)):
        raise ValueError("This is Toolcrib itself, which would start itself again: take it out.")


def _check_variables(server: ServerSettings) -> None:
    """Whether each variable is set that is named, and nothing is left to be filled in.

    Raises:
        ValueError: If one is not, or a placeholder of a client is left.
    """
    import os
    import re

    from server.upstream.connections.environment import expand
    from tools.core.errors import UnavailableError

    values = {"command": server.command, "url": server.url}
    values |= {"args": " ".join(server.args), "token": server.token.get_secret_value()}
    values |= {f"env.{name}": each.get_secret_value() for name, each in server.env.items()}
    values |= {f"headers.{name}": each.get_secret_value() for name, each in server.headers.items()}
    for where, text in values.items():
        left = re.search(r"\$\{(\w+:(?!-)[^}]*|workspaceFolder)\}", text)
        if left:
            raise ValueError(
                f"There is no value for {left[0]} in its {where}: write what is meant."
            )
        try:
            expand(text, os.environ, where)
        except UnavailableError as error:
            raise ValueError(f"{error.message[:1].upper()}{error.message[1:]}.") from error


def _reached(server: ServerSettings) -> str:
    """Where it is.

    Raises:
        ValueError: If its url names no host, or a port that there is not.
    """
    from urllib.parse import urlsplit

    from server.cli.gateway.reached import address_of

    url = _expanded(server.url)
    address, seen = urlsplit(url), address_of(url)
    if not address.hostname or address.port == 0:  # reading the port checks it too
        raise ValueError(f"Its url {seen!r} names no host, or no valid port.")
    secret = server.headers or server.token.get_secret_value()
    if secret and address.scheme == "http" and not _is_here(address.hostname):
        return f"{seen}; its token or headers are sent unencrypted: use https"
    return seen


def _expanded(text: str) -> str:
    import os

    from server.upstream.connections.environment import expand

    return expand(text, os.environ, "address")


def _is_here(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _started(server: ServerSettings) -> str:
    """What would be started.

    Raises:
        OSError: If there is no such directory or command.
    """
    import os
    import shutil

    if server.cwd is not None and not server.cwd.is_dir():
        raise NotADirectoryError(f"Its cwd {str(server.cwd)!r} is not a directory.")
    command = _expanded(server.command)
    if os.sep in command:
        path = Path(server.cwd or "", Path(command).expanduser()).absolute()
        if not os.access(path, os.X_OK) or path.is_dir():
            raise FileNotFoundError(f"Its command {str(path)!r} is not a program.")
        return str(path)
    given = server.env.get("PATH")
    found = shutil.which(command, path=given.get_secret_value() if given else None)
    if found is None:
        raise FileNotFoundError(
            f"Its command {command!r} was not found: install it, or give its path."
        )
    if given is None and str(Path(found).parent) not in EVERYBODYS_PATH:
        return f"{found}; if a desktop application starts Toolcrib, write this path as command"
    return found
