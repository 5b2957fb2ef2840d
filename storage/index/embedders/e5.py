"""The bundled embedder of stored texts, which is multilingual, and its tokenizer."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.index.embedders.bundled import (
    DIMENSIONS,
    MiniLMEmbedder,
    embed_each,
    load_session,
    read_bundled,
    shared_model,
)
from storage.tokenize import RARE_LETTERS

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

MODEL_FILE = "e5.onnx"
MODEL_SHA256 = "20077d105d834d5d9fd6e0f51a75d6a77af584df774bfa7db47341522f330651"
TOKENIZER_FILE = "e5_tokenizer.json"
TOKENIZER_SHA256 = "a2354bbb2db0f95134f046460f89a629d98de9d3d9480646a6e19125ccccddf7"
MAX_TOKENS = 512  # the tokens the model was trained on; later ones are cut

BEGIN, END, UNKNOWN = 0, 2, 3  # the ids of tokens without text
SPECIAL = 4  # how many of those there are, before the pieces of words
PENALTY = 10.0  # how much less likely than any piece an unknown character is
CACHED_WORDS = 20_000
# In a library of three languages, more puts unrelated texts in other languages before answers in
# English, and less puts unrelated texts in English before answers in other languages.
FOREIGN = 0.35
CACHED_LETTERS = 32  # letters of the longest words to cache; text without blanks is one long word


class E5Embedder:
    """multilingual-e5-small as int8 ONNX, and MiniLM, which is better at English.

    A vector is that of E5, that of MiniLM and two constants. The cosine of two texts in English is
    a weighted mean of both models' cosines, on the scale of E5. Other texts have no part of MiniLM;
    to a question in English, each is as near as if MiniLM's cosine were `FOREIGN`. A question that
    is not in English is compared by E5 alone; its vector is longer than one, so that the scale is
    the same.

    E5 understands languages in Latin, Greek, Cyrillic, Hebrew, Arabic and Devanagari letters,
    Chinese, Japanese and Korean: the scripts that `assets/make_e5.py` keeps. The files are checked
    against their SHA-256 and loaded on first use, once per process. Can be shared between threads.
    """

    model_id = "multilingual-e5-small-128k+all-MiniLM-L6-v2-aligned"
    unread = RARE_LETTERS
    # On Cranfield, 95 of 100 relevant pairs lie above it, and 63 of 100 unrelated pairs below.
    floor = 0.81

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self._model = shared_model(_load, folder, "The bundled embedder")
        self._english = MiniLMEmbedder()
        # Of what two texts are above unrelated ones, either model says half.
        self._own = 0.5
        self._shared = self._own * (1 - self.floor) / (1 - self._english.floor)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, float32, unit length."""
        own = self._embed([f"passage: {text}" for text in texts], in_background=True)
        return self._join(own, texts, self._english.embed_passages)

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, of unit length if the query is in English."""
        import numpy as np

        own = self._embed([f"query: {text}"], in_background=False)
        if not self._english.is_in_english(text):
            return np.append(own[0] / self._own**0.5, np.zeros(DIMENSIONS + 2, np.float32))
        vector: Vectors = self._join(own, [text], lambda _: self._english.embed_query(text))[0]
        return vector

    def _join(
        self, own: Vectors, texts: Sequence[str], embed: Callable[[list[str]], Vectors]
    ) -> Vectors:
        """Adds the part of MiniLM, which `embed` makes for texts in English, and the constants."""
        import numpy as np

        constant = (1 - self._own - self._shared) ** 0.5
        foreign = constant + FOREIGN * self._shared / constant
        joined = np.zeros((len(texts), 2 * DIMENSIONS + 2), dtype=np.float32)
        joined[:, :DIMENSIONS] = self._own**0.5 * own
        joined[:, -2:] = foreign, (1 - self._own - foreign**2) ** 0.5  # of unit length
        rows = [row for row, text in enumerate(texts) if self._english.is_in_english(text)]
        if rows:
            part = embed([texts[row] for row in rows])
            joined[rows, DIMENSIONS:-2] = self._shared**0.5 * part
            joined[rows, -2:] = constant, 0
        return joined

    def _embed(self, texts: Sequence[str], *, in_background: bool) -> Vectors:
        tokenizer, session = self._model()
        return embed_each(session, [tokenizer.encode(text) for text in texts], in_background)


class UnigramTokenizer:
    """The tokenizer of XLM-RoBERTa: the likeliest pieces of each word (Kudo, 2018).

    The library `tokenizers` needs 270 MB for as many pieces.
    """

    def __init__(self, data: bytes) -> None:
        content = json.loads(data)
        scores: dict[str, float] = content["pieces"]
        numbers = range(SPECIAL, SPECIAL + len(scores))
        self._pieces = dict(zip(scores, zip(scores.values(), numbers, strict=True), strict=True))
        self._characters = str.maketrans(content["characters"])
        self._longest = max(map(len, scores))
        self._unknown = min(scores.values()) - PENALTY
        self._cached = lru_cache(CACHED_WORDS)(self._split)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text's first tokens and of those that begin and end it."""
        cut = text[: MAX_TOKENS * self._longest]  # later characters are in later tokens
        ids = [BEGIN]
        for word in unicodedata.normalize("NFC", cut).translate(self._characters).split():
            ids += (self._cached if len(word) <= CACHED_LETTERS else self._split)(f"▁{word}")
            if len(ids) >= MAX_TOKENS:
                break
        return [*ids[: MAX_TOKENS - 1], END]

    def _split(self, word: str) -> tuple[int, ...]:
        """Finds the pieces with the greatest sum of scores (Viterbi); joins unknown characters."""
        # For each position, the best way to it: its score, where its last piece begins, and its id.
        best = [(0.0, 0, UNKNOWN), *[(float("-inf"), 0, UNKNOWN)] * len(word)]
        for start in range(len(word)):
            score = best[start][0]
            best[start + 1] = max(best[start + 1], (score + self._unknown, start, UNKNOWN))
            for end in range(start + 1, min(len(word), start + self._longest) + 1):
                piece = self._pieces.get(word[start:end])
                if piece is not None and score + piece[0] > best[end][0]:
                    best[end] = (score + piece[0], start, piece[1])
        ids: list[int] = []
        end = len(word)
        while end:
            _, start, number = best[end]
            if number != UNKNOWN or ids[-1:] != [UNKNOWN]:
                ids.append(number)
            end = start
        return tuple(reversed(ids))


def _load(folder: Path) -> tuple[Any, Any]:
    tokenizer = UnigramTokenizer(
        read_bundled(folder / TOKENIZER_FILE, TOKENIZER_SHA256, "tokenizer")
    )
    return tokenizer, load_session(folder / MODEL_FILE, MODEL_SHA256)
