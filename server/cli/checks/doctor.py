"""`toolcrib doctor`: checks and repairs what the product needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.checks.findings import Finding, run_check, show
from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption, JsonOption, RootOption
from server.cli.terminal.screen import console, print_json
from server.settings.sources import load

if TYPE_CHECKING:
    from server.app import App
    from server.settings import Settings


REPAIR = "Repair"


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
    from server.cli.checks.clients import check_clients
    from server.cli.checks.data import check_data, data_directory
    from server.cli.checks.installation import (
        check_secrets,
        chroma,
        confinement,
        cross_encoder,
        data_juicer,
        embedder,
        functions,
        memory,
        peak_mb,
        skills,
    )
    from server.cli.checks.servers import check_servers
    from server.clients.locations import OwnAddress, command_path
    from server.settings.index import EmbedderSettings

    yield Finding("Python", ok=True, detail=f"{sys.version.split()[0]} at {sys.executable}")
    command = f"{command_path()}, typed here as `{invocation()}`"
    detail = f"Toolcrib {version('toolcrib')} at {command}"
    yield Finding("Command", ok=command_path().exists(), detail=detail)
    data_dir: Path | None = None
    embedder_settings, chroma_url, own = EmbedderSettings(), "", OwnAddress("", 0)
    try:
        settings = load(flags, config_file=config)
    except Exception as error:  # noqa: BLE001  # every error is the finding
        yield Finding("Settings", ok=False, detail=str(error))
    else:
        data_dir, file = settings.data_dir, settings.config_file
        missing = file is None or not file.exists()
        named = f"{file} does not exist; no settings file is in use" if missing else f"{file}"
        yield Finding("Settings file", ok=True, detail=named)
        yield Finding("Root", ok=True, detail=f"{settings.root} ({settings.source_of('root')})")
        yield run_check("Data directory", lambda: data_directory(settings.data_dir))
        yield run_check("Function files", lambda: functions(settings))
        yield run_check("Skills", lambda: skills(settings))
        yield run_check("Confinement", lambda: confinement(settings))
        yield run_check("Data-Juicer", lambda: data_juicer(settings))
        yield from check_servers(settings)
        yield from check_secrets(settings)
        embedder_settings, chroma_url = settings.embedder, settings.chroma.url
        own = OwnAddress(settings.http.host, settings.http.port)
    bare = peak_mb()
    yield run_check("Embedder", lambda: embedder(embedder_settings))
    yield run_check("Cross-encoder", cross_encoder)
    yield Finding("Memory", ok=None, detail=memory(bare, peak_mb()))
    yield run_check("Chroma", chroma)
    yield from check_data(data_dir, chroma_url)
    yield from check_clients(data_dir, own)


def _repairs(flags: dict[str, Any], config: Path | None) -> Iterator[Finding]:
    """Repairs what fails, and nothing else; ignores settings that the checks will report."""
    from server.cli.checks.data import RECORD_CHECK, check_data, record_of
    from server.settings import SettingsError
    from storage.keeping.atomic import remove_stale

    try:
        settings = load(flags, config_file=config)
    except SettingsError:
        return
    checks = check_data(settings.data_dir, settings.chroma.url)
    failing = {finding.subject for finding in checks if finding.ok is False}
    done = []
    if RECORD_CHECK in failing:
        restore = f"`{invocation()} restore --help`"
        said = f"The record is damaged or missing: restore it from a backup. See {restore}."
        done.append(Finding(REPAIR, ok=False, detail=said))
    elif record_of(settings.data_dir) is not None:
        done += _repair_indexes(settings, config, failing)
    for folder in (settings.root, settings.data_dir):
        removed = remove_stale(folder)
        done += [Finding(REPAIR, ok=True, detail=f"Removed {path}") for path in removed]
    yield from done or [Finding(REPAIR, ok=True, detail="There was nothing to do.")]


def _repair_indexes(settings: Settings, config: Path | None, failing: set[str]) -> list[Finding]:
    from server.cli.checks.data import VECTORS_CHECK, WORDS_CHECK
    from server.cli.opened import open_app

    def empty(rebuild: Callable[[], None], index: str) -> str:
        rebuild()
        return f"Emptied the index of {index}, to fill it from the record."

    with open_app(root=settings.root, data_dir=settings.data_dir, config_file=config) as app:
        indexer = app.library.indexer
        done = []
        if WORDS_CHECK in failing:
            done.append(run_check(REPAIR, lambda: empty(indexer.rebuild_words, "words")))
        if VECTORS_CHECK in failing:
            done.append(run_check(REPAIR, lambda: empty(indexer.rebuild_vectors, "vectors")))
            if aside := app.library.vectors.home.aside:
                said = f"Moved what could not be used as the index of vectors to {aside}"
                done.append(Finding(REPAIR, ok=True, detail=said))
        finished = run_check(REPAIR, lambda: _empty_queues(app))
        return [*done, finished] if finished.detail else done


def _empty_queues(app: App) -> str:
    """Does all pending work of the indexes; returns the counts."""
    from server.cli.terminal.progress import bars, drain

    with bars(console()) as progress:
        done = drain(app.library, progress)
    counts = {
        "chunks indexed by their words": done.words,
        "embedded": done.embeddings,
        "delivered to the vector index": done.vectors,
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)
