"""Last programs: what each session ran well last, while the server runs."""

from __future__ import annotations

from collections import OrderedDict

from storage.models import Identity

MOST = 1_000
"""Sessions of which it is kept; those that ran nothing for the longest give way."""


class LastPrograms:
    """Keeps one program a session."""

    def __init__(self) -> None:
        self._programs: OrderedDict[tuple[Identity, str], str] = OrderedDict()

    def keep(self, identity: Identity, session_id: str, code: str) -> None:
        """Keeps a program that ended well, in the place of an earlier one."""
        self._programs[identity, session_id] = code
        self._programs.move_to_end((identity, session_id))
        if len(self._programs) > MOST:
            self._programs.popitem(last=False)

    def get(self, identity: Identity, session_id: str) -> str | None:
        """The program; None where none has run."""
        return self._programs.get((identity, session_id))
