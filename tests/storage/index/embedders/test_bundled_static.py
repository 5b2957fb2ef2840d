import shutil
from pathlib import Path

import numpy as np
import pytest

from storage.errors import StorageUnavailableError
from storage.index.embedders import bundled as module
from storage.index.embedders.bundled import (
    STATIC_DIMENSIONS,
    STATIC_TOKENIZER_FILE,
    TABLE_FILE,
    StaticEmbedder,
)

FOLDER = Path(module.__file__).parent


@pytest.fixture(scope="module")
def static() -> StaticEmbedder:
    return StaticEmbedder()


def test_vectors_are_of_unit_length_and_those_of_nothing_are_zeros(static: StaticEmbedder) -> None:
    vectors = static.embed_passages(["heron", "", "白鹭在河边", "🦢\0", "heron " * 5000])
    assert vectors.shape == (5, STATIC_DIMENSIONS)
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


def test_vectors_are_nearly_those_of_the_package_that_the_files_came_from(
    static: StaticEmbedder,
) -> None:
    vectors = static.embed_passages(["Compose and send an email", "白鹭在河边", "a  b\tÉcole"])
    assert np.allclose(
        vectors[:, :4],
        [
            [0.0403641, 0.0011274, -0.0789193, 0.0140793],
            [-0.0409099, 0.0143727, -0.0088730, -0.0948731],
            [-0.0749825, -0.0224698, 0.0486906, 0.0591979],
        ],
        atol=1e-3,
    )


@pytest.mark.parametrize("name", [TABLE_FILE, STATIC_TOKENIZER_FILE])
def test_a_damaged_or_missing_file_is_named(tmp_path: Path, name: str) -> None:
    for each in (TABLE_FILE, STATIC_TOKENIZER_FILE):
        shutil.copy(FOLDER / each, tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(StorageUnavailableError, match=name) as error:
        StaticEmbedder(tmp_path).embed_query("heron")
    assert "Reinstall" in error.value.suggestions[0]
    damaged = bytearray((FOLDER / name).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / name).write_bytes(damaged)
    with pytest.raises(StorageUnavailableError, match="is damaged: its SHA-256"):
        StaticEmbedder(tmp_path).embed_query("heron")
