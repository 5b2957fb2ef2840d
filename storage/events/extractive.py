"""Extractive summaries: selects the most central sentences, without a language model.

A sentence's centrality is the mean cosine of its vector to all others (degree centrality). The
vectors are an embedder's, or TF-IDF where there is no time for one.
Near-duplicates of selected sentences are skipped, as in LexRank (Erkan and Radev 2004,
https://arxiv.org/abs/1109.2128).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.index.embedders.base import Embedder, scaled_cosine
from storage.index.lexical import idf
from storage.reading.chunk import sentences
from storage.tokenize import tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

EXTRACTIVE = "extractive"  # the summarizer's name for summaries without a language model

EXTRACT_CHARACTERS = 1_200
"""The length of an extractive summary, which thus stays one chunk with one vector."""

MOST_SENTENCES = 200
"""The sentences to compare, about two seconds of embedding; of more, every nth is used."""

SAME = 0.85  # minimum cosine similarity, in the bundled model, of near-duplicates


def extract(texts: Sequence[str], embedder: Embedder | None, max_characters: int) -> list[str]:
    """Extracts the most central sentences of some texts, without an embedder by their words.

    At most `max_characters` with the blanks between them; only a first sentence that is longer by
    itself is cut. Returns for each text its selected sentences, joined by blanks; empty if there
    are none.
    """
    candidates = _each_once(texts)
    if sum(len(sentence) + 1 for _, sentence in candidates) > max_characters:
        candidates = candidates[:: -(-len(candidates) // MOST_SENTENCES)]
        wanted = [sentence for _, sentence in candidates]
        if embedder is None:
            selected = _take_by_words(wanted, max_characters)
        else:
            vectors = embedder.embed_passages(wanted)
            same = scaled_cosine(SAME, embedder.floor)
            selected = _take(list(map(len, wanted)), vectors, max_characters, same)
        candidates = [candidates[place] for place in sorted(selected)]
    kept: list[list[str]] = [[] for _ in texts]
    for source, sentence in candidates:
        kept[source].append(sentence[:max_characters])
    return [" ".join(each) for each in kept]


def _each_once(texts: Sequence[str]) -> list[tuple[int, str]]:
    """Returns each distinct sentence with the position of the first text that contains it."""
    found: dict[str, tuple[int, str]] = {}
    for source, text in enumerate(texts):
        for sentence in sentences(text):
            found.setdefault(sentence.casefold(), (source, sentence))
    return list(found.values())


def _take(lengths: Sequence[int], vectors: Vectors, max_characters: int, same: float) -> list[int]:
    """Returns the positions of sentences that fit together, the most central first."""
    near = vectors @ vectors.T
    taken: list[int] = []
    room = max_characters
    for place in (-near.sum(axis=1)).argsort(kind="stable"):
        fits = lengths[place] <= room or not taken
        if fits and not (near[place, taken] >= same).any():
            taken.append(int(place))
            room -= lengths[place] + 1
    return taken


def _take_by_words(texts: Sequence[str], max_characters: int) -> list[int]:
    """Does the same by cosines of TF-IDF, which need no numpy."""
    counts = [Counter(tokenize(text)) for text in texts]
    holders = Counter(term for each in counts for term in each)
    vectors = []
    for each in counts:
        weights = {term: many * idf(len(texts), holders[term]) for term, many in each.items()}
        length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        vectors.append({term: weight / length for term, weight in weights.items()})
    total: Counter[str] = Counter()  # the cosine to it is the mean of the cosines to all
    for vector in vectors:
        total.update(vector)
    central = [sum(w * total[term] for term, w in vector.items()) for vector in vectors]
    taken: list[int] = []
    room = max_characters
    for place in sorted(range(len(texts)), key=lambda place: -central[place]):
        near = max(
            (
                sum(w * vectors[other].get(t, 0.0) for t, w in vectors[place].items())
                for other in taken
            ),
            default=0.0,
        )
        if (len(texts[place]) <= room or not taken) and near < SAME:
            taken.append(place)
            room -= len(texts[place]) + 1
    return taken
