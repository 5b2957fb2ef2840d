"""What searches showed: a call of one of these tools is a use for what was asked."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.core.audit.redact import redacted_text
from tools.retrieval.fields import encodable

if TYPE_CHECKING:
    from storage.models import Identity

__all__ = ["Shown", "kept_question"]

SEARCHES = 5
"""Searches of a session in which a called tool is looked for."""

SESSIONS = 1_000
"""Sessions whose searches are kept in memory."""

QUESTION_CHARACTERS = 300
"""What is kept of a question."""


@dataclass(frozen=True, slots=True)
class _Search:
    """A search of which no use is known yet.

    Attributes:
        question: What was asked.
        found: The tools that were shown and not called since.
    """

    question: str
    found: set[str]


class Shown:
    """The latest searches of each session; safe to share between threads."""

    def __init__(self) -> None:
        self._searches: OrderedDict[tuple[Identity, str], deque[_Search]] = OrderedDict()
        self._lock = threading.Lock()

    def note(
        self, identity: Identity, session_id: str, question: str, tool_ids: Collection[str]
    ) -> None:
        """Notes what a search showed, until one of the tools is called in the same session.

        Args:
            identity: Who asked.
            session_id: In which session; without one nothing is noted.
            question: What was asked.
            tool_ids: The tools that were shown.
        """
        if not session_id:
            return
        with self._lock:
            searches = self._searches.setdefault((identity, session_id), deque(maxlen=SEARCHES))
            searches.appendleft(_Search(kept_question(question), set(tool_ids)))
            self._searches.move_to_end((identity, session_id))
            if len(self._searches) > SESSIONS:
                self._searches.popitem(last=False)

    def question_for(self, identity: Identity, session_id: str, tool_id: str) -> str | None:
        """The latest question of the session that showed a tool which was called now.

        Each time that a tool is shown counts for one use at most.
        """
        with self._lock:
            for search in self._searches.get((identity, session_id), ()):
                if tool_id in search.found:
                    search.found.discard(tool_id)
                    return search.question
        return None


def kept_question(question: str) -> str:
    """What is remembered of a question: no secret, not too much, and what any disk takes."""
    return encodable(redacted_text(" ".join(question.split()), QUESTION_CHARACTERS))
