from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from storage.errors import StorageUnavailableError
from storage.index.embedders.static import DIMENSIONS, StaticEmbedder


@pytest.fixture(scope="module")
def static() -> StaticEmbedder:
    return StaticEmbedder()


def test_vectors_are_of_unit_length_and_those_of_nothing_are_zeros(static: StaticEmbedder) -> None:
    vectors = static.embed_passages(["heron", "", "白鹭在河边", "🦢\0", "heron " * 5000])
    assert vectors.shape == (5, DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 1, 1], atol=1e-5)
    assert static.embed_passages([]).shape[0] == 0


def test_texts_of_like_meaning_are_closer(static: StaticEmbedder) -> None:
    near, far = static.embed_passages(["weather forecast", "database query"])
    asked = static.embed_query("will it rain and how warm is it")
    assert float(near @ asked) > float(far @ asked) + 0.1


def test_a_span_is_embedded_as_the_text_that_it_is(static: StaticEmbedder) -> None:
    text = "send an email and read a file"
    spans = static.embed_spans(text, [(0, 13), (18, 29)])
    assert np.allclose(
        spans, static.embed_passages([text, "send an email", "read a file"]), atol=1e-6
    )


def test_only_the_files_of_its_package_are_read(static: StaticEmbedder) -> None:
    static.embed_query("heron")
    assert "wordllama" not in sys.modules


def test_vectors_are_those_of_the_package(
    static: StaticEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logging.basicConfig", lambda **_: None)
    package = importlib.import_module("wordllama")
    folder = Path(package.__file__ or "").parent
    model = package.WordLlama.load(cache_dir=folder, disable_download=True)
    texts = ["Compose and send an email", "a", "白鹭在河边"]
    assert np.allclose(static.embed_passages(texts), model.embed(texts, norm=True), atol=1e-5)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.index.embedders.static.find_spec", lambda _: None)
    with pytest.raises(StorageUnavailableError, match="wordllama is not installed") as error:
        StaticEmbedder().embed_query("heron")
    assert "Reinstall" in error.value.suggestions[0]
