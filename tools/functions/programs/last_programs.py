"""Remembers the last successful program of each session while the server runs."""

from __future__ import annotations

from collections import OrderedDict

from storage.models import Identity

MOST = 1_000
"""Maximum remembered sessions; those without a program for the longest are dropped."""


class LastPrograms:
    """Stores one program per session."""

    def __init__(self) -> None:
        self._programs: OrderedDict[tuple[Identity, str], str] = OrderedDict()

    def keep(self, identity: Identity, session_id: str, code: str) -> None:
        """Stores a program that ended well, replacing an earlier one."""
        self._programs[identity, session_id] = code
        self._programs.move_to_end((identity, session_id))
        if len(self._programs) > MOST:
            self._programs.popitem(last=False)

    def get(self, identity: Identity, session_id: str) -> str | None:
        """Returns the session's program, or None."""
        return self._programs.get((identity, session_id))
