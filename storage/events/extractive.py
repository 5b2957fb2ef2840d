"""Extractive summaries: selects the most central sentences, without a language model.

A sentence's centrality is the mean cosine of its vector to all others (degree centrality).
Near-duplicates of selected sentences are skipped, as in LexRank (Erkan and Radev 2004,
https://arxiv.org/abs/1109.2128).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.index.embedders.base import Embedder, scaled_cosine
from storage.reading.chunk import sentences

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


def extract(texts: Sequence[str], embedder: Embedder, max_characters: int) -> list[str]:
    """Extracts the most central sentences of some texts.

    At most `max_characters` with the blanks between them; only a first sentence that is longer by
    itself is cut. Returns for each text its selected sentences, joined by blanks; empty if there
    are none.
    """
    candidates = _each_once(texts)
    if sum(len(sentence) + 1 for _, sentence in candidates) > max_characters:
        candidates = candidates[:: -(-len(candidates) // MOST_SENTENCES)]
        vectors = embedder.embed_passages([sentence for _, sentence in candidates])
        lengths = [len(sentence) for _, sentence in candidates]
        same = scaled_cosine(SAME, embedder.floor)
        selected = _take(lengths, vectors, max_characters, same)
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
