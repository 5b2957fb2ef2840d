"""`toolcrib import servers`: adds the servers of other clients to the settings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer
from pydantic import ValidationError

from server.cli.invocation import invocation
from server.cli.terminal.screen import echo, print_json
from server.clients.client import Client
from server.clients.dialects import (
    ClientFile,
    Named,
    client_of,
    files_of,
    fitted,
    named_servers,
    parse,
)
from server.clients.entries import InvalidEntryError, Translation, translate
from server.clients.locations import OwnAddress, starts_toolcrib
from server.clients.table import CLIENTS, client_named
from server.mcp.visible import visible
from server.settings import SettingsError
from server.settings.file import NamedTable, SettingsFile
from server.settings.gateway import ServerSettings
from server.settings.sources import load
from tools.answers.directory import counted
from tools.core.audit.secret_patterns import redacted_text

KEPT = (
    *("allow", "deny", "lazy", "timeout", "start_timeout"),
    *("tools", "per_minute", "per_conversation", "cache_seconds"),
)
"""Settings that a replaced server passes on; `trusted` applied to the old one only."""


@dataclass(frozen=True, slots=True)
class _Taken:
    name: str
    named: Named
    translation: Translation
    settings: ServerSettings

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "from": self.named.name,
            "file": str(self.named.file),
            "enabled": self.translation.fields.get("enabled", True),
            "to_do": self.translation.to_do,
            "notes": self.translation.notes,
        }


@dataclass(frozen=True, slots=True)
class _LeftOut:
    named: Named
    reason: str
    fine: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"from": self.named.name, "file": str(self.named.file), "reason": self.reason}


@dataclass(slots=True)
class _Sorted:
    """The client's servers, sorted by outcome."""

    taken: list[_Taken] = field(default_factory=list)
    left_out: list[_LeftOut] = field(default_factory=list)

    @property
    def servers(self) -> list[Named]:
        return [taken.named for taken in self.taken] + [left.named for left in self.left_out]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The servers of a client, or the API, to import."""

    source: str  # the client or its configuration file; the description of the API
    only: tuple[str, ...] = ()  # servers, or patterns of operations; empty imports all
    replace: bool = False  # whether to replace what has the same name in the settings
    dry_run: bool = False  # whether to write nothing
    name: str = ""  # the name for the API; if empty, derived from its title


def import_servers(wanted: Wanted, config: Path | None, *, as_json: bool) -> None:
    """Writes the servers of a client into the settings file."""
    settings = load({}, config_file=config)
    assert settings.config_file is not None  # noqa: S101  # load always sets it
    file = SettingsFile(settings.config_file)
    files = _files(wanted.source)
    named = _select(named_servers(files, Path.cwd()), wanted.only)
    own = OwnAddress(settings.http.host, settings.http.port)
    there = file.tables_in("servers")
    found = _sort(named, there, own, replace=wanted.replace)
    if found.taken and not wanted.dry_run:
        file.put("servers", [_table(taken, there) for taken in found.taken])
    if as_json:
        print_json(_as_json(found, file.path, written=not wanted.dry_run))
    else:
        for line in _report_lines(found, files, file.path, dry_run=wanted.dry_run):
            echo(line)
        if not settings.source_of("servers").startswith((str(file.path), "default")):
            origin = settings.source_of("servers")
            echo(f"They have no effect while servers come from the {origin}.")
    if not found.taken and not any(each.fine for each in found.left_out):
        sys.exit(1)


def importable() -> Iterator[str]:
    """Yields lines that name each client found here and the command that imports from it."""
    project = Path.cwd()
    command = f"{invocation()} import servers --from"
    found = {name: files_of(each, project, os.environ)[0] for name, each in CLIENTS.items()}
    if any(found.values()):
        yield "Clients found on this machine, and the command that imports their servers:"
    else:
        titles = ", ".join(each.title for each in CLIENTS.values())
        yield f"No configuration of a client was found on this machine (known are {titles})."
    for name, files in found.items():
        for file in files:
            yield visible(f"  {file.client.title}: {_count_line(file, project)}")
        if files:
            yield f"      {command} {name}"
    yield "To import from a configuration file elsewhere, give its path:"
    yield f"      {command} FILE"


def _files(source: str) -> list[ClientFile]:
    client = client_named(source)
    if client is not None:
        files, looked_at = files_of(client, Path.cwd(), os.environ)
        if not files:
            raise SettingsError(
                f"{client.title} has no configuration here. Looked for: {', '.join(looked_at)}."
                " If it is elsewhere, name the file: --from FILE."
            )
        return files
    path = Path(source).expanduser()
    if not path.is_file():
        raise typer.BadParameter(
            f"{source!r} is neither a client nor a file. The clients: {', '.join(CLIENTS)}.",
            param_hint="'--from'",
        )
    path = path.absolute()
    return [ClientFile(path, client_of(path, parse(path)), _project_of(path))]


def _count_line(file: ClientFile, project: Path) -> str:
    try:
        count = len(named_servers([file], project))
    except SettingsError as error:
        return str(error)
    return f"{counted(count, 'server')} in {file.path}"


def _project_of(path: Path) -> Path | None:
    """Returns the project folder that a configuration file belongs to, judged by its path."""
    for client in CLIENTS.values():
        for place in client.project:
            folder = path.parents[place.count("/")]
            if path == folder / place and folder != Path.home():
                return folder
    return None


def _select(named: list[Named], only: Collection[str]) -> list[Named]:
    names = list(dict.fromkeys(each.name for each in named))
    missing = [name for name in only if name not in names]
    if missing:
        raise typer.BadParameter(
            f"server {missing[0]!r} does not exist. Available: {', '.join(names) or 'none'}.",
            param_hint="'--only'",
        )
    return [each for each in named if not only or each.name in only]


def _sort(
    named: list[Named], there: Mapping[str, Any], own: OwnAddress, *, replace: bool
) -> _Sorted:
    found = _Sorted()
    first: dict[str, Named] = {}
    for each in named:
        winner = first.setdefault(each.name, each)
        if winner is not each:
            if winner.entry != each.entry:
                reason = f"another of that name comes from {winner.file}"
                found.left_out.append(_LeftOut(each, reason))
            continue
        if starts_toolcrib(each.entry, own):
            found.left_out.append(_LeftOut(each, "it is Toolcrib itself", fine=True))
            continue
        try:
            translation = translate(each)
            settings = validate(translation.fields)
        except InvalidEntryError as error:
            found.left_out.append(_LeftOut(each, str(error)))
            continue
        name = fitted(each.name, [taken.name for taken in found.taken])
        if name in there and not replace:
            old, new = there[name], translation.fields
            same = isinstance(old, dict) and all(old.get(key) == new[key] for key in new)
            reason = "it is there already" if same else f"{name!r} is there already; see --replace"
            found.left_out.append(_LeftOut(each, reason, fine=same))
            continue
        found.taken.append(_Taken(name, each, translation, settings))
    return found


def validate(fields: Mapping[str, Any]) -> ServerSettings:
    """Validates a server's fields as settings."""
    try:
        json.dumps(fields, ensure_ascii=False).encode()
        return ServerSettings.model_validate(fields)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, wrong["loc"]))
        reason = wrong["msg"].removeprefix("Value error, ")
        raise InvalidEntryError(f"its {key}: {reason}" if key else f"it {reason}") from error
    except UnicodeEncodeError as error:
        raise InvalidEntryError("it contains an unpaired surrogate") from error


def _table(taken: _Taken, there: Mapping[str, Any]) -> NamedTable:
    old = there.get(taken.name, {})
    kept = {key: old[key] for key in KEPT if key in old}
    origin = f"Imported from {taken.named.client.title}: {taken.named.name}, {taken.named.file}"
    to_do = (f"To do: {each}" for each in taken.translation.to_do)
    comments = tuple(visible(line) for line in (origin, *to_do))
    return NamedTable(taken.name, {**kept, **taken.translation.fields}, comments)


def _as_json(found: _Sorted, path: Path, *, written: bool) -> dict[str, Any]:
    return {
        "settings": str(path),
        "written": written and bool(found.taken),
        "imported": [each.as_json() for each in found.taken],
        "left_out": [each.as_json() for each in found.left_out],
    }


def _report_lines(
    found: _Sorted, files: list[ClientFile], path: Path, *, dry_run: bool
) -> Iterator[str]:
    origins = dict.fromkeys(str(named.file) for named in found.servers)
    if not origins:
        yield visible(f"No servers in {', '.join(str(file.path) for file in files)}.")
        return
    origin = next(iter(origins)) if len(origins) == 1 else ""
    if found.taken:
        number = counted(len(found.taken), "server")
        done = "Would import" if dry_run else "Imported"
        yield visible(f"{done} {number}{f' from {origin}' * bool(origin)} into {path}:")
    for taken in found.taken:
        yield from map(visible, _server_lines(taken, with_file=not origin))
    if found.left_out:
        yield visible(f"Left out{f' of {origin}' * (bool(origin) and not found.taken)}:")
    for left in found.left_out:
        file = "" if origin else f" ({left.named.file})"
        yield visible(f"  {left.named.name}: {left.reason}{file}")
    if found.taken and not dry_run:
        yield from map(visible, _next(found.taken))


def _server_lines(taken: _Taken, *, with_file: bool) -> Iterator[str]:
    off = "" if taken.settings.enabled else " (not enabled)"
    yield f"  {taken.name}{off}: {reached_by(taken.settings)}"
    if taken.name != taken.named.name:
        yield f"    was called {taken.named.name!r}"
    if with_file:
        yield f"    from {taken.named.file}"
    yield from (f"    to do: {each}" for each in taken.translation.to_do)
    yield from (f"    note: {each}" for each in taken.translation.notes)


def _next(taken: list[_Taken]) -> Iterator[str]:
    files = ", ".join(dict.fromkeys(str(each.named.file) for each in taken))
    client: Client = taken[0].named.client
    yield "Next:"
    yield f"  `{invocation()} servers` connects to them and shows their state."
    yield (
        f"  Then remove them from {client.title} ({files}), so that it has them"
        " through Toolcrib alone."
    )


LONGEST = 100
"""Maximum characters of a command or address."""


def reached_by(server: ServerSettings) -> str:
    """Returns the command that starts a server, or its address."""
    if server.command:
        return redacted_text(" ".join((server.command, *server.args)), LONGEST)
    return address_of(server.url)


def address_of(url: str) -> str:
    """Returns a URL without its user, its query, and tokens in its path."""
    address = urlsplit(url)
    host = address.netloc.rpartition("@")[2]
    return redacted_text(f"{address.scheme}://{host}{address.path}", LONGEST)
