"""The bundled cross-encoder, which scores a question and a passage together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from storage.index.embedders import bundled
from storage.index.embedders.base import LazyLoader
from storage.index.embedders.bundled import load_session, load_tokenizer, run_each
from storage.tokenize import is_spaceless

MODEL_FILE = "crossencoder.onnx"
MODEL_SHA256 = "e3aaea591afa84aaed291434989dc818a99208e74d56e4c25f744fd1d53af52a"

# The tokens of question and passage together; later ones are cut, because an answer waits.
MAX_TOKENS = 160

# Maximum tokens per word of an English text: 1.0 to 1.4, compared with 1.5 to 2.6 in German.
PIECES_A_WORD = 1.45


class Reading(NamedTuple):
    """The score of a question and a passage."""

    logit: float  # how well the passage answers: about -11 for not at all, to 9; 0 is undecided
    is_english: bool  # whether they are in English; otherwise the score is less reliable


class CrossEncoder:
    """ms-marco-MiniLM-L12-v2 as int8 ONNX, for English and, less well, for similar languages.

    `assets/make_crossencoder.py` builds the model. It is checked against its SHA-256 and loaded on
    first use, once per process. Can be shared between threads.
    """

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self._model = _model_in(folder)

    def read(self, question: str, passages: Sequence[str]) -> list[Reading | None]:
        """Scores each passage; None if it cannot read the question's script."""
        import numpy as np

        if is_spaceless(question):
            return [None] * len(passages)
        tokenizer, session = self._model()
        pairs = tokenizer.encode_batch([(question, passage) for passage in passages])
        readings: list[Reading | None] = [None] * len(pairs)

        def read(row: int) -> None:
            pair = pairs[row]
            asked = {
                "input_ids": np.array([pair.ids], dtype=np.int64),
                "token_type_ids": np.array([pair.type_ids], dtype=np.int64),
            }
            logit = float(session.run(None, asked)[0][0, 0])
            readings[row] = Reading(logit, _is_english(pair.sequence_ids, pair.word_ids))

        run_each(read, sorted(range(len(pairs)), key=lambda row: -len(pairs[row].ids)))
        return readings


def _is_english(texts: Sequence[int | None], words: Sequence[int | None]) -> bool:
    """Returns whether words are mostly single tokens, given each token's text and word."""
    inside = [each for each in zip(texts, words, strict=True) if each[1] is not None]
    return len(inside) <= PIECES_A_WORD * len(set(inside))


@cache
def _model_in(folder: Path) -> LazyLoader[tuple[Any, Any]]:
    return LazyLoader(partial(_load, folder), "The bundled cross-encoder")


def _load(folder: Path) -> tuple[Any, Any]:
    tokenizer = load_tokenizer(Path(bundled.__file__).parent, MAX_TOKENS)
    return tokenizer, load_session(folder / MODEL_FILE, MODEL_SHA256)
