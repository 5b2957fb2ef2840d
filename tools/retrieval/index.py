"""Indexes tools, and searches for those that fit a need."""

from __future__ import annotations

import json
import logging
import re
import threading
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from storage.index.embedding_models import understands
from storage.tokenize import tokenize
from tools.core.unicode_safety import encodable
from tools.retrieval.intent import actions_of_tool, name_values, wanted_actions
from tools.retrieval.models import Match, SearchQuery, SearchResult, ToolRecord, spaced
from tools.retrieval.ranking import Duplicates, Inquiry, choose_results, score
from tools.retrieval.vectors import (
    AnalysisCache,
    DensePart,
    Filler,
    SafeCache,
    bundled_parts,
    key_of,
)
from tools.retrieval.words import ANALYSIS, Names, Postings, fields_of, terms_of

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors


MAX_CLAUSES = 8  # maximum clauses of a query that are used; further parts of a long text add little
MIN_TERMS = 2  # minimum distinct terms of a clause; a shorter part belongs to the previous one

_BREAK = re.compile(
    r"(?<=[.!?;])\s+|[\n;]+|(?<=[\u3002\uff01\uff1f\uff1b])"  # the ends of sentences
    r"|(?P<joint>,?\s++(?:and\s+then|and\s+also|and|then|also|as\s+well\s+as|additionally|finally"
    r"|lastly|after\s+that|followed\s+by)\s+|,\s+)",
    re.IGNORECASE,
)


def clauses_of(query: str) -> list[tuple[int, int]]:
    """Returns the start and end of each clause of a query; none if it has only one."""
    clauses: list[tuple[int, int]] = []
    for start, end, goes_on in _parts(query):
        terms = len(set(tokenize(query[start:end])))
        if goes_on and clauses and terms <= MIN_TERMS:
            clauses[-1] = clauses[-1][0], end
        elif terms:
            clauses.append((start, end))
    telling = [
        (start, end) for start, end in clauses if len(set(tokenize(query[start:end]))) >= MIN_TERMS
    ]
    return telling[:MAX_CLAUSES] if len(telling) > 1 else []


def _parts(query: str) -> Iterator[tuple[int, int, bool]]:
    """Yields start and end of each part between breaks, and whether it continues a sentence."""
    start, goes_on = 0, False
    for found in _BREAK.finditer(query):
        if query[start : found.start()].strip():
            yield start, found.start(), goes_on
            goes_on = found["joint"] is not None
        start = found.end()
    if query[start:].strip():
        yield start, len(query), goes_on


MAX_QUERY_CHARS = 4_000  # maximum characters of a query that are read
Admits = Callable[[ToolRecord], bool]
logger = logging.getLogger(__name__)


class ToolIndex:
    """Finds tools by what they do: by words at once, by meaning when vectors are ready.

    Tools can be added and removed at any time, and are never found by outdated texts. Safe to share
    between threads.

    Args:
        cache: Keeps analyses and vectors across restarts, or None.
        embedders: The slower parts; None means the bundled ones.
    """

    def __init__(
        self, *, cache: AnalysisCache | None = None, embedders: Sequence[DensePart] | None = None
    ) -> None:
        self._parts = tuple(bundled_parts() if embedders is None else embedders)
        self._lock = threading.RLock()
        self._slots: dict[str, int] = {}
        self._records: dict[int, ToolRecord] = {}
        self._free: list[int] = []
        self._actions = array("q")  # what the tool of each slot does
        self._tags = _Tags()
        self._servers: defaultdict[frozenset[str], set[int]] = defaultdict(set)  # by their words
        self._postings = Postings()
        self._names = Names()
        self._duplicates = Duplicates()
        self._cache = SafeCache(cache)
        self._filler = Filler(self._parts, self._records, self._lock, self._cache)

    def start(self) -> None:
        """Starts building the slower parts in the background."""
        self._filler.start()

    def close(self) -> None:
        """Ends the work in the background."""
        self._filler.close()

    def build_index(self) -> None:
        """Waits until the slower parts are complete."""
        self._filler.fill()

    def wait(self, quick: float, whole: float) -> None:
        """Waits for vectors that are being computed.

        Args:
            quick: The seconds to wait for cached and quickly computed ones, if many are missing.
            whole: The seconds to wait for all.
        """
        with self._lock:
            is_ready = all(part.is_ready(len(self._postings)) for part in self._parts)
        self._filler.wait(0.0 if is_ready else quick, whole)

    @property
    def share_filled(self) -> float:
        """The share of tools that all parts have; 1 if no vectors are being computed."""
        with self._lock:
            is_filling = self._filler.is_filling
            return min(self.coverage.values(), default=1.0) if is_filling else 1.0

    @property
    def coverage(self) -> dict[str, float]:
        """The share of tools that each slower part has, by its model's id."""
        with self._lock:
            return {part.embedder.model_id: part.share(len(self._postings)) for part in self._parts}

    def __len__(self) -> int:
        return len(self._slots)

    def add_tool(self, record: ToolRecord) -> None:
        """Adds a tool, replacing the one with its id."""
        self.add_tools([record])

    def add_tools(self, records: Iterable[ToolRecord]) -> None:
        """Adds tools, replacing those with the same ids."""
        known = [record.redacted() for record in records]
        for record, terms in zip(known, self._analysed(known), strict=True):
            with self._lock:
                self.remove_tool(record.tool_id)
                self._put(record, terms)
        self._filler.wake()

    def remove_tool(self, tool_id: str) -> bool:
        """Removes a tool; returns whether it existed."""
        with self._lock:
            slot = self._slots.pop(tool_id, None)
            if slot is None:
                return False
            record = self._records.pop(slot)
            self._postings.remove(slot)
            self._names.remove(slot, record)
            self._duplicates.remove(slot)
            self._tags.remove(slot, record)
            self._servers[_words_of_server(record)].discard(slot)
            for part in self._parts:
                part.drop(slot)
            self._free.append(slot)
            return True

    def get_tool(self, tool_id: str) -> ToolRecord | None:
        """Returns the tool with that id, or None."""
        with self._lock:
            slot = self._slots.get(tool_id)
            return None if slot is None else self._records[slot]

    def get_all_tools(self) -> list[ToolRecord]:
        """Returns all tools in the order of addition."""
        with self._lock:
            return [self._records[slot] for slot in self._slots.values()]

    def search_by_tags(self, tags: Iterable[str], match: Match = "any") -> list[ToolRecord]:
        """Returns the tools with any or all of some tags, ignoring case."""
        with self._lock:
            tagged = self._tags.having(tags, match)
            return [self._records[slot] for slot in self._slots.values() if slot in tagged]

    def search(
        self,
        query: SearchQuery,
        *,
        admits: Admits | None = None,
        boosts: Mapping[str, float] | None = None,
    ) -> list[SearchResult]:
        """Returns the tools that fit, best first; those that are not admitted have no influence.

        Tools that the query names come first, then those whose name it begins, then the others by
        words and meaning. A tool without any of the words is found if its meaning is close to the
        query's. Exact duplicates share one result. Boosts are added to the scores of tools, by id.
        """
        asked = encodable(query.query_text[:MAX_QUERY_CHARS])
        text = name_values(asked)
        spans = clauses_of(text)
        texts = [text, *(text[start:end] for start, end in spans)]
        terms = [tuple(dict.fromkeys(tokenize(each))) for each in texts]
        actions = tuple(map(wanted_actions, texts))
        meanings = self._meanings(text, spans)
        with self._lock:
            named = [
                slot
                for words, slots in self._servers.items()
                if words and words.issubset(terms[0])
                for slot in slots
            ]
            tagged = bool(query.tags_filter)
            inquiry = Inquiry(terms, actions, meanings, tagged=tagged, of_servers=named)
            allowed = self._allowed(query, admits)
            # Of tools whose names alone may be known, no use may show.
            lifts = {
                slot: lift
                for each, lift in (boosts or {}).items()
                if (slot := self._slots.get(each)) is not None
                and not self._records[slot].names_only
            }
            scores = score(inquiry, self._postings, self._actions, allowed, lifts)
            mentions = self._names.mentioned(asked)
            if allowed is not None:
                mentions = mentions.within(allowed)
            places = choose_results(scores, mentions, self._records, self._duplicates, query.top_k)
            return list(self._results(places, query, allowed))

    def _results(
        self,
        places: Iterable[tuple[int, float]],
        query: SearchQuery,
        allowed: Collection[int] | None,
    ) -> Iterator[SearchResult]:
        for rank, (slot, value) in enumerate(places, 1):
            if query.min_score is not None and value < query.min_score:
                return
            same = (each for each in self._duplicates.group(slot) if each != slot)
            also = tuple(
                self._records[each].tool_id for each in same if allowed is None or each in allowed
            )
            yield SearchResult(tool=self._records[slot], score=value, rank=rank, also=also)

    def _meanings(
        self, text: str, spans: Sequence[tuple[int, int]]
    ) -> list[tuple[DensePart, Vectors]]:
        """Returns the vectors of a query and its clauses, by each part that has enough tools."""
        found: list[tuple[DensePart, Vectors]] = []
        for part in self._parts:
            with self._lock:
                is_ready = part.is_ready(len(self._postings))
            if not is_ready or not understands(part.embedder, text):
                continue
            try:
                found.append((part, part.embedder.embed_spans(text, spans)))
            except Exception as error:  # noqa: BLE001  # words find tools without the model
                logger.warning("Searched without %s: %s", part.embedder.model_id, error)
        return found

    def _allowed(self, query: SearchQuery, admits: Admits | None) -> dict[int, None] | None:
        """Returns the slots of the tools that may be found; None for all."""
        if not query.tags_filter and admits is None:
            return None
        slots: Iterable[int] = self._slots.values()
        if query.tags_filter:
            slots = sorted(self._tags.having(query.tags_filter, query.match))
        return {slot: None for slot in slots if admits is None or admits(self._records[slot])}

    def _put(self, record: ToolRecord, terms: Mapping[str, float]) -> None:
        if not self._free:
            self._free.append(len(self._actions))
            self._actions.append(0)
        slot = self._free[-1]
        self._duplicates.add(slot, record)  # first, since it may reject the record
        self._free.pop()
        self._slots[record.tool_id] = slot
        self._records[slot] = record
        self._actions[slot] = actions_of_tool(record)
        self._names.add(slot, record)
        self._tags.add(slot, record)
        self._servers[_words_of_server(record)].add(slot)
        if not record.names_only:
            self._postings.add(slot, terms)
            for part in self._parts:
                part.unseen.append(slot)

    def _analysed(self, records: Sequence[ToolRecord]) -> Iterator[Mapping[str, float]]:
        """Yields the weighted terms of tools; several at once come from the cache if possible."""
        fields = [fields_of(record) for record in records]
        keys = [key_of(ANALYSIS, json.dumps(each)) for each in fields]
        kept = self._cache.get(keys) if len(keys) > 1 else {}
        for key, each in zip(keys, fields, strict=True):
            if key in kept:
                yield json.loads(kept[key])
            else:
                terms = terms_of(each)
                self._cache.defer(key, json.dumps(terms).encode())
                yield terms


def _words_of_server(record: ToolRecord) -> frozenset[str]:
    return frozenset(tokenize(spaced(record.server)))


class _Tags:
    """The slots of the tools by tag, ignoring case."""

    def __init__(self) -> None:
        self._slots: defaultdict[str, set[int]] = defaultdict(set)

    def add(self, slot: int, record: ToolRecord) -> None:
        """Adds the tags of a tool."""
        for tag in _folded(record.tags):
            self._slots[tag].add(slot)

    def remove(self, slot: int, record: ToolRecord) -> None:
        """Removes the tags of a tool, and those that no other tool has."""
        for tag in _folded(record.tags):
            self._slots[tag].remove(slot)
            if not self._slots[tag]:
                del self._slots[tag]

    def having(self, tags: Iterable[str], match: Match) -> set[int]:
        """Returns the tools with any or all of some tags; none without tags."""
        tagged = [self._slots.get(tag, set()) for tag in _folded(tags)]
        if not tagged:
            return set()
        return set.union(*tagged) if match == "any" else set.intersection(*tagged)


def _folded(tags: Iterable[str]) -> set[str]:
    return {tag.casefold() for tag in tags}
