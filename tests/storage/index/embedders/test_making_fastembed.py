import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from storage.errors import StorageUnavailableError
from storage.index.embedders import bundled
from storage.index.embedders.base import EmbedderOptions
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.index.embedders.making import FastEmbedEmbedder

pytest.importorskip("fastembed")

MODEL = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model as fastembed wants a model to lie in a folder."""
    folder = tmp_path_factory.mktemp("model")
    files = Path(bundled.__file__).parent
    shutil.copy(files / bundled.MODEL_FILE, folder / "model.onnx")
    shutil.copy(files / bundled.TOKENIZER_FILE, folder / "tokenizer.json")
    config = {"model_max_length": 256, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_a_model_of_a_folder_gives_the_vectors_it_gives_elsewhere(folder: Path) -> None:
    embedder = FastEmbedEmbedder(EmbedderOptions(model=MODEL, folder=folder))
    texts = ["Boil the grains in water.", "The court adjourned.", "heron " * 400]
    # One by one: fastembed would pad them, and the bundled model reads no padding.
    vectors = np.concatenate([embedder.embed_passages([text]) for text in texts])
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    ours = MiniLMEmbedder().embed_passages(texts)
    assert ((vectors * ours).sum(axis=1) > 0.999).all()
    assert int(np.argmax(vectors @ embedder.embed_query("How do I cook rice?"))) == 0


def test_prefixes_are_read_and_are_part_of_the_id(folder: Path) -> None:
    options = EmbedderOptions(model=MODEL, folder=folder)
    plain = FastEmbedEmbedder(options)
    prefixed = FastEmbedEmbedder(
        replace(options, query_prefix="the heron ", passage_prefix="a court ")
    )
    assert prefixed.model_id == f"{plain.model_id} 'the heron ' 'a court '"
    assert np.allclose(
        prefixed.embed_query("sleeps"), plain.embed_query("the heron sleeps"), atol=1e-5
    )
    assert np.allclose(
        prefixed.embed_passages(["sleeps"]), plain.embed_passages(["a court sleeps"]), atol=1e-5
    )


def test_a_model_that_is_not_known_is_named() -> None:
    with pytest.raises(StorageUnavailableError, match="fastembed's model 'no/such' fails"):
        FastEmbedEmbedder(EmbedderOptions(model="no/such")).embed_query("heron")
