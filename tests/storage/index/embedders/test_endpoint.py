import logging
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest

from storage.errors import StorageUnavailableError
from storage.index.embedders import endpoint as endpoints
from storage.index.embedders.base import EmbedderOptions
from storage.index.embedders.making import REQUEST_TEXTS, OpenAIEmbedder

KEY = "sk-hidden.0123456789"


def _unit(row: list[float]) -> Any:
    return np.array(row) / np.linalg.norm(row)


def embedder_at(url: str, model: str = "m", **options: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder(EmbedderOptions(url=url, model=model, **options))


def test_texts_become_the_endpoints_vectors_at_unit_length_in_their_order(endpoint: Any) -> None:
    endpoint.backwards = True
    texts = [f"text {number} 白鹭" for number in range(2 * REQUEST_TEXTS + 3)]
    vectors = embedder_at(endpoint.url).embed_passages(texts)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.allclose(vector, _unit(endpoint.vector_of(text)), atol=1e-6)
    assert [len(asked["input"]) for asked in endpoint.asked] == [REQUEST_TEXTS, REQUEST_TEXTS, 3]


def test_a_request_says_what_the_protocol_wants(endpoint: Any) -> None:
    embedder = embedder_at(endpoint.url + "/", api_key=KEY, dimensions=5)
    assert embedder.embed_query("heron").shape == (5,)
    (asked,) = endpoint.asked
    assert asked.pop("headers")["Authorization"] == f"Bearer {KEY}"
    assert asked == {
        "path": "/v1/embeddings",
        "model": "m",
        "input": ["heron"],
        "encoding_format": "float",
        "dimensions": 5,
    }


def test_without_a_key_none_is_sent_and_no_dimensions_are_asked_for(endpoint: Any) -> None:
    embedder_at(endpoint.url).embed_query("heron")
    assert "Authorization" not in endpoint.asked[0]["headers"]
    assert "dimensions" not in endpoint.asked[0]


def test_no_texts_are_no_request(endpoint: Any) -> None:
    assert len(embedder_at(endpoint.url).embed_passages([])) == 0
    assert endpoint.asked == []


def test_prefixes_are_put_before_the_texts_and_are_part_of_the_id(endpoint: Any) -> None:
    embedder = embedder_at(endpoint.url, query_prefix="query: ", passage_prefix="passage: ")
    embedder.embed_query("a")
    embedder.embed_passages(["b", "c"])
    assert [asked["input"] for asked in endpoint.asked] == [
        ["query: a"],
        ["passage: b", "passage: c"],
    ]
    assert embedder.model_id == "openai:m 'query: ' 'passage: '"


def test_whatever_changes_vectors_changes_the_id_and_nothing_else_does() -> None:
    ids = [
        embedder_at("http://one/v1").model_id,
        embedder_at("http://one/v1", dimensions=5).model_id,
        embedder_at("http://one/v1", model="n").model_id,
        embedder_at("http://one/v1", query_prefix="q ", passage_prefix="").model_id,
        embedder_at("http://one/v1", query_prefix="", passage_prefix="q ").model_id,
    ]
    assert len(set(ids)) == len(ids)
    assert embedder_at("http://two/v1", api_key=KEY, timeout=1).model_id == ids[0]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_a_busy_endpoint_is_asked_again(endpoint: Any, status: int) -> None:
    endpoint.reply(status, {"error": "slow down"})
    assert embedder_at(endpoint.url).embed_query("heron").shape == (8,)
    assert len(endpoint.asked) == 2


@pytest.mark.parametrize(
    "wait",
    ["2", format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)],
    ids=["seconds", "date"],
)
def test_it_is_not_asked_before_it_said(endpoint: Any, wait: str) -> None:
    endpoint.reply(429, Retry_After=wait)
    with pytest.raises(StorageUnavailableError, match="answered 429"):
        embedder_at(endpoint.url, timeout=1.5).embed_query("heron")
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("wait", ["soon", "-3", "", "٣", "Sun, 99 Nov 2026 00:00:00 GMT"])
def test_a_wait_that_is_none_is_ours(endpoint: Any, wait: str) -> None:
    endpoint.reply(429, Retry_After=wait.encode("ascii", "replace").decode())
    assert embedder_at(endpoint.url).embed_query("heron").shape == (8,)
    assert endpoints._seconds(wait) == 0


def test_an_endpoint_that_stays_busy_is_given_up_in_time(endpoint: Any) -> None:
    for _ in range(10):
        endpoint.reply(500, b"\xff\xfe out of   order\n\n")
    with pytest.raises(StorageUnavailableError, match=r"answered 500: .* out of order"):
        embedder_at(endpoint.url, timeout=2).embed_query("heron")
    assert 1 < len(endpoint.asked) < 5


def test_an_answer_that_drips_is_given_up(endpoint: Any) -> None:
    endpoint.dripping = True
    with pytest.raises(StorageUnavailableError, match=r"did not respond within 0\.3 s") as error:
        embedder_at(endpoint.url, timeout=0.3).embed_query("heron")
    assert "embedder.timeout" in error.value.suggestions[0]


def test_an_answer_without_an_end_is_given_up(
    endpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_ANSWER_BYTES", 10)
    with pytest.raises(StorageUnavailableError, match="sends an endless response"):
        embedder_at(endpoint.url).embed_query("heron")


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "api_key"), (403, "api_key"), (400, "model"), (404, "url"), (302, "url"), (204, "url")],
)
def test_a_refusal_is_told_at_once_with_what_to_do(endpoint: Any, status: int, advice: str) -> None:
    endpoint.reply(status, b"" if status == 204 else b"no", Location=endpoint.url)
    with pytest.raises(StorageUnavailableError, match=f"answered {status}") as error:
        embedder_at(endpoint.url).embed_query("heron")
    assert f"embedder.{advice}" in error.value.suggestions[0]
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("status", [200, 401, 500])
def test_the_key_is_in_no_error_and_in_no_log(
    endpoint: Any, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for _ in range(5):
        endpoint.reply(status, {"error": f"the key {KEY} is wrong"})
    embedder = embedder_at(endpoint.url, api_key=KEY, timeout=1)
    with pytest.raises(StorageUnavailableError) as error:
        embedder.embed_query("heron")
    assert endpoint.asked[0]["headers"]["Authorization"].endswith(KEY)
    shown = [repr(error.value), error.value.message, *error.value.suggestions, repr(vars(embedder))]
    assert KEY not in " ".join([*shown, caplog.text])


def test_an_endpoint_that_is_gone_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(
        StorageUnavailableError, match=f"{url}/embeddings cannot be reached"
    ) as error:
        embedder_at(url, timeout=1).embed_query("heron")
    assert "embedder.url" in error.value.suggestions[0]


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "nonsense", "http://[::1", "http://\x00"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(StorageUnavailableError):
        embedder_at(url, timeout=1).embed_query("heron")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"\xff\xfe",
        b"[" * 100_000,
        [],
        None,
        {},
        {"data": None},
        {"data": []},
        {"data": [{"embedding": [1.0]}]},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": [], "embedding": [1.0]}]},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": None}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": 1.0}]},
        {"data": [{"index": 0, "embedding": "AACAPw=="}]},
        {"data": [{"index": 0, "embedding": ["one"]}]},
        {"data": [{"index": 0, "embedding": [[1.0]]}]},
        {"data": [{"index": 0, "embedding": [float("nan")]}]},
        {"data": [{"index": 0, "embedding": [float("inf")]}]},
        {"data": [{"index": 0, "embedding": [10**400]}]},
    ],
)
def test_an_answer_that_holds_no_vectors_is_refused(endpoint: Any, body: object) -> None:
    endpoint.reply(200, body)
    with pytest.raises(StorageUnavailableError, match=r"127\.0\.0\.1"):
        embedder_at(endpoint.url).embed_query("heron")
