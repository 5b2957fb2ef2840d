"""`toolcrib doctor`: is everything there that the product needs, and does it work?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.options import ConfigOption, DataDirOption, RootOption

if TYPE_CHECKING:
    from server.settings import Settings
    from storage.embed import MiniLMEmbedder
    from storage.library import Library

__all__ = ["doctor"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: What.
        ok: Whether it works; None where there is nothing to judge.
        detail: What was seen.
    """

    subject: str
    ok: bool | None
    detail: str


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Check the installation and the data; exits with 1 if something does not work."""
    from server.settings_sources import load  # noqa: PLC0415  # `--help` does not wait for it

    settings = load({"root": root, "data_dir": data_dir}, config_file=config)
    findings = list(_findings(settings))
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    if any(finding.ok is False for finding in findings):
        sys.exit(1)


def _findings(settings: Settings) -> Iterator[Finding]:
    from server.clients import CLIENTS  # noqa: PLC0415  # imported on first use
    from storage.embed import MiniLMEmbedder  # noqa: PLC0415  # the same
    from storage.library import Library  # noqa: PLC0415  # the same

    yield Finding("Python", ok=True, detail=f"{sys.version.split()[0]} at {sys.executable}")
    yield Finding("Root", ok=True, detail=str(settings.root))
    yield _judged("Data directory", lambda: _data_directory(settings))
    embedder = MiniLMEmbedder()
    yield _judged("Embedder", lambda: _embedder(embedder))
    try:
        library = Library(settings.data_dir, embedder)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the finding
        yield Finding("SQLite", ok=False, detail=str(error))
    else:
        yield _judged("SQLite", lambda: _sqlite(library))
        yield _judged("Chroma", lambda: _chroma(library))
        library.close()
    for client in CLIENTS:
        yield Finding(client.name, ok=None, detail="found" if client.found else "not found")


def _judged(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, ok=True, detail=look())
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the finding
        return Finding(subject, ok=False, detail=str(error) or type(error).__name__)


def _data_directory(settings: Settings) -> str:
    import shutil  # noqa: PLC0415  # imported on first use

    settings.create_directories()
    free = shutil.disk_usage(settings.data_dir).free
    return f"{settings.data_dir}, {free / 1e9:.1f} GB free"


def _embedder(embedder: MiniLMEmbedder) -> str:
    embedder.embed_query("Is anybody there?")
    return f"{embedder.model_id}, {embedder.dimensions} dimensions, checksums right"


def _sqlite(library: Library) -> str:
    import sqlite3  # noqa: PLC0415  # imported on first use

    with library.database.read() as connection:
        verdict = connection.execute("PRAGMA quick_check").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        count = connection.execute("SELECT count(*) FROM contexts").fetchone()[0]
    if verdict != "ok":
        raise RuntimeError(f"{library.database.path} is damaged: {verdict}")
    return f"{sqlite3.sqlite_version}, schema {version}, {count} chunks, sound"


def _chroma(library: Library) -> str:
    from importlib.metadata import version  # noqa: PLC0415  # imported on first use

    library.indexer.check()
    while library.indexer.step():
        pass
    return f"{version('chromadb')}, agrees with the record"


def _print(findings: list[Finding]) -> None:
    from rich.console import Console  # noqa: PLC0415  # JSON needs none
    from rich.table import Table  # noqa: PLC0415  # the same

    table = Table(box=None, show_header=False)
    for finding in findings:
        mark = {True: "[green]ok[/]", False: "[red]fails[/]", None: ""}[finding.ok]
        table.add_row(finding.subject, mark, finding.detail)
    Console().print(table)
