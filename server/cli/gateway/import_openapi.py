"""`toolcrib import openapi`: adds an HTTP API to the settings from its description."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import typer
from pydantic import ValidationError

from server.cli.gateway.import_servers import Wanted
from server.cli.invocation import invocation
from server.cli.terminal.screen import echo, print_json
from server.clients.dialects import fitted
from server.composition.apis import make_descriptions, options_of
from server.composition.machine import MachineParts
from server.mcp.visible import visible
from server.settings import Settings, SettingsError
from server.settings.file import NamedTable, SettingsFile
from server.settings.gateway import OpenApiSettings
from server.settings.sources import load
from storage.index.bounded import clip
from tools.answers.directory import counted
from tools.core.spec import Effect
from tools.openapi.api import Api
from tools.openapi.description import NO_HOST
from tools.sandbox.secrets.secrets import HostPattern
from tools.sandbox.web.url import Url

if TYPE_CHECKING:
    from tools.openapi.api import ApiOptions, Descriptions

GROUP = "openapi"
HINT = "'PATH...'"
NAME = r"[a-z0-9]([-_]?[a-z0-9])*"
LONGEST_NAME = 30

MOST_TOLD = 12
"""Tools, and problems, to print; the rest are counted."""

COLUMNS = 80
NOWHERE = "https://host.invalid"
"""The base URL of an API whose description names none."""

_GENERIC = re.compile(r"(?i)^(?:the|api|apis|openapi|swagger|rest|reference|public|spec|v?[\d.]+)$")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An API with its settings."""

    name: str
    table: dict[str, Any]
    options: ApiOptions
    data: bytes
    api: Api
    to_do: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "table": self.table,
            "operations": len(self.api.operations),
            "tools": [spec.name for spec in self.api.tools],
            "addresses": self.api.addresses,
            "credentials": [f"{each.kind} ({each.parameter})" for each in self.api.schemes],
            "problems": self.api.problems,
            "to_do": list(self.to_do),
        }


def import_openapi(wanted: Wanted, config: Path | None, *, as_json: bool) -> None:
    """Writes an API into the settings file and prints its tools."""
    settings = load({}, config_file=config)
    assert settings.config_file is not None  # noqa: S101  # load always sets it
    file = SettingsFile(settings.config_file)
    descriptions = make_descriptions(settings, MachineParts(settings, os.environ).machine())
    found = _read_api(wanted, settings, descriptions)
    if not wanted.dry_run:
        _check_name(found.name, file, replace=wanted.replace)
        if found.options.url:
            descriptions.keep(found.options, found.data)
        origin = f"{found.api.description.title}, imported from {found.options.address}"
        comments = (origin, *(f"To do: {each}" for each in found.to_do))
        table = NamedTable(found.name, found.table, tuple(map(visible, comments)))
        file.put(GROUP, [table])
    if as_json:
        print_json({"settings": str(file.path), "written": not wanted.dry_run, **found.as_json()})
        return
    for line in _report_lines(found, settings, file.path, dry_run=wanted.dry_run):
        echo(visible(line))


def _read_api(wanted: Wanted, settings: Settings, descriptions: Descriptions) -> _Candidate:
    try:
        fields = {"description": wanted.source, "include": wanted.only}
        given = OpenApiSettings.model_validate(fields)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise typer.BadParameter(f"{wanted.source!r}: {reason}.", param_hint=HINT) from None
    options = options_of(wanted.name, given)
    read = descriptions.fetched if options.url else descriptions.read
    data = anyio.run(read, options)
    words = (word.strip("-:,()") for word in Api(options, data).description.title.split())
    specific = (word.partition("'")[0] for word in words)
    short = next((word for word in specific if word and not _GENERIC.match(word)), "")
    name = wanted.name or fitted(short or Path(wanted.source).stem, ())
    if not re.fullmatch(NAME, name) or len(name) > LONGEST_NAME:
        raise typer.BadParameter(
            f"{name!r} is not a valid name: use a-z, 0-9, single - and _; {LONGEST_NAME} at most.",
            param_hint="'--name'",
        )
    options = replace(options, name=name)
    api = Api(options, data)
    to_do: tuple[str, ...] = ()
    if api.wanted and not api.tools and any(NO_HOST in each for each in api.problems):
        to_do = ('url = "https://...", where the API is',)
        api = Api(replace(options, base_url=NOWHERE), data)
    table: dict[str, Any] = {"description": wanted.source if options.url else str(given.file)}
    table |= {"include": list(wanted.only)} if wanted.only else {}
    if secret := _secret_for(api, settings):
        table["secret"] = secret
    return _Candidate(name, table, options, data, api, to_do)


def _check_name(name: str, file: SettingsFile, *, replace: bool) -> None:
    if name in file.tables_in("servers"):
        raise SettingsError(f"{name!r} is the name of a server; choose another with --name.")
    if name in file.tables_in(GROUP) and not replace:
        raise SettingsError(
            f"[{GROUP}.{name}] is in {file.path} already; --replace replaces it, --name adds"
            " another."
        )


def _secret_for(api: Api, settings: Settings) -> str:
    """Returns the one secret in the settings for the API's hosts; empty for none or several."""
    named = {
        name
        for name, secret in settings.secrets.items()
        for pattern in map(HostPattern.parse, secret.hosts)
        for address in api.addresses
        if pattern.matches(Url.parse(address))
    }
    return named.pop() if len(named) == 1 and api.schemes else ""


def _report_lines(
    found: _Candidate, settings: Settings, path: Path, *, dry_run: bool
) -> Iterator[str]:
    api, tools = found.api, found.api.tools
    yield f"{api.description.title or found.name}: {counted(len(api.operations), 'operation')}."
    reading = sum(Effect.WRITE not in each.effects for each in tools)
    become = f"{reading} that read, {len(tools) - reading} that change something"
    yield f"{len(tools):,} of them {'would ' * dry_run}become tools: {become}."
    yield from _clipped([f"  {spec.name}: {spec.title}" for spec in tools])
    if api.addresses and api.addresses != [NOWHERE]:
        yield f"Requests go to {', '.join(api.addresses[:MOST_TOLD])}."
    if api.problems:
        yield "Note:"
        yield from _clipped([f"  {each}." for each in api.problems])
    yield ""
    yield f"{'Would be written' if dry_run else 'Written'} into {path}:"
    yield f"  [{GROUP}.{found.name}]"
    for key, value in found.table.items():
        yield f"  {key} = {json.dumps(value, ensure_ascii=False)}"
    yield from _next(found, settings)


def _next(found: _Candidate, settings: Settings) -> Iterator[str]:
    yield ""
    yield "Next:"
    for each in found.to_do:
        yield f"  Write {each}."
    if "secret" not in found.table:
        yield from _credentials(found)
    if settings.policy.profile in {"cautious", "standard"}:
        yield "  Each call asks, unless a rule below [policy] allows it; this one allows reading:"
        yield f'    allow = ["source:openapi:{found.name}+only:read,external"]'
    yield f"  `{invocation()} tools` lists the tools; agents find them with search_tools."


def _credentials(found: _Candidate) -> Iterator[str]:
    """Yields settings that send a credential, as the description requires."""
    if not found.api.schemes:
        return
    scheme = found.api.schemes[0]
    hosts = list(dict.fromkeys(Url.parse(each).host for each in found.api.addresses))
    yield f"  If it needs {scheme.kind}, write (docs/secrets.md):"
    yield f"    [secrets.{found.name}]"
    yield f'    env = "{re.sub("[^a-z0-9]", "_", found.name).upper()}_KEY"'
    yield f"    hosts = {json.dumps(hosts)}"
    for key, value in scheme.settings().items():
        yield f"    {key} = {json.dumps(value)}"
    yield f'  and secret = "{found.name}" below [{GROUP}.{found.name}].'


def _clipped(lines: list[str]) -> Iterator[str]:
    for line in lines[:MOST_TOLD]:
        yield clip(line, COLUMNS)
    if len(lines) > MOST_TOLD:
        yield f"  and {len(lines) - MOST_TOLD:,} more"
