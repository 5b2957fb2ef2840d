"""What is remembered of an embedder: recent queries, and the last failure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from storage.errors import StorageUnavailableError
from storage.index import embedding_models
from storage.index.embedding_models import CACHED_QUERIES, CachingEmbedder


class CountingEmbedder:
    """Counts what it is asked, and fails while it is told to."""

    model_id = "counting"
    unread = ""
    floor = 0.5

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failing = False

    def embed_passages(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        if self.failing:
            raise StorageUnavailableError("out of order", suggestions=("Wait.",))
        return np.ones((len(texts), 1), dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return self.embed_passages([text])[0]


def test_it_is_the_other_one_to_whoever_asks() -> None:
    embedder = CachingEmbedder(CountingEmbedder())
    assert (embedder.model_id, embedder.unread, embedder.floor) == ("counting", "", 0.5)
    assert embedder.embed_passages(["a", "b"]).shape == (2, 1)


def test_recent_queries_are_remembered_and_old_ones_forgotten() -> None:
    counting = CountingEmbedder()
    embedder = CachingEmbedder(counting)
    first = embedder.embed_query("heron")
    assert embedder.embed_query("heron") is first
    for number in range(CACHED_QUERIES - 1):
        embedder.embed_query(f"q{number}")
    embedder.embed_query("heron")
    assert counting.asked.count("heron") == 1
    embedder.embed_query("one more")  # q0 was longest unasked
    embedder.embed_query("heron")
    assert counting.asked.count("heron") == 1
    embedder.embed_query("q0")
    assert counting.asked.count("q0") == 2


def test_a_failure_is_repeated_to_searches_untried_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counting = CountingEmbedder()
    embedder = CachingEmbedder(counting)
    embedder.embed_query("known")
    counting.failing = True
    for query in ("one", "two"):
        with pytest.raises(StorageUnavailableError, match="out of order") as error:
            embedder.embed_query(query)
        assert error.value.suggestions == ("Wait.",)
    assert counting.asked == ["known", "one"]
    assert embedder.embed_query("known").shape == (1,)
    counting.failing = False
    monkeypatch.setattr(embedding_models, "FAILURE_SECONDS", 0)
    assert embedder.embed_query("two").shape == (1,)


def test_passages_that_succeed_end_the_failure() -> None:
    counting = CountingEmbedder()
    embedder = CachingEmbedder(counting)
    counting.failing = True
    with pytest.raises(StorageUnavailableError):
        embedder.embed_query("one")
    counting.failing = False
    embedder.embed_passages(["a"])
    assert embedder.embed_query("one").shape == (1,)
