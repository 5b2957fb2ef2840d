"""`toolcrib doctor`: checks that everything the product needs is present and works."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.checks.findings import Finding, run_check, show
from server.cli.terminal.options import ConfigOption, DataDirOption, JsonOption, RootOption
from server.cli.terminal.screen import print_json

if TYPE_CHECKING:
    from server.settings import Settings


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be repaired, then check.")
    ] = False,
    as_json: JsonOption = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Check the installation and the data; exits with 1 if something fails."""
    flags = {"root": root, "data_dir": data_dir}
    findings = []
    for finding in chain(_repairs(flags, config) if repair else (), _findings(flags, config)):
        findings.append(finding)
        if not as_json:
            show(finding)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    if any(finding.ok is False for finding in findings):
        sys.exit(1)


def _findings(flags: dict[str, Any], config: Path | None) -> Iterator[Finding]:
    from server.cli.checks.data import check_data, data_directory
    from server.cli.checks.installation import (
        chroma,
        confinement,
        cross_encoder,
        data_juicer,
        embedder,
        functions,
    )
    from server.cli.checks.secrets import check_secrets
    from server.cli.checks.servers import check_servers
    from server.cli.checks.skills import skills
    from server.clients.locations import CLIENTS, command_path
    from server.settings.index import EmbedderSettings
    from server.settings.sources import load

    yield Finding("Python", ok=True, detail=f"{sys.version.split()[0]} at {sys.executable}")
    yield Finding("Command", ok=command_path().exists(), detail=_command(command_path()))
    data_dir: Path | None = None
    embedder_settings, chroma_url = EmbedderSettings(), ""
    try:
        settings = load(flags, config_file=config)
    except Exception as error:  # noqa: BLE001  # every error is the finding
        yield Finding("Settings", ok=False, detail=str(error))
    else:
        data_dir = settings.data_dir
        yield Finding("Settings file", ok=True, detail=_settings_file(settings))
        yield Finding("Root", ok=True, detail=f"{settings.root} ({settings.source_of('root')})")
        yield run_check("Data directory", lambda: data_directory(settings.data_dir))
        yield run_check("Function files", lambda: functions(settings))
        yield run_check("Skills", lambda: skills(settings))
        yield run_check("Confinement", lambda: confinement(settings))
        yield run_check("Data-Juicer", lambda: data_juicer(settings))
        yield from check_servers(settings)
        yield from check_secrets(settings)
        embedder_settings, chroma_url = settings.embedder, settings.chroma.url
    yield run_check("Embedder", lambda: embedder(embedder_settings))
    yield run_check("Cross-encoder", cross_encoder)
    yield run_check("Chroma", chroma)
    yield from check_data(data_dir, chroma_url)
    for client in CLIENTS:
        said = "found" if client.is_found else "not found"
        yield Finding(client.name, ok=None, detail=f"{said}: {client.looked_at}")


def _command(path: Path) -> str:
    from importlib.metadata import version

    from server.cli.invocation import invocation

    return f"Toolcrib {version('toolcrib')} at {path}, typed here as `{invocation()}`"


def _settings_file(settings: Settings) -> str:
    file = settings.config_file
    there = file is not None and file.exists()
    return str(file) if there else f"{file} does not exist; no settings file is in use"


def _repairs(flags: dict[str, Any], config: Path | None) -> Iterator[Finding]:
    """Yields the repairs; ignores unreadable settings, which the next check reports."""
    from server.cli.checks.repairs import repair
    from server.settings import SettingsError
    from server.settings.sources import load

    try:
        settings = load(flags, config_file=config)
    except SettingsError:
        return
    yield from repair(settings, config)
