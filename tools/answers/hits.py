"""The result of a search: the hits with their scores, and how complete the search was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import FiniteFloat
from typing_extensions import TypedDict

from storage.models import (
    ContextType,
    Entry,
    IndexStatus,
    MemoryLayer,
    SearchHit,
    SearchResult,
    utc,
)
from storage.retrieval.routing import AS_ASKED, UNSAID, Scope, origin_of
from storage.retrieval.snippets import Passage, snippets
from storage.tokenize import terms_of, tokenize
from tools.core.result import OmitNone, ToolModel

if TYPE_CHECKING:  # loaded on first use
    from storage.retrieval.ranking import UnifiedHit
    from storage.retrieval.unified import UnifiedResult

NOTHING = "Nothing stored fits."

SHOWN = 600
"""Characters of a hit shown to the model: enough for 95 % of the answers in long passages."""

BRIEF = 240  # characters of a call or message of the session: the model has already seen it whole

KINDS = frozenset({"documents", "knowledge", "events", "people"})
"""Origins already implied by the kind of a hit."""


class Hit(ToolModel):
    """A context that was found, with its scores.

    Attributes:
        id: Stable ID of the context, or "entry-" and a number.
        context_type: Its kind: "profile" or "entity", which retrieve_profile_context returns (an
            entity by its title); "call" or "message" for entries of this session.
        origin: Its origin: "memory", a source's name, or "documents", "knowledge",
            "events", "people".
        layer: Its layer of memory, "l1" to "l4"; absent if it is not a memory.
        position: Its position among the pieces of the text, from 0.
        raw_type: Type of its source.
        raw_id: Name of its source.
        title: The source's title.
        heading: The headings above it.
        content: The text; one or two lines of a call or message.
        shown: The sentences that match the question best; absent if that is the whole text.
        entities: Names it is about.
        event_time: Its date, ISO 8601, UTC.
        time_bucket: An event's second, or the day, week or month that a summary covers.
        hierarchy_level: 1, 2 or 3 for the summary of a day, a week or a month.
        score: Probability that it answers the question, 0 to 1, comparable between searches.
        dense: Cosine similarity; absent while the chunk is not embedded.
        lexical: BM25 score; for a call or message the share of the query's words it contains.
        surroundings: How well its neighboring turns, session and date match, or its closeness to
            the entities in the query, 0 to 1; absent if none of them counts.
        matched: The query's words that it contains.
    """

    id: str
    context_type: str
    origin: str
    layer: OmitNone[str]
    position: int
    raw_type: str
    raw_id: str
    title: str
    heading: str
    content: str
    shown: OmitNone[str] = None
    entities: list[str]
    event_time: str
    time_bucket: str
    hierarchy_level: int
    score: FiniteFloat
    dense: OmitNone[FiniteFloat]
    lexical: FiniteFloat
    surroundings: OmitNone[FiniteFloat]
    matched: list[str]

    @classmethod
    def of(cls, hit: SearchHit) -> Hit:
        """Converts a search hit; rounds scores to four digits."""
        context, chunk = hit.context, hit.chunk
        return cls.from_attributes(
            context,
            origin=origin_of(context, ()),
            layer=_layer(context.memory_layer),
            position=chunk.position,
            heading=chunk.heading,
            content=chunk.content,
            shown=None,
            event_time=utc(context.event_time).isoformat(),
            score=round(hit.score, 4),
            dense=None if hit.dense is None else round(hit.dense, 4),
            lexical=round(hit.lexical, 4),
            surroundings=None if hit.surroundings is None else round(hit.surroundings, 4),
            matched=hit.matched_terms,
        )

    @classmethod
    def of_unified(cls, hit: UnifiedHit, query: str) -> Hit:
        """Converts a hit on a passage or on an entry of the session."""
        if hit.passage is not None:
            update = {"origin": hit.origin, "score": round(hit.score, 4)}
            return cls.of(hit.passage).model_copy(update=update)
        if hit.entry is None:
            raise ValueError("A hit is a passage or an entry.")
        return cls._of_entry(hit.entry, hit, query)

    @classmethod
    def _of_entry(cls, entry: Entry, hit: UnifiedHit, query: str) -> Hit:
        title, _, content = entry.text.partition("\n")
        terms = set(tokenize(entry.text))
        matched = [word for term, word in terms_of(query).items() if term in terms]
        return cls(
            id=f"entry-{entry.seq}",
            context_type=entry.kind,
            origin=hit.origin,
            layer=_layer(hit.layer),
            position=0,
            raw_type="",
            raw_id="",
            title=title,
            heading="",
            content=_brief(content, matched),
            entities=[],
            event_time=utc(entry.time).isoformat(),
            time_bucket="",
            hierarchy_level=0,
            score=round(hit.score, 4),
            dense=None,
            lexical=round(hit.lexical, 4),
            surroundings=None,
            matched=list(dict.fromkeys(matched)),
        )


class Coverage(ToolModel):
    """How much of the store can be searched by meaning.

    Attributes:
        total: Number of stored chunks.
        embedded: Chunks with a vector; the rest can be found only by words.
        problem: Why embedding is stalled, or empty.
        next_embedded: Chunks with a vector of the embedder that takes over once it has all; absent
            if there is none.
        rough: Other chunks that can be found by a rough vector; absent if there are none.
    """

    total: int
    embedded: int
    problem: str = ""
    next_embedded: OmitNone[int] = None
    rough: OmitNone[int] = None

    @classmethod
    def of(cls, status: IndexStatus) -> Coverage:
        """Converts the indexer's status."""
        return cls.from_attributes(status, rough=status.rough or None)

    def to_text(self) -> str:
        """Formats it as one line; empty when all is embedded and no new embedder is at work."""
        parts = [self.problem] if self.embedded >= self.total else [self._missing()]
        if self.next_embedded is not None:
            parts.append(f"{self.next_embedded} of {self.total} embedded again by another model.")
        return " ".join(filter(None, parts))

    def _missing(self) -> str:
        why = f" ({self.problem})" if self.problem else ""
        rough = f", {self.rough} more found roughly by meaning" if self.rough else ""
        found = self.embedded + (self.rough or 0)
        rest = "; the rest is found by words" if found < self.total else ""
        return f"{self.embedded} of {self.total} chunks embedded{why}{rough}{rest}."


class Retrieved(ToolModel):
    """The hits, best first.

    Attributes:
        mode: "hybrid", "lexical" (nothing is embedded yet) or "listing" (no query).
        hits: Likely answers, best first; may be empty.
        coverage: How complete the search was.
        unknown_entities: Requested names that resemble nothing in the store.
        nearest: The nearest passages if there are no hits: one hardly answers; several, outside
            English, may. Absent if there are none.
    """

    mode: str
    hits: list[Hit]
    coverage: Coverage
    unknown_entities: list[str]
    nearest: OmitNone[list[Hit]] = None

    @classmethod
    def of(cls, result: SearchResult, query: str) -> Retrieved:
        """Converts a search result."""
        return cls(
            mode=result.mode,
            hits=_with_shown([Hit.of(hit) for hit in result.hits], query),
            coverage=Coverage.of(result.status),
            unknown_entities=list(result.unknown_names),
            nearest=_with_shown(list(map(Hit.of, result.nearest)), query) or None,
        )

    def to_text(self) -> str:
        """Formats the hits, each with its source, scores and text."""
        unknown = ", ".join(repr(name) for name in self.unknown_entities)
        head = [
            self.summary(),
            f"No stored name resembles {unknown}." if unknown else "",
            self.coverage.to_text(),
        ]
        blocks = [" ".join(filter(None, head))]
        blocks.extend(
            _block(f"[{rank}]", hit, self.mode) for rank, hit in enumerate(self.hits, start=1)
        )
        near = self.nearest or []
        mark = "Unsure if it answers:" if len(near) > 1 else "Nearest, which hardly answers:"
        blocks.extend(_block(mark, hit, self.mode) for hit in near)
        return "\n\n".join(blocks)

    def summary(self) -> str:
        """Returns the number of hits, in a few words."""
        if self.hits:
            return f"{len(self.hits)} hit{'' if len(self.hits) == 1 else 's'} ({self.mode})"
        return "Nothing stored fits." if self.mode == "listing" else NOTHING


def _with_shown(hits: list[Hit], query: str) -> list[Hit]:
    """Adds the best sentences to each hit."""
    shown = snippets(query, list(map(_passage, hits)), SHOWN)
    return [
        hit if text in {"", hit.content} else hit.model_copy(update={"shown": text})
        for hit, text in zip(hits, shown, strict=True)
    ]


def _layer(number: int) -> str | None:
    return MemoryLayer(number).label if number else None


def _passage(hit: Hit) -> Passage:
    file = hit.raw_id if hit.raw_type == "file" else ""
    return Passage.of(hit.content, hit.title, hit.heading, file)


def _block(mark: str, hit: Hit, mode: str) -> str:
    place = " > ".join(filter(None, _passage(hit).place))
    lines = [" ".join(filter(None, (mark, place, _origin(hit))))]
    if mode != "listing":
        dense = "" if hit.dense is None else f", dense {hit.dense:.2f}"
        around = "" if hit.surroundings is None else f", surroundings {hit.surroundings:.2f}"
        matched = f"; matched: {', '.join(hit.matched)}" if hit.matched else ""
        lines.append(f"score {hit.score:.2f}{dense}, lexical {hit.lexical:.2f}{around}{matched}")
    return "\n".join([*lines, hit.shown or hit.content])


def _origin(hit: Hit) -> str:
    """Returns its name in other calls, and its origin."""
    source = ": ".join(filter(None, (hit.raw_type, hit.raw_id)))
    kept = f"memory {hit.layer}" if hit.layer else ""
    named = kept or ("" if hit.origin in KINDS else hit.origin)
    if hit.context_type == ContextType.PROFILE:
        return '(retrieve_profile_context operation="get_profile")'
    if hit.context_type == ContextType.ENTITY:
        return f'(retrieve_profile_context operation="find_entity" entity_name="{hit.title}")'
    if hit.context_type == ContextType.DOCUMENT:
        return f"({', '.join(filter(None, (named, source)))})"
    parts = (named, f"{hit.context_type} {hit.id}", hit.time_bucket or hit.event_time, source)
    return f"({', '.join(filter(None, parts))})"


ADVICE = "Ask in other words, or without filters."
ADVICE_WHERE_NARROWED = (
    "Ask in other words, or everywhere: scope all, without layer, source or filters."
)


class FittingSkill(TypedDict):
    """A skill that may help with the question.

    Attributes:
        name: Its name for load_skill.
        description: Its purpose.
    """

    name: str
    description: str


class Answer(Retrieved):
    """The result of a query over memory and knowledge.

    Attributes:
        scope: What was searched: memory, knowledge or all.
        why: Why that scope.
        asked: The query as searched, if it was completed with an earlier question of this session.
        cached: The recent query whose cached answer this is.
        skills: Skills for the task in the query.
    """

    scope: str
    why: str
    asked: OmitNone[str]
    cached: OmitNone[str]
    skills: OmitNone[list[FittingSkill]] = None

    @classmethod
    def of_unified(cls, result: UnifiedResult, query: str) -> Answer:
        """Converts a result over memory and knowledge; `query` is the original question."""
        hits, nearest = (
            _with_shown([Hit.of_unified(hit, result.query) for hit in found], result.query)
            for found in (result.hits, result.nearest)
        )
        return cls(
            mode=result.mode,
            hits=hits,
            coverage=Coverage.of(result.status),
            unknown_entities=list(result.unknown_names),
            nearest=nearest or None,
            scope=result.scope,
            why=result.why,
            asked=None if result.query == query else result.query,
            cached=result.cached or None,
        )

    def summary(self) -> str:
        """Returns the number of hits, and how they were found if that is not obvious."""
        parts = [super().summary().removesuffix(".")]
        if self.scope != Scope.ALL or self.why not in {AS_ASKED, UNSAID}:
            parts.append(f"looked in {self.scope}: {self.why}")
        if self.asked:
            parts.append(f"asked as {self.asked!r}")
        if self.cached:
            parts.append(f"the same answer as to {self.cached!r} before: nothing has changed")
        loaded = (f'load_skill(name="{each["name"]}")' for each in self.skills or ())
        fitting = f" A skill may help: {', '.join(loaded)}." if self.skills else ""
        text = f"{'; '.join(parts)}.{fitting}"
        if self.hits:
            return text
        return f"{text} {ADVICE if self.scope == Scope.ALL else ADVICE_WHERE_NARROWED}"


def _brief(text: str, matched: Sequence[str]) -> str:
    """Shortens a call or message to a line or two around the first matching word."""
    plain = " ".join(text.split())
    if len(plain) <= BRIEF:
        return plain
    places = [plain.casefold().find(word.casefold()) for word in matched]
    first = min((place for place in places if place >= 0), default=0)
    start = 0 if first < BRIEF // 2 else plain.rfind(" ", 0, first - BRIEF // 4) + 1
    shown = (
        plain[start : start + BRIEF].rsplit(" ", 1)[0]
        if start + BRIEF < len(plain)
        else plain[start:]
    )
    return f"{'… ' if start else ''}{shown}{' …' if start + BRIEF < len(plain) else ''}"
