import sys
import threading
from typing import get_args

import pytest

from storage.errors import StorageUnavailableError
from storage.index.embedders.base import Embedder, EmbedderKind, EmbedderOptions
from storage.index.embedders.making import (
    FastEmbedEmbedder,
    SentenceTransformersEmbedder,
    find_embedder,
    import_extra,
    make_embedder,
)
from storage.index.embedding_models import understands

IDS = {
    "e5": "multilingual-e5-small-128k+all-MiniLM-L6-v2-aligned",
    "minilm": "all-MiniLM-L6-v2-onnx-int8-per-channel",
    "fastembed": "fastembed:BAAI/bge-small-en-v1.5",
    "sentence-transformers": "sentence-transformers:sentence-transformers/all-MiniLM-L6-v2",
    "openai": "openai:text-embedding-3-small",
}


@pytest.mark.parametrize("kind", get_args(EmbedderKind))
def test_each_kind_is_made_without_its_library(kind: EmbedderKind) -> None:
    assert make_embedder(EmbedderOptions(kind=kind)).model_id == IDS[kind]


@pytest.mark.parametrize("kind", ["fastembed", "sentence-transformers", "openai"])
def test_what_is_set_of_a_model_is_the_embedders(kind: EmbedderKind) -> None:
    embedder = make_embedder(
        EmbedderOptions(
            kind=kind,
            model="m",
            query_prefix="q: ",
            passage_prefix="p: ",
            dimensions=256,
            cjk=False,
            floor=0.5,
        )
    )
    cut = "" if kind == "fastembed" else "/256"
    assert embedder.model_id == f"{kind}:m{cut} 'q: ' 'p: '"
    assert (understands(embedder, "鹭"), embedder.floor) == (False, 0.5)


@pytest.mark.parametrize("kind", ["minilm", "e5"])
def test_the_bundled_models_know_themselves(kind: EmbedderKind) -> None:
    plain, told = (
        make_embedder(EmbedderOptions(kind=kind)),
        EmbedderOptions(kind=kind, model="m", floor=0.1),
    )
    assert make_embedder(told).model_id == plain.model_id
    assert make_embedder(told).floor == plain.floor
    assert understands(plain, "鹭") == (kind == "e5")


def test_a_model_of_another_kind_is_found_where_the_settings_describe_it() -> None:
    settings = EmbedderOptions(kind="fastembed", url="http://127.0.0.1:1/v1", model="m")
    for kind in ("minilm", "e5"):
        found = find_embedder(settings, IDS[kind])
        assert found is not None
        assert found.model_id == IDS[kind]
    endpoint = find_embedder(settings, "openai:m")
    assert endpoint is not None
    assert find_embedder(settings, "openai:other") is None
    assert find_embedder(settings, "hash") is None


def test_an_endpoint_that_is_no_longer_named_is_asked_nothing() -> None:
    assert find_embedder(EmbedderOptions(), IDS["openai"]) is None
    assert find_embedder(EmbedderOptions(api_key="k"), IDS["openai"]) is not None


@pytest.mark.parametrize(
    ("embedder", "module", "extra"),
    [
        (FastEmbedEmbedder(EmbedderOptions()), "fastembed", "fastembed"),
        (
            SentenceTransformersEmbedder(EmbedderOptions()),
            "sentence_transformers",
            "sentence-transformers",
        ),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    embedder: Embedder, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not there
    for embed in (embedder.embed_query, lambda text: embedder.embed_passages([text])):
        with pytest.raises(StorageUnavailableError, match=f"needs the module {module}") as error:
            embed("heron")
        assert error.value.suggestions == (f'Run: pip install "toolcrib[{extra}]"',)


def test_a_library_that_is_there_is_imported() -> None:
    assert import_extra("threading", "any") is threading
