"""Keeps events that the record was too slow for in private files, until they can be stored."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from server.hooks.payloads import CLIENTS, HookCall
from storage.errors import StorageUnavailableError
from storage.keeping.atomic import atomic_file
from storage.locks import locked
from storage.models import Identity

FOLDER = "unstored"  # in the data directory
MOST_FILES = 2_000  # that wait; further events are lost

_LOCK = "turn.lock"
_EVENTS = "*.json"


def keep(data_dir: Path, call: HookCall, identity: Identity) -> None:
    """Writes an event, whose text must be free of secrets; raises OSError if that is impossible."""
    folder = data_dir / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sum(1 for _ in folder.iterdir()) >= MOST_FILES:
        raise OSError(f"{MOST_FILES} events already wait in {folder}")
    fields = ("client_id", "event_name", "session", "text", "time")
    said = {name: getattr(call, name) for name in fields}
    said |= {"directory": str(call.directory), "identity": asdict(identity)}
    # Their names sort in the order of the events.
    path = folder / f"{int(call.time * 1e6):020}-{os.getpid()}-{time.monotonic_ns()}.json"
    with atomic_file(path, replace=False) as temporary:
        temporary.write_text(json.dumps(said), encoding="ascii")


def is_waiting(data_dir: Path) -> bool:
    """Returns whether events wait."""
    return any((data_dir / FOLDER).glob(_EVENTS))


def store_kept(data_dir: Path, store: Callable[[HookCall, Identity], None]) -> None:
    """Stores the events that wait, the oldest first, each once.

    A process that dies after storing one leaves its file: `store` must recognize an event that is
    stored already. Raises StorageUnavailableError if the record is busy; the others then wait.
    """
    folder = data_dir / FOLDER
    if not is_waiting(data_dir):
        return
    with locked(folder / _LOCK, wait=True):  # an answer must not overtake its prompt
        for path in sorted(folder.glob(_EVENTS)):
            try:
                said = json.loads(path.read_bytes())
                identity = Identity(**said.pop("identity"))
                said |= {"directory": Path(said["directory"])}
                call = HookCall(**said, client=CLIENTS[said["client_id"]])
                store(call, identity)
            except (StorageUnavailableError, OSError):
                raise
            except Exception:  # noqa: BLE001, S110  # the hook that kept it has logged why
                pass
            path.unlink(missing_ok=True)
