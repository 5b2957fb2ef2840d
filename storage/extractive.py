"""Summaries without a model that writes: the most central sentences, in their order.

A sentence is central as much as it is near to all others: the mean cosine of its vector to theirs
(degree centrality, as in LexRank: Erkan and Radev 2004, https://arxiv.org/abs/1109.2128). The next
one taken is central and unlike those taken already (maximal marginal relevance: Carbonell and
Goldstein 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.chunk import sentences
from storage.embed import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

__all__ = ["extract"]

MOST_SENTENCES = 200
"""How many sentences are compared: about two seconds of embedding. Of more, every nth is."""

CENTRALITY = 0.5
"""Weight of being central against being unlike what was taken."""


def extract(texts: Sequence[str], embedder: Embedder, max_characters: int) -> list[str]:
    """The most central sentences of some texts.

    Args:
        texts: What is summarised, in its order.
        embedder: Makes the vectors of the sentences.
        max_characters: What the sentences and the blanks between them may have at most; only a
            first sentence that is longer by itself is cut.

    Returns:
        For each text its sentences that were taken, joined by blanks; empty where none was.

    Raises:
        StorageUnavailableError: If the embedder cannot be had.
    """
    said = _each_once(texts)
    if sum(len(sentence) + 1 for _, sentence in said) > max_characters:
        said = said[:: -(-len(said) // MOST_SENTENCES)]
        vectors = embedder.embed_passages([sentence for _, sentence in said])
        taken = _take([len(sentence) for _, sentence in said], vectors, max_characters)
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


def _take(lengths: Sequence[int], vectors: Vectors, max_characters: int) -> list[int]:
    """The places of sentences that fit together, the most central first."""
    import numpy as np  # noqa: PLC0415  # imported on first use

    near = vectors @ vectors.T
    central = (near.sum(axis=1) - 1) / max(len(lengths) - 1, 1)
    likeness = np.zeros(len(lengths), dtype=np.float32)
    open_to = np.ones(len(lengths), dtype=bool)
    taken: list[int] = []
    room = max_characters
    while open_to.any():
        worth = CENTRALITY * central - (1 - CENTRALITY) * likeness
        best = int(np.where(open_to, worth, -np.inf).argmax())
        if taken and lengths[best] > room:
            open_to[best] = False
            continue
        taken.append(best)
        room -= lengths[best] + 1
        open_to[best] = False
        likeness = np.maximum(likeness, near[best])
    return taken
