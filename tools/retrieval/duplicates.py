"""The same tool on several servers."""

from __future__ import annotations

import json
from hashlib import sha256

from tools.retrieval.models import ToolRecord

__all__ = ["Duplicates"]


class Duplicates:
    """Groups of tools that have the same name, description and parameters."""

    def __init__(self) -> None:
        self._groups: dict[bytes, dict[int, None]] = {}
        self._prints: dict[int, bytes] = {}

    def add(self, slot: int, record: ToolRecord) -> None:
        """Adds a tool to the group of those that are the same."""
        fingerprint = _fingerprint(record)
        self._prints[slot] = fingerprint
        self._groups.setdefault(fingerprint, {})[slot] = None

    def remove(self, slot: int) -> None:
        """Removes a tool from its group."""
        fingerprint = self._prints.pop(slot)
        del self._groups[fingerprint][slot]
        if not self._groups[fingerprint]:
            del self._groups[fingerprint]

    def group(self, slot: int) -> list[int]:
        """The tool and all that are the same, in the order in which they came."""
        return list(self._groups[self._prints[slot]])


def _fingerprint(record: ToolRecord) -> bytes:
    # What is in quarantine could be anything: it is the same as nothing else.
    own = record.tool_id if record.names_only else ""
    definition = [own, record.bare_name, record.description, record.parameters]
    return sha256(json.dumps(definition, sort_keys=True, default=str).encode()).digest()
