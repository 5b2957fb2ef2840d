"""Checks of the other MCP servers in the settings, without starting them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from server.cli.checks.findings import Finding, run_check
from server.cli.gateway.import_servers import address_of
from server.clients.locations import OwnAddress, is_toolcrib
from server.composition.machine import references_of
from tools.core.errors import UnavailableError

if TYPE_CHECKING:
    from server.settings import Settings
    from server.settings.gateway import ServerSettings
    from tools.sandbox.secrets.references import References

_PLACEHOLDER = re.compile(r"\$\{((?!env:|file:|keyring:)\w+:(?!-)[^}]*|workspaceFolder)\}")
"""A placeholder that only a client can fill in."""

EVERYBODYS_PATH = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""Directories on the PATH of every program that a desktop starts."""


def check_servers(settings: Settings) -> Iterator[Finding]:
    """Checks that each server could be started or reached."""
    for name, server in settings.servers.items():
        subject = f"Server {name}"
        if server.enabled:
            yield run_check(subject, partial(_check, server, settings))
        else:
            yield Finding(subject, ok=None, detail="not enabled")


def _check(server: ServerSettings, settings: Settings) -> str:
    entry = {"command": server.command, "args": list(server.args), "url": server.url}
    if is_toolcrib(entry, OwnAddress(settings.http.host, settings.http.port)):
        raise ValueError("This is Toolcrib itself, which would start itself again: take it out.")
    references = references_of(settings, os.environ)
    check_references(server, references)
    return check_address(server, references)


def check_address(server: ServerSettings, references: References) -> str:
    """Returns the server's address, or the path of the program that would start."""
    return _check_url(server, references) if server.url else _check_command(server, references)


def check_references(server: ServerSettings, references: References) -> None:
    """Checks that all values can be read and no placeholder is left."""
    values = {"command": server.command, "url": server.url}
    values |= {"args": " ".join(server.args), "token": server.token.get_secret_value()}
    values |= {f"env.{name}": each.get_secret_value() for name, each in server.env.items()}
    values |= {f"headers.{name}": each.get_secret_value() for name, each in server.headers.items()}
    for where, text in values.items():
        left = _PLACEHOLDER.search(text)
        if left:
            raise ValueError(f"The placeholder {left[0]} in its {where} has no value: replace it.")
        try:
            references.expand(text, f"its {where}")
        except UnavailableError as error:
            message = error.message.rstrip(".")
            raise ValueError(f"{message[:1].upper()}{message[1:]}.") from error


def _check_url(server: ServerSettings, references: References) -> str:
    """Returns the server's address."""
    url = references.expand(server.url, "its url")
    address, seen = urlsplit(url), references.redaction.text(address_of(url))
    if not address.hostname or address.port == 0:  # reading the port checks it too
        raise ValueError(f"Its url {seen!r} names no host, or no valid port.")
    secret = server.headers or server.token.get_secret_value()
    if secret and address.scheme == "http" and not _is_here(address.hostname):
        return f"{seen}; its token or headers are sent unencrypted: use https"
    return seen


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _check_command(server: ServerSettings, references: References) -> str:
    """Returns the path of the program that would start."""
    if server.cwd is not None and not server.cwd.is_dir():
        raise NotADirectoryError(f"Its cwd {str(server.cwd)!r} is not a directory.")
    command = references.expand(server.command, "its command")
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
