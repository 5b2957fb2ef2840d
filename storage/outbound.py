"""Outbound traffic: HTTP clients that callers may replace, and no telemetry."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from storage.errors import StorageError

if TYPE_CHECKING:
    import httpx2

    from storage.database import Database

ClientFactory = Callable[[str], "httpx2.Client"]
"""Makes a client for the host and port of a URL; it follows no redirects."""

OPT_OUT = {
    "ANONYMIZED_TELEMETRY": "False",  # chromadb
    "DO_NOT_TRACK": "1",  # a convention that many programs share
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime, which reads it once, when it is imported
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "npm_config_update_notifier": "false",
}
"""Variables that stop libraries and programs from sending reports or checking for updates."""

_REMOVED = "telemetry removed"
_FOLDERS = ("Microsoft", "DeveloperTools", ".onnxruntime")
_FILES = (
    "deviceid",
    "deviceid.lock",
    *(f"onnxruntime.db{end}" for end in ("", "-journal", "-shm", "-wal")),
)


def plain_client(_url: str) -> httpx2.Client:
    """Returns a client that ignores proxies and other settings of the environment."""
    import httpx2

    return httpx2.Client(trust_env=False)


def opt_out() -> None:
    """Sets the variables of `OPT_OUT`, before a library is imported that may send reports."""
    for name, value in OPT_OUT.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def remove_telemetry_files(database: Database) -> None:
    """Removes the device id and the queue of reports that onnxruntime kept for earlier versions.

    It does so once for each data directory, because other programs may use onnxruntime too. It
    follows no links, leaves all other files, and never raises.
    """
    with suppress(StorageError):  # a disk that cannot be written to
        if database.get_meta(_REMOVED) is not None:
            return
        with suppress(OSError):  # usually there are no such files
            _remove()
        with database.write() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO meta (key, value) VALUES (?, '1')", (_REMOVED,)
            )


def _remove() -> None:
    import platformdirs

    is_mac = sys.platform == "darwin"
    place = platformdirs.user_data_dir() if is_mac else platformdirs.user_cache_dir()
    folders: list[int] = []
    with ExitStack() as opened:
        for name in (os.path.realpath(place), *_FOLDERS):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            folders.append(os.open(name, flags, dir_fd=folders[-1] if folders else None))
            opened.callback(os.close, folders[-1])
        for name in _FILES:
            with suppress(OSError):  # most are missing
                os.unlink(name, dir_fd=folders[-1])
        for parent, name in zip(reversed(folders[:-1]), reversed(_FOLDERS), strict=True):
            os.rmdir(name, dir_fd=parent)  # fails where anything else is in it
