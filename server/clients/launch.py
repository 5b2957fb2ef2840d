"""Builds the command with which clients start this server, and its entry in their files."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path, PurePath
from typing import Any

import platformdirs

from server.clients.client import Client, Launch, Root
from server.clients.locations import OwnAddress, command_path, starts_toolcrib
from server.clients.pieces import Piece, document_of, entry_of, lookup, plan
from server.settings.group import is_broad

NAME = "toolcrib"
"""The name of our entry in clients' files."""

WORKSPACE = "${workspaceFolder}"
"""The project, in the files of VS Code and Cursor."""

_COMMAND_KEYS = frozenset({"command", "args", "cmd"})
"""Keys that an update replaces; it only adds other keys if they are missing."""

_UV_CACHE = ("archive-v", "environments-v", "builds-v")
"""Folders of uv's cache with environments that uv may remove at any time."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asked to install."""

    variables: Mapping[str, str]  # of the environment
    own: OwnAddress
    options: tuple[str, ...] = ()  # options of `serve` that every client needs, such as --data-dir
    root: Path | None = None
    settings_root: Path | None = None  # which the settings file names
    project: Path | None = None  # the project whose files are written; None for the user's files

    def file(self, client: Client) -> Path | None:
        """Returns the client's file to write; None if it has none in projects."""
        return client.file_to_write(self.variables, self.project)

    def launch(self, client: Client | None = None) -> Launch:
        """Returns the command for a client, or for any."""
        base = own_launch(self.variables)
        root = ("--root", str(self.root)) if self.root else ()
        given = root if client is None else self._root(client)
        return replace(base, args=(*base.args, "serve", *given, *self.options))

    def snippet(self, client: Client) -> str:
        """Returns the text of a new file with our entry, to be copied."""
        return snippet(client, self.launch(client))

    def configured(self, client: Client) -> tuple[str, ...]:
        """Returns the command of our entry in the client's file; empty if there is none."""
        file = self.file(client)
        if file is None:
            return ()
        document = document_of(file, client.kind)
        for table in client.tables:
            servers = lookup(document, table)
            for each in servers.values() if isinstance(servers, dict) else ():
                if starts_toolcrib(each, self.own) and words_of(each)[0]:
                    return tuple(words_of(each))
        return ()

    def entry(self, client: Client, file: Path) -> Piece:
        """Returns our entry in a file, which keeps the options of one that is there already."""
        document = document_of(file, client.kind)
        there = (each for each in reversed(client.tables) if lookup(document, each) is not None)
        keys = (*next(there, client.tables[0]), NAME)
        piece = Piece(client.name, file, client.kind, keys, client.shape(self.launch(client)))
        old = entry_of(document, piece, self.own)
        if not isinstance(old, dict):
            return replace(piece, comments=client.comments)
        if not words_of(old)[0] and any(key.lower().endswith(("url", "uri")) for key in old):
            return replace(piece, value=old)  # a server over HTTP, which we do not start
        base = own_launch(self.variables)
        kept = replace(base, args=(*base.args, "serve", *self._options_after(old)))
        new = client.shape(kept)
        value = {key: new[key] for key in new if key in _COMMAND_KEYS or key not in old}
        return replace(piece, value=value)

    def _root(self, client: Client) -> tuple[str, ...]:
        if self.root is not None:
            return ("--root", str(self.root))
        if self.project is not None:
            return ("--root", WORKSPACE) if client.root is Root.WORKSPACE else ()
        if client.root is not Root.DOCUMENTS or self.settings_root is not None:
            return ()
        documents = platformdirs.user_documents_path()  # has another name in other languages
        return ("--root", str(documents)) if documents.is_dir() and not is_broad(documents) else ()

    def _options_after(self, old: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the options of an entry, with those that the user gave now."""
        words = words_of(old)
        options = words[words.index("serve") + 1 :] if "serve" in words else []
        given = [*(["--root", str(self.root)] if self.root else []), *self.options]
        for option in given[::2]:
            while option in options:
                at = options.index(option)
                del options[at : at + 2]
            options = [each for each in options if not each.startswith(f"{option}=")]
        return (*options, *given)


def own_launch(environ: Mapping[str, str]) -> Launch:
    """Returns the command of this Toolcrib, without arguments, that will still be there tomorrow.

    An environment that uvx made is in uv's cache, and may be removed from it at any time.
    """
    if not _is_in_cache(sys.prefix):
        return Launch(str(command_path()), ())
    uv = environ.get("UV", "")
    # uv names its own program to what it starts; uvx is next to it.
    beside = Path(uv).with_name("uvx") if uv else None
    if beside is not None and beside.exists():
        return Launch(str(beside), (*_source(), NAME))
    found = shutil.which("uvx", path=environ.get("PATH"))
    return Launch(found or "uvx", (*_source(), NAME))


def _is_in_cache(prefix: str) -> bool:
    return any(part.startswith(_UV_CACHE) for part in PurePath(prefix).parts)


def _source() -> tuple[str, ...]:
    """Returns the options that name where uvx installs Toolcrib from, if not from an index."""
    said = distribution(NAME).read_text("direct_url.json")
    if said is None:
        return ()
    origin = json.loads(said)
    url = origin["url"]
    if "vcs_info" in origin:
        info = origin["vcs_info"]
        asked = info.get("requested_revision")
        return ("--from", f"{info['vcs']}+{url}{f'@{asked}' if asked else ''}")
    return ("--from", url.removeprefix("file://"))


def words_of(entry: Mapping[str, Any]) -> list[str]:
    """Returns the command of an entry in any client's form."""
    command = entry.get("command") or entry.get("cmd") or ""
    args = entry.get("args") or []
    words = command if isinstance(command, list) else [command]
    return [str(each) for each in [*words, *(args if isinstance(args, list) else [])]]


def snippet(client: Client, launch: Launch) -> str:
    """Returns the text of a new file in which a command is a client's only server."""
    keys = (*client.tables[0], NAME)
    value, nowhere = client.shape(launch), Path("/nonexistent/file")
    piece = Piece(client.name, nowhere, client.kind, keys, value, comments=client.comments)
    (made,) = plan([piece], OwnAddress("", 0)).changes
    return (made.after or b"").decode().rstrip("\n")
