"""Keeps the libraries that Toolcrib uses from reporting on the user and asking for updates."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from storage.errors import StorageError

if TYPE_CHECKING:
    from storage.database import Database

__all__ = ["OPT_OUT", "opt_out", "remove_telemetry_files"]

OPT_OUT = {
    "ANONYMIZED_TELEMETRY": "False",  # chromadb
    "DO_NOT_TRACK": "1",  # the convention that many programs share
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime, which reads it once, when it is imported
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "npm_config_update_notifier": "false",
}
"""Variables of every process that Toolcrib starts, and of its own."""

_REMOVED = "telemetry removed"
_FOLDERS = ("Microsoft", "DeveloperTools", ".onnxruntime")
_DATABASE = "onnxruntime.db"
_FILES = {"deviceid", "deviceid.lock", *(f"{_DATABASE}{end}" for end in ("", "-journal", "-shm", "-wal"))}


def opt_out() -> None:
    """Sets the variables for this process; call it before a library that may report is imported."""
    for name, value in OPT_OUT.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def remove_telemetry_files(database: Database) -> None:
    """Removes the device id and the queue that onnxruntime kept for its reports.

    Earlier versions of Toolcrib let it do so. Done once for each data directory, because other
    programs may use onnxruntime too. Follows no links, and leaves all other files.
    """
    with suppress(OSError, StorageError):
        if database.get_meta(_REMOVED) is not None:
            return
        with suppress(OSError):  # mostly there is nothing
            _remove()
        with database.write() as connection:
            connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?, '1')", (_REMOVED,))


def _remove() -> None:
    import platformdirs

    is_mac = sys.platform == "darwin"
    parents = [platformdirs.user_data_dir() if is_mac else platformdirs.user_cache_dir()]
    with ExitStack() as opened:
        folders = [os.open(parents[0], os.O_RDONLY | os.O_DIRECTORY)]
        opened.callback(os.close, folders[0])
        for name in _FOLDERS:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            folders.append(os.open(name, flags, dir_fd=folders[-1]))
            opened.callback(os.close, folders[-1])
        for name in _FILES.intersection(os.listdir(folders[-1])):
            os.unlink(name, dir_fd=folders[-1])
        for parent, name in zip(reversed(folders[:-1]), reversed(_FOLDERS), strict=True):
            os.rmdir(name, dir_fd=parent)  # fails where anything else is in it
