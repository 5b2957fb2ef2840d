"""The product, put together for one command and closed after it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from server.app import App, build
from server.cli.invocation import invocation_elsewhere
from server.settings.sources import load
from storage.database import RECORD, Database
from storage.errors import BackupError

__all__ = ["opened", "record"]


@contextmanager
def opened(
    *,
    root: Path | None = None,
    data_dir: Path | None = None,
    config_file: Path | None = None,
    functions: list[Path] | None = None,
) -> Iterator[App]:
    """The product as the settings have it, without its background work.

    Args:
        root: The directory that file tools see, if not the settings'.
        data_dir: Where everything is kept, if not where the settings say.
        config_file: The TOML file with the settings.
        functions: The function files, if not the settings'.

    Raises:
        SettingsError: If the settings cannot be used.
        StorageError: If the data directory cannot be used.
    """
    # It warns of worker processes whose end it has seen in two ways.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    flags = {"root": root, "data_dir": data_dir, "functions.paths": functions or None}
    settings = load(flags, config_file=config_file)
    app = build(settings, command=invocation_elsewhere(settings))
    try:
        yield app
    finally:
        app.library.close()


@contextmanager
def record(data_dir: Path | None, config_file: Path | None) -> Iterator[Database]:
    """What is stored, without the rest of the product.

    Args:
        data_dir: Where everything is kept, if not where the settings say.
        config_file: The TOML file with the settings.

    Raises:
        BackupError: If nothing was ever stored there.
        SettingsError: If the settings cannot be used.
        StorageError: If the data directory cannot be used.
    """
    directory = load({"data_dir": data_dir}, config_file=config_file).data_dir
    if not (directory / RECORD).exists():
        raise BackupError(
            f"Nothing is stored in {directory}.",
            suggestions=("Name the data directory with --data-dir.",),
        )
    with closing(Database(directory / RECORD)) as database:
        yield database
