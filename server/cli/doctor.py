"""`toolcrib doctor`: is everything there that the product needs, and does it work?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.options import ConfigOption, DataDirOption, RootOption

if TYPE_CHECKING:
    from server.index_settings import EmbedderSettings
    from server.settings import Settings

__all__ = ["doctor"]

LEAST_FREE_BYTES = 20_000_000
PROBE = "Is anybody there?"


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
    """Check the installation and the data; exits with 1 if something fails."""
    findings = []
    for finding in _findings({"root": root, "data_dir": data_dir}, config):
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    if any(finding.ok is False for finding in findings):
        sys.exit(1)


def _findings(flags: dict[str, Any], config: Path | None) -> Iterator[Finding]:
    from server.clients import CLIENTS, command_path  # noqa: PLC0415  # imported on first use
    from server.index_settings import EmbedderSettings  # noqa: PLC0415  # the same
    from server.settings_sources import load  # noqa: PLC0415  # the same

    yield Finding("Python", ok=True, detail=f"{sys.version.split()[0]} at {sys.executable}")
    yield Finding("Command", ok=command_path().exists(), detail=str(command_path()))
    record: Path | None = None
    embedder, chroma_url = EmbedderSettings(), ""
    try:
        settings = load(flags, config_file=config)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the finding
        yield Finding("Settings", ok=False, detail=str(error))
    else:
        yield Finding("Root", ok=True, detail=str(settings.root))
        yield _judged("Data directory", lambda: _data_directory(settings.data_dir))
        yield _judged("Function files", lambda: _functions(settings))
        record = _record(settings.data_dir)
        embedder, chroma_url = settings.embedder, settings.chroma.url
    sqlite = _judged("SQLite", lambda: _sqlite(record))
    yield sqlite
    yield _judged("Embedder", lambda: _embedder(embedder))
    yield _judged("Chroma", lambda: _chroma(chroma_url, record if sqlite.ok else None))
    for client in CLIENTS:
        yield Finding(client.name, ok=None, detail="found" if client.found else "not found")


def _judged(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, ok=True, detail=look())
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the finding
        advice = getattr(error, "suggestions", ())
        detail = " ".join([str(error) or type(error).__name__, *advice])
        return Finding(subject, ok=False, detail=detail)


def _data_directory(path: Path) -> str:
    import os  # noqa: PLC0415  # imported on first use
    import shutil  # noqa: PLC0415  # the same

    there = next(parent for parent in (path, *path.parents) if parent.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"{there} cannot be written: choose another one with --data-dir.")
    free = shutil.disk_usage(there).free
    if free < LEAST_FREE_BYTES:
        raise OSError(f"{there} has {free / 1e6:.1f} MB free: make room, or choose another one.")
    state = f"{free / 1e9:.1f} GB free"
    return f"{path}, {state}" if there == path else f"{path}, made when it is first used, {state}"


def _functions(settings: Settings) -> str:
    import anyio  # noqa: PLC0415  # imported on first use

    from server.app import function_files  # noqa: PLC0415  # the same
    from tools.core.registry import ToolRegistry  # noqa: PLC0415  # the same

    if not settings.functions.paths:
        return "none are named"
    registry = ToolRegistry()
    files = function_files(settings, registry)
    anyio.run(files.load_once)
    if files.problems:
        raise RuntimeError("\n".join(files.problems))
    return f"{len(registry.specs())} tools"


def _sqlite(record: Path | None) -> str:
    import sqlite3  # noqa: PLC0415  # imported on first use
    from contextlib import closing  # noqa: PLC0415  # the same

    from storage.database import Database  # noqa: PLC0415  # the same

    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("CREATE VIRTUAL TABLE probe USING fts5 (body)")
    if record is None:
        return f"{sqlite3.sqlite_version}, nothing stored yet"
    with closing(Database(record)) as database, database.read() as connection:
        verdict = connection.execute("PRAGMA quick_check").fetchone()[0]
        (count,) = connection.execute("SELECT count(*) FROM chunks").fetchone()
        waiting = connection.execute(
            "SELECT m.state, m.scheme, count(q.chunk_seq) FROM models m"
            " LEFT JOIN embed_queue q ON q.model_seq = m.seq WHERE m.state <> 'old'"
            " GROUP BY m.seq ORDER BY m.state"
        ).fetchall()
    if verdict != "ok":
        raise RuntimeError(f"{record} is damaged ({verdict}): restore a backup.")
    said = [f"{sqlite3.sqlite_version}, {count} chunks"]
    for state, scheme, missing in waiting:
        if state == "current":
            said.append(f"{missing} of them not embedded yet")
        else:
            said.append(f"{count - missing} of them embedded anew by {scheme}, which takes over")
    return ", ".join(said)


def _embedder(settings: EmbedderSettings) -> str:
    from server.embedders import make_embedder  # noqa: PLC0415  # imported on first use

    embedder = make_embedder(settings)
    vector = embedder.embed_query(PROBE)
    return f"{embedder.model_id}, {len(vector)} dimensions"


def _chroma(url: str, record: Path | None) -> str:
    """Tries Chroma in a directory of its own, then compares the stored index with the record."""
    import tempfile  # noqa: PLC0415  # imported on first use
    from importlib.metadata import version  # noqa: PLC0415  # the same

    import numpy as np  # noqa: PLC0415  # the same

    from storage.chroma import ChromaDirectory  # noqa: PLC0415  # the same
    from storage.vectors import VectorIndex  # noqa: PLC0415  # the same

    with tempfile.TemporaryDirectory(prefix="toolcrib-doctor-") as scratch:
        index = VectorIndex(ChromaDirectory(Path(scratch)), library="probe")
        index.upsert(1, "doctor", [1], np.ones((1, 3), dtype=np.float32))
        found = index.nearest(1, "doctor", np.ones(3, dtype=np.float32), 1)
        index.close()
    if found != [1]:
        raise RuntimeError("It does not find the vector that it was given: reinstall chromadb.")
    seen = "" if record is None else f", {_compare(record, url)}"
    return version("chromadb") + seen


def _compare(record: Path, url: str) -> str:
    """How the vector index of a data directory compares with its record.

    Raises:
        RuntimeError: If they differ though nothing waits to be delivered.
    """
    from contextlib import closing  # noqa: PLC0415  # imported on first use

    from storage.chroma import chroma_home  # noqa: PLC0415  # the same
    from storage.database import Database  # noqa: PLC0415  # the same
    from storage.vectors import VectorIndex  # noqa: PLC0415  # the same

    with closing(Database(record)) as database:
        name = database.get_meta("library")
        with database.read() as connection:
            counts = connection.execute(
                "SELECT e.model_seq, c.user_id, count(*) FROM embeddings e"
                " JOIN chunks c ON c.seq = e.chunk_seq JOIN models m ON m.seq = e.model_seq"
                " WHERE m.state = 'current' GROUP BY e.model_seq, c.user_id"
            ).fetchall()
            waiting = connection.execute("SELECT count(*) FROM vector_outbox").fetchone()[0]
    if waiting or name is None:
        return f"{waiting} changes wait for the server to deliver them"
    home = chroma_home(record.parent, url)
    with closing(VectorIndex(home, library=name)) as index:
        held = sum(index.count(model, user) for model, user, _ in counts)
    stored = sum(count for *_, count in counts)
    if held != stored:
        raise RuntimeError(f"{home.name} holds {held} of {stored} vectors: the server rebuilds it.")
    return f"{held} vectors, as many as the record"


def _record(data_dir: Path) -> Path | None:
    """The record of a data directory, if there is one."""
    record = data_dir / "toolcrib.db"
    return record if record.exists() else None


def _print(finding: Finding) -> None:
    from rich.console import Console  # noqa: PLC0415  # JSON needs none
    from rich.table import Table  # noqa: PLC0415  # the same
    from rich.text import Text  # noqa: PLC0415  # the same

    mark, style = {True: ("ok", "green"), False: ("fails", "red"), None: ("", "")}[finding.ok]
    row = Table.grid(padding=(0, 2))
    row.add_column(width=14)
    row.add_column(width=5)
    row.add_column(overflow="fold")
    row.add_row(Text(finding.subject), Text(mark, style), Text(finding.detail))
    Console().print(row)
