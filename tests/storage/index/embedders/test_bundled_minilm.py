import random
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from storage.errors import StorageUnavailableError
from storage.index.embedders import bundled as module
from storage.index.embedders.bundled import DIMENSIONS, MODEL_FILE, TOKENIZER_FILE, MiniLMEmbedder

FOLDER = Path(module.__file__).parent


def _texts(count: int) -> list[str]:
    chance = random.Random(3)  # noqa: S311  # texts, not secrets
    words = ("river", "bank", "heron", "boat", "court", "judge", "tax", "music", "dance", "code")
    return [" ".join(chance.choices(words, k=chance.randint(1, 60))) for _ in range(count)]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy of the model's files, which is loaded anew."""
    for name in (MODEL_FILE, TOKENIZER_FILE):
        shutil.copy(FOLDER / name, tmp_path)
    return tmp_path


def test_vectors_are_of_unit_length_and_the_promised_form(minilm: MiniLMEmbedder) -> None:
    texts = ["a", "", "   ", "heron " * 2000, "白鹭在河边", "🦢", "\n\n\t", *_texts(20)]
    vectors = minilm.embed_passages(texts)
    assert vectors.shape == (len(texts), 384) == (len(texts), DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    query = minilm.embed_query("heron")
    assert query.shape == (384,)
    assert query.dtype == np.float32


def test_no_texts_give_no_vectors(minilm: MiniLMEmbedder) -> None:
    assert minilm.embed_passages([]).shape == (0, 384)


def test_a_text_has_the_same_vector_alone_and_in_any_company(minilm: MiniLMEmbedder) -> None:
    texts = _texts(25)
    together = minilm.embed_passages(texts)
    for text, vector in zip(texts, together, strict=True):
        assert np.array_equal(minilm.embed_query(text), vector)
    assert np.array_equal(minilm.embed_passages(texts[::-1])[::-1], together)


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("How do I cook rice?", "Boil the grains in water for 12 minutes.", "The court adjourned."),
        ("a cat sleeps", "the kitten is napping", "interest rates rose sharply"),
        ("fix a flat tyre", "repairing a punctured bicycle wheel", "a recipe for onion soup"),
    ],
)
def test_texts_of_like_meaning_are_closer(
    minilm: MiniLMEmbedder, query: str, near: str, far: str
) -> None:
    likeness = minilm.embed_passages([near, far]) @ minilm.embed_query(query)
    assert likeness[0] > likeness[1] + 0.2


def test_only_the_first_tokens_are_read(minilm: MiniLMEmbedder) -> None:
    start = "heron " * 300
    one, two = minilm.embed_passages([start, start + "the court adjourned"])
    assert np.array_equal(one, two)


def test_threads_that_share_a_fresh_embedder_get_what_one_alone_gets(
    minilm: MiniLMEmbedder, files: Path
) -> None:
    texts = _texts(24)
    expected = minilm.embed_passages(texts)
    fresh = MiniLMEmbedder(files)
    found: dict[int, bool] = {}

    def embed(number: int) -> None:
        found[number] = np.array_equal(fresh.embed_query(texts[number]), expected[number])

    threads = [threading.Thread(target=embed, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(len(texts)), True)


@pytest.mark.parametrize(("name", "what"), [(MODEL_FILE, "model"), (TOKENIZER_FILE, "tokenizer")])
def test_a_file_with_another_checksum_is_refused(files: Path, name: str, what: str) -> None:
    damaged = bytearray((files / name).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (files / name).write_bytes(damaged)
    with pytest.raises(StorageUnavailableError, match=f"{what} is damaged: its SHA-256") as error:
        MiniLMEmbedder(files).embed_query("heron")
    assert "Reinstall" in error.value.suggestions[0]


def test_a_missing_model_is_named(files: Path) -> None:
    (files / MODEL_FILE).unlink()
    with pytest.raises(StorageUnavailableError, match=r"minilm\.onnx") as error:
        MiniLMEmbedder(files).embed_query("heron")
    assert "Reinstall" in error.value.suggestions[0]


def test_a_span_means_what_it_means_within_the_whole(minilm: MiniLMEmbedder) -> None:
    text = "send an email to Ann, then tell me whether it will rain in Rome"
    whole, first, second = minilm.embed_spans(text, [(0, 20), (27, len(text))])
    assert np.array_equal(whole, minilm.embed_query(text))
    mail, weather = minilm.embed_passages(["mail to a person", "the weather forecast"])
    assert float(first @ mail) > float(second @ mail) + 0.1
    assert float(second @ weather) > float(first @ weather) + 0.1


def test_a_span_that_is_not_read_has_the_vector_of_the_whole(minilm: MiniLMEmbedder) -> None:
    text = "heron " * 300
    whole, late, none = minilm.embed_spans(text, [(len(text) - 6, len(text)), (0, 0)])
    assert np.array_equal(whole, late)
    assert np.array_equal(whole, none)
    assert minilm.embed_spans("", []).shape == (1, DIMENSIONS)
