"""Summaries without a model that writes: the most central sentences, in their order.

A sentence is central as much as it is near to all others: the mean cosine of its vector to theirs
(degree centrality, and what is nearly said already passed over, as in LexRank: Erkan and Radev
2004, https://arxiv.org/abs/1109.2128).
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

EXTRACTIVE = "extractive"
"""The summarizer where no model wrote."""

EXTRACT_CHARACTERS = 1_200
"""Length of an extractive summary: it stays one chunk, and so one vector."""

MOST_SENTENCES = 200
"""How many sentences are compared: about two seconds of embedding. Of more, every nth is."""

SAME = 0.85
"""Cosine, by the bundled model, from which two sentences say nearly the same."""


def extract(texts: Sequence[str], embedder: Embedder, max_characters: int) -> list[str]:
    """The most central sentences of some texts.

    Args:
        texts: What is summarised, in its order.
        embedder: Makes the vectors of the sentences.
        max_characters: What the sentences and the blanks between them may have at most; only a
            first sentence that is longer by itself is cut.

    Returns:
        For each text its sentences that were taken, joined by blanks; empty where none was.
    """
    said = _each_once(texts)
    if sum(len(sentence) + 1 for _, sentence in said) > max_characters:
        said = said[:: -(-len(said) // MOST_SENTENCES)]
        vectors = embedder.embed_passages([sentence for _, sentence in said])
        lengths = [len(sentence) for _, sentence in said]
        same = scaled_cosine(SAME, embedder.floor)
        taken = _take(lengths, vectors, max_characters, same)
        said = [said[place] for place in sorted(taken)]
    kept: list[list[str]] = [[] for _ in texts]
    for source, sentence in said:
        kept[source].append(sentence[:max_characters])
    return [" ".join(each) for each in kept]


def _each_once(texts: Sequence[str]) -> list[tuple[int, str]]:
    """Every sentence with the place of its text; one that is repeated counts at its first."""
    found: dict[str, tuple[int, str]] = {}
    for source, text in enumerate(texts):
        for sentence in sentences(text):
            found.setdefault(sentence.casefold(), (source, sentence))
    return list(found.values())


def _take(lengths: Sequence[int], vectors: Vectors, max_characters: int, same: float) -> list[int]:
    """The places of sentences that fit together, the most central first."""
    near = vectors @ vectors.T
    taken: list[int] = []
    room = max_characters
    for place in (-near.sum(axis=1)).argsort(kind="stable"):
        fits = lengths[place] <= room or not taken
        if fits and not (near[place, taken] >= same).any():
            taken.append(int(place))
            room -= lengths[place] + 1
    return taken
