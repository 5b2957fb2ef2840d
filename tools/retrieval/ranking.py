"""Scores every tool for a query by words and meaning, and chooses the results."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from tools.retrieval.intent import reading_actions
from tools.retrieval.models import ToolRecord
from tools.retrieval.vectors import DensePart
from tools.retrieval.words import Mentions, Postings

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors
    from tools.retrieval.vectors import Bools
    from tools.retrieval.words import Floats, Ints


# The share of the embedder's floor that other tools must reach, if the nearest exceeds it.
SIDE = 0.5
CANDIDATES = 100  # maximum candidates for a clause: by its words, and as many by the whole query
FIRST = 64  # tools that are sorted first, before more are requested
# The weight of words, against 1 for meanings, if hardly any word of the query is found.
LEAST_GAIN = 0.15
MOST_GAIN = 0.8  # the weight of words if one tool has all of them
WANTED, UNWANTED = 1.15, 0.85  # factors of tools whose action is wanted, or is another one
NAMED_SERVER = 1.25  # the factor of tools of a server that the query names
# The texts, a query and its clauses, up to which the query's actions count. Of more clauses, each
# wants something else.
FEW_TEXTS = 3
CLAUSE_WEIGHT = 0.3  # the weight of being the best for a clause, against the whole query


@dataclass(frozen=True, slots=True)
class Inquiry:
    """An analysed query."""

    # The distinct terms of the query, then those of each of its clauses.
    terms: Sequence[Sequence[str]]
    actions: Sequence[int]  # what each of these texts wants done, as bits; 0 if unknown
    # The vectors of the same texts, by each part that has enough tools.
    meanings: Sequence[tuple[DensePart, Vectors]]
    tagged: bool = False  # whether the eligible tools were chosen by their tags
    of_servers: Sequence[int] = ()  # the slots of the tools of servers that the query names


def score(
    inquiry: Inquiry,
    postings: Postings,
    actions: Sequence[int],
    allowed: Collection[int] | None,
    boosts: Mapping[int, float],
) -> Floats:
    """Returns the score of each slot, 0 to 1; 0 for a tool that does not fit.

    A tool fits if it has one of the words, or if its meaning is near the query's. The main embedder
    alone can show that; other embedders count only if it or the words find something. An embedder
    finds something if the nearest tool is above its floor, the similarity of unrelated texts; then
    tools not far below the floor are near too. For nonsense nothing is. For tools chosen by tags
    the floor is 0.

    The best tool by words and main embedder scores the larger of two values: the share of words it
    covers, or that embedder's greatest cosine scaled from its floor to 1. The others score in
    proportion. Tools that do what is wanted, by the `actions` of each slot, are preferred, and also
    those of a server that the query names. Only the slots in `allowed` count (None means all), and
    boosts are added last.
    """
    import numpy as np

    size = len(actions)
    slots = np.arange(size) if allowed is None else np.fromiter(allowed, np.int64, len(allowed))
    words = postings.scores(inquiry.terms[0], size)
    whole = _evidence(inquiry, 0, postings, words, None if allowed is None else slots)
    fused = _fuse(whole)
    done = np.array(actions, dtype=np.int64)[slots]
    if len(inquiry.terms) <= FEW_TEXTS:
        _prefer(fused, done, inquiry.actions[0])
    if inquiry.of_servers:
        fused[np.isin(slots, inquiry.of_servers)] *= np.float32(NAMED_SERVER)
    likely = _top(fused)
    clauses = []
    for number in range(1, len(inquiry.terms)):
        places, clause = _clause(inquiry, number, postings, size, slots, likely)
        scores = _fuse(clause)
        _prefer(scores, done[places], inquiry.actions[number])
        clauses.append((places, clause, scores))
    _lift(fused, clauses)
    final = np.zeros(size, dtype=np.float32)
    final[slots] = _settled(fused, whole, tagged=inquiry.tagged)
    for slot, boost in boosts.items():
        if allowed is None or slot in allowed:
            final[slot] += boost
    return np.clip(final, 0.0, 1.0)


def _settled(fused: Floats, whole: _Evidence, *, tagged: bool) -> Floats:
    """Scales scores to the strength of the best tool, with 0 for tools that do not fit."""
    import numpy as np

    fits, nearest = whole.words > 0, 0.0
    embedders = sorted(whole.nearness, key=lambda each: -each.weight)
    if embedders:
        nearest, near = _near(embedders[0], tagged=tagged)
        fits |= near
    sure: Floats = np.where(fits, fused, np.float32(0.0))
    if sure.max(initial=0.0) <= 0:
        return sure
    best = int(sure.argmax())
    strength = max(nearest, _coverage(float(whole.words[best]), whole.most))
    for each in embedders[1:]:
        fits |= _near(each, tagged=tagged)[1]
    settled: Floats = np.where(fits, fused, np.float32(0.0)) * (strength / fused[best])
    return settled


def _near(nearness: _Nearness, *, tagged: bool) -> tuple[float, Bools]:
    """Returns how near the nearest tool is, up to 1, and which tools are near."""
    floor = 0.0 if tagged else nearness.floor
    nearest = (float(nearness.cosines.max(initial=0.0)) - floor) / (1 - floor)
    return nearest, nearness.cosines >= (floor * SIDE if nearest > 0 else math.inf)


def best_first(scores: Floats, records: Mapping[int, ToolRecord]) -> Iterator[int]:
    """Yields the slots with scores above 0, best first; equal scores by id."""
    import numpy as np

    left = np.flatnonzero(scores > 0)
    count = FIRST
    while len(left):
        values = scores[left]
        least = np.partition(values, -count)[-count] if len(left) > count else values.min()
        head = left[values >= least].tolist()
        yield from sorted(head, key=lambda slot: (-scores[slot], records[slot].tool_id))
        left = left[values < least]
        count *= 4


def _evidence(
    inquiry: Inquiry, number: int, postings: Postings, words: Floats, slots: Ints | None
) -> _Evidence:
    """Returns the evidence for one text of the inquiry about some tools; None means all."""
    nearness = []
    for part, rows in inquiry.meanings:
        cosines, known = part.cosines(rows[number], len(words), slots)
        nearness.append(_Nearness(part.weight, part.embedder.floor, cosines, known))
    most = sum(map(postings.idf, inquiry.terms[number]))
    return _Evidence(words if slots is None else words[slots], most, nearness)


def _clause(
    inquiry: Inquiry, number: int, postings: Postings, size: int, slots: Ints, likely: Ints
) -> tuple[Ints, _Evidence]:
    """Returns the evidence for a clause about its best candidates, and their places in `slots`.

    Candidates are the best by the clause's words, and those likely for the whole query.
    """
    import numpy as np

    words = postings.scores(inquiry.terms[number], size)
    places = np.union1d(_top(words[slots]), likely)
    return places, _evidence(inquiry, number, postings, words, slots[places])


def _top(scores: Floats) -> Ints:
    import numpy as np

    places = np.flatnonzero(scores > 0)
    if len(places) <= CANDIDATES:
        return places
    return places[np.argpartition(scores[places], -CANDIDATES)[-CANDIDATES:]]


@dataclass(frozen=True, slots=True)
class _Nearness:
    """The similarity of a text to the tools by one embedder."""

    weight: float  # its weight relative to other embedders
    floor: float  # the cosine below which two texts are unrelated
    cosines: Floats  # the cosine of each tool; at most 0 for one without a vector
    known: Bools | None  # which tools have a vector; None if all have


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The evidence of how well each tool fits one text, the query or a clause of it."""

    words: Floats  # the BM25 score of each tool
    most: float  # the maximum possible BM25 score: the idfs of all the text's terms
    nearness: Sequence[_Nearness]  # the similarities by each embedder


def _fuse(evidence: _Evidence) -> Floats:
    """Returns how well each tool fits a text relative to the others, from 0.

    Word scores are divided by the best and weigh more if the best covers more of the text: if one
    tool has all words, the query is about it; if none has any, it is phrased differently. Cosines
    are scaled between the smallest and the greatest. A tool without an embedder's vector is scored
    by the rest alone, scaled up.
    """
    import numpy as np

    best = float(evidence.words.max(initial=0.0))
    gain = LEAST_GAIN + (MOST_GAIN - LEAST_GAIN) * math.sqrt(_coverage(best, evidence.most))
    fused: Floats = evidence.words * (gain / best if best else 0.0)
    if not evidence.nearness:
        return fused
    total = sum(each.weight for each in evidence.nearness)
    present: Floats | float = 0.0
    for each in evidence.nearness:
        share = each.weight / total
        fused += share * _spread(each)
        present = present + (share if each.known is None else share * each.known)
    scale: Floats = np.float32(gain + 1) / np.asarray(gain + present, dtype=np.float32)
    return fused * scale


def _prefer(scores: Floats, done: Ints, wanted: int) -> None:
    """Raises the scores of tools that do what is wanted, and lowers those that do otherwise.

    If the request wants something read, a tool that reads in another way keeps its score.
    """
    import numpy as np

    if wanted:
        similar = reading_actions() if wanted & reading_actions() else 0
        keeps = (done == 0) | (done & similar != 0)
        factors = np.where(done & wanted, WANTED, np.where(keeps, 1.0, UNWANTED))
        scores *= factors.astype(np.float32)


def _lift(fused: Floats, clauses: Sequence[tuple[Ints, _Evidence, Floats]]) -> None:
    """Lifts the best tool of each clause, as far as its words cover the clause.

    A clause has its candidates as places in `fused`, their evidence, and their scores.
    """
    lifts: dict[int, float] = {}
    for places, clause, scores in clauses:
        if len(places):
            best = int(scores.argmax())
            sure = math.sqrt(_coverage(float(clause.words[best]), clause.most))
            place = int(places[best])
            lifts[place] = max(lifts.get(place, 0.0), sure * float(scores[best]))
    for place, value in lifts.items():
        fused[place] += CLAUSE_WEIGHT * value


def _coverage(score: float, most: float) -> float:
    """Returns the share of a text's words, weighted by idf, that a BM25 score represents."""
    return min(score / most, 1.0) if most > 0 else 0.0


def _spread(nearness: _Nearness) -> Floats:
    """Scales cosines between the smallest and the greatest; 0 for a tool without one."""
    import numpy as np

    cosines, known = nearness.cosines, nearness.known
    present = cosines if known is None else cosines[known]
    low, high = float(present.min(initial=1.0)), float(present.max(initial=-1.0))
    if high < low:  # nothing has a vector
        return np.zeros_like(cosines)
    if high == low:  # a single value is the nearest
        return np.ones_like(cosines) if known is None else known.astype(np.float32)
    spread = (cosines - np.float32(low)) * np.float32(1 / (high - low))
    if known is not None:
        spread[~known] = 0.0
    return spread


BEGUN = 0.9  # minimum score of a tool whose name the query begins; a named one has 1


def choose_results(
    scores: Floats,
    mentions: Mentions,
    records: Mapping[int, ToolRecord],
    duplicates: Duplicates,
    count: int,
) -> list[tuple[int, float]]:
    """Returns the best slots, at most `count`, with scores that never rise.

    Equal scores are ordered by id; of duplicates only the best appears.
    """
    seen: set[int] = set()
    best = _unseen(_ordered(scores, mentions, records), duplicates, seen)
    chosen = list(islice(best, count))
    passing = [max(slots, key=lambda slot: scores[slot]) for slots in mentions.passing if slots]
    fitting = ((slot, float(scores[slot])) for slot in passing if scores[slot] > 0)
    missed = list(_unseen(fitting, duplicates, seen))
    places = _with_last(chosen, missed, set(passing)) if len(chosen) == count else chosen
    falling = accumulate((value for _, value in places), min)
    return [(slot, value) for (slot, _), value in zip(places, falling, strict=True)]


def _with_last(
    chosen: list[tuple[int, float]], missed: list[tuple[int, float]], stay: set[int]
) -> list[tuple[int, float]]:
    """Gives up to half of the places to missed tools; those in `stay` keep theirs."""
    spare = [slot for slot, _ in chosen if slot not in stay]
    missed = missed[: min(len(chosen) // 2, len(spare))]
    leaving = set(spare[len(spare) - len(missed) :])
    stayed = [place for place in chosen if place[0] not in leaving]
    return [*stayed, *sorted(missed, key=lambda place: -place[1])]


def _ordered(
    scores: Floats, mentions: Mentions, records: Mapping[int, ToolRecord]
) -> Iterator[tuple[int, float]]:
    # Of tools with the same name, a callable one comes before one that a file only describes.
    named = sorted(mentions.named, key=lambda slot: records[slot].is_from_file)
    yield from ((slot, 1.0) for slot in named)
    for slot in sorted(mentions.begun, key=lambda slot: (-scores[slot], records[slot].tool_id)):
        yield slot, BEGUN + (1 - BEGUN) * float(scores[slot])
    yield from ((slot, float(scores[slot])) for slot in best_first(scores, records))


def _unseen(
    places: Iterator[tuple[int, float]], duplicates: Duplicates, seen: set[int]
) -> Iterator[tuple[int, float]]:
    for slot, value in places:
        if slot not in seen:
            seen.update(duplicates.group(slot))
            yield slot, value


class Duplicates:
    """Groups of tools with the same name, description and parameters."""

    def __init__(self) -> None:
        self._groups: dict[bytes, dict[int, None]] = {}
        self._prints: dict[int, bytes] = {}

    def add(self, slot: int, record: ToolRecord) -> None:
        """Adds a tool to the group of its duplicates."""
        # A tool in quarantine could be anything, so it has no duplicates.
        own = record.tool_id if record.names_only else ""
        definition = [own, record.bare_name, record.description, record.parameters]
        text = json.dumps(definition, sort_keys=True, default=str)
        fingerprint = sha256(text.encode()).digest()
        self._prints[slot] = fingerprint
        self._groups.setdefault(fingerprint, {})[slot] = None

    def remove(self, slot: int) -> None:
        """Removes a tool from its group."""
        fingerprint = self._prints.pop(slot)
        del self._groups[fingerprint][slot]
        if not self._groups[fingerprint]:
            del self._groups[fingerprint]

    def group(self, slot: int) -> list[int]:
        """Returns the tool and its duplicates, in the order of addition."""
        return list(self._groups[self._prints[slot]])
