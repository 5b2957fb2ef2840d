"""One question over memory and knowledge, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from storage.memory.models import Entry
from storage.models import IndexStatus, SearchFilter, SearchHit
from storage.retrieval.sources import Source

__all__ = ["AS_ASKED", "UNSAID", "Finding", "Findings", "Inquiry", "Scope"]

AS_ASKED = "as asked"
UNSAID = "nothing in the question says where"
"""Why it was looked for somewhere, where that is not worth telling."""


class Scope(StrEnum):
    """Where an answer is looked for."""

    AUTO = "auto"
    MEMORY = "memory"
    KNOWLEDGE = "knowledge"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """A question as it was asked.

    Attributes:
        query: What to look for.
        top_k: How many findings at most.
        scope: Where to look.
        intent: What it is asked for, such as "recall"; it helps to choose where to look.
        source: The source that it is put to; None means every one.
        sources: All sources, by which findings are told where they come from.
        layers: Only memories of these layers; empty means of any.
        wanted: What narrows it further; entities are names in any spelling.
        session_id: The session that asks.
    """

    query: str
    top_k: int
    scope: Scope = Scope.AUTO
    intent: str = ""
    source: Source | None = None
    sources: tuple[Source, ...] = ()
    layers: tuple[int, ...] = ()
    wanted: SearchFilter = field(default_factory=SearchFilter)
    session_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found: a stored passage, or an entry of the session.

    Attributes:
        origin: Where it comes from: "memory", a source's name, or "documents", "knowledge" or
            "events".
        layer: Its layer of memory, 1 to 4; 0 where it is no memory.
        score: How well it fits, 0 to 1.
        lexical: BM25 of a passage; of an entry the share of the query's words that it has.
        hit: The passage, with its scores.
        entry: The entry of layer 1.
    """

    origin: str
    layer: int
    score: float
    lexical: float
    hit: SearchHit | None = None
    entry: Entry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found, and how.

    Attributes:
        found: Best first, nothing twice; empty where nothing is close enough.
        scope: Where it was looked for in the end.
        why: Why there, in a few words.
        asked: The query as it was put to the index.
        mode: "hybrid", or "lexical" where there are no vectors to ask yet.
        status: How complete the search was.
        unknown_names: Entities asked for that nothing stored is like.
        cached: The earlier query whose answer this is; empty where it was searched anew.
    """

    found: tuple[Finding, ...]
    scope: Scope
    why: str
    asked: str
    mode: str
    status: IndexStatus
    unknown_names: tuple[str, ...] = ()
    cached: str = ""
