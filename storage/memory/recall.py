"""Finds what earlier sessions of a project say about a prompt, by its words and without a model.

Turns are scored by the rarity of the words that they share with the prompt. A short reply ("the
second one") shares none, so it takes a part of the score of the turn before it. Of each turn, the
user's statements and the most telling sentences of the answer are shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, partial
from heapq import nlargest

from storage.database import Database, View
from storage.index.bounded import clip_line
from storage.index.lexical import idf
from storage.memory.briefing import Line
from storage.memory.cues import (
    is_layout,
    is_offer,
    is_question,
    is_request,
    is_specific,
    kind_of,
    without_marks,
)
from storage.memory.turns import Turn, is_topical, prose_in, read_turns
from storage.models import Identity
from storage.reading.chunk import weigh
from storage.retrieval.query_signals import FUNCTION_WORDS
from storage.tokenize import rough_terms, rough_words

PASSAGES = 2_000  # the newest of the project; older ones are not searched
LEAST = 0.25  # share of a prompt's words, by their weight, that the best turn must have
LEAST_AGAIN = 0.45  # the same, once a session was shown something

_WORDS = 40  # of the prompt; a longer one is a pasted text
_CANDIDATES = 60  # turns that are read closely
_SHOWABLE = 8  # turns that may be shown
_COMPARED = 12  # turns that may replace each
_FOLLOWING = 3  # turns that may follow up on one
_LINES = (300, 240, 200, 160, 160, 130)  # characters of each line
_CHARACTERS = 900  # of all lines
_LEAST_CHARACTERS = 60  # of a line
_OF_BEST = 0.3  # share of the best turn's score that others need
_INSIDE = 0.6  # weight of a word that is only found inside another one
_LONG = 5  # characters of a word that may be found inside another one
_UNKNOWN = 0.5  # weight of a word that no turn has: another was used for the same thing
_LEAST_WORTH = 0.3  # of a sentence


def recall(  # noqa: PLR0913  # each says where to look
    database: Database,
    identity: Identity,
    project: str,
    prompt: str,
    *,
    but: str = "",
    known: str = "",
    least: float = LEAST,
) -> list[Line]:
    """Returns what fits the prompt best, without the session `but` and what is in `known`."""
    words = {
        term: word
        for word in rough_words(prompt)
        if word not in FUNCTION_WORDS
        for term in rough_terms(word)
    }
    words = dict(list(words.items())[:_WORDS])
    with database.read() as connection:
        turns = read_turns(View(connection, identity), project, but, PASSAGES) if words else []
    scores, weights = _score(turns, words)
    if max(scores.values(), default=0.0) < least:
        return []
    lines: list[Line] = []
    room = _CHARACTERS
    for place in _current(turns, scores):
        turn = turns[place]
        size = min(_LINES[len(lines)], room)
        text = clip_line(_excerpt(turn, weights, size, known), size)
        if text and size >= _LEAST_CHARACTERS:
            lines.append(Line("", turn.time, text, scores[place], turn.source))
            room -= len(text)
    return lines


def _score(
    turns: Sequence[Turn], words: Mapping[str, str]
) -> tuple[dict[int, float], dict[str, float]]:
    """Returns the scores of the best turns by their places, and the weight of each term.

    A score of 1 means that a turn has all words of the prompt.
    """
    holders = {term: _holders(turns, term) for term in words}
    weights = {
        term: idf(len(turns), len(held)) * _topicality(words[term])
        for term, held in holders.items()
    }
    rough: defaultdict[int, float] = defaultdict(float)
    for term, held in holders.items():
        for place in held:
            rough[place] += weights[term]
    total = sum(weight if holders[term] else _UNKNOWN * weight for term, weight in weights.items())
    scores: dict[int, float] = {}
    for place in nlargest(_CANDIDATES, rough, key=rough.__getitem__):
        whole = sum(weight for term, weight in weights.items() if term in turns[place].terms)
        inside = sum(
            weight
            for term, weight in weights.items()
            if len(term) >= _LONG and term in turns[place].text and term not in turns[place].terms
        )
        scores[place] = (whole + _INSIDE * inside) / total
    for place in sorted(scores):
        score = scores[place]
        for after in range(place + 1, min(place + 1 + _FOLLOWING, len(turns))):
            if turns[after].session != turns[place].session:
                break
            score *= turns[after].share_of(turns[after - 1])
            own = scores.get(after, 0.0)
            scores[after] = max(own, score + 0.3 * own)
    return scores, weights


def _topicality(word: str) -> float:
    """Returns how likely a word is to be the topic: less for general and for short words."""
    return (1.0 if is_topical(word) else 0.3) * min(1.0, (weigh(word) + 1) / 6)


def _current(turns: Sequence[Turn], scores: dict[int, float]) -> list[int]:
    """Returns the best turns, each in its newest form: what a later session made of it."""
    holders = cache(partial(_holders, turns))  # turns about one thing have words in common
    kept: dict[int, float] = {}
    for place in nlargest(_SHOWABLE, scores, key=scores.__getitem__):
        if len(kept) == len(_LINES) or scores[place] < _OF_BEST * max(scores.values()):
            break
        turn = turns[place]
        held: defaultdict[int, int] = defaultdict(int)
        for term in turn.first_terms:
            for at in holders(term):
                held[at] += len(term) ** 2  # a long word is seldom found by chance
        close = nlargest(_COMPARED, held, key=lambda at: (held[at], at))
        newer = [at for at in close if turns[at].replaces(turn)]
        kept.setdefault(max(newer, default=place), scores[place])
    scores |= kept
    return list(kept)


def _holders(turns: Sequence[Turn], term: str) -> list[int]:
    return [place for place, turn in enumerate(turns) if term in turn.text]


def _excerpt(turn: Turn, weights: Mapping[str, float], size: int, known: str) -> str:
    """Returns the sentences of a turn that tell most, in their order."""
    total = sum(weights.values())
    found: list[tuple[float, int, str]] = []
    for by_user, text in ((True, turn.prompt), (False, turn.answer)):
        for sentence in prose_in(text, typed=by_user):
            bare = without_marks(sentence)
            if not is_layout(sentence) and bare not in known:
                shared = sum(weights.get(term, 0.0) for term in set(rough_terms(bare)))
                worth = shared / total + _worth(bare, by_user=by_user)
                place = len(found) if by_user else -1 - len(found)
                found.append((worth, place, bare))
    chosen: list[tuple[int, str]] = []
    for worth, place, bare in sorted(found, key=lambda each: -each[0]):
        if worth >= _LEAST_WORTH and (len(bare) <= size or not chosen):
            chosen.append((place, bare))
            size -= len(bare) + 3
    asked = [bare for place, bare in sorted(chosen) if place >= 0]
    answered = [bare for place, bare in sorted(chosen, reverse=True) if place < 0]
    return " → ".join(filter(None, (" ".join(asked), " ".join(answered))))


def _worth(sentence: str, *, by_user: bool) -> float:
    """Returns how informative a sentence is, regardless of the prompt."""
    if by_user:
        worth = 0.0 if is_request(sentence) else 0.9
    else:
        worth = -0.2 if is_question(sentence) or is_offer(sentence) else 0.35
    worth += 0.2 if is_specific(sentence) else 0.0
    return worth + (0.3 if kind_of(sentence, by_user=by_user) else 0.0)
