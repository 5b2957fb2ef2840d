from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from server.settings.index import ChromaSettings, EmbedderSettings
from server.settings.sources import load


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8000", "localhost", "ftp://127.0.0.1:8000", "http://", "http://:8000"),
        *("http://127.0.0.1:99999", "http://127.0.0.1:0", "http://[::1", "http://127.0.0.1:8000 "),
        *("http://127.0.0.1:8000\n", "http://ann:secret@127.0.0.1:8000"),
        *("http://127.0.0.1:8000?key=1", "http://127.0.0.1:8000#here"),
    ],
)
def test_what_is_no_plain_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError) as error:
        EmbedderSettings(url=url)
    assert "secret" not in str(error.value)
    with pytest.raises(ValidationError):
        ChromaSettings(url=url)


@pytest.mark.parametrize(
    "url", ["", "http://127.0.0.1:8000", "https://chroma.example", "http://[::1]:8000/"]
)
def test_an_address_is_taken_as_it_is(url: str) -> None:
    assert ChromaSettings(url=url).url == EmbedderSettings(url=url).url == url


def test_a_chroma_server_has_no_path() -> None:
    with pytest.raises(ValidationError, match="may hold no path"):
        ChromaSettings(url="http://127.0.0.1:8000/api")


@pytest.mark.parametrize("key", ["a b", "a\nb", "clé", "\x00"])
def test_a_key_that_cannot_be_sent_is_refused_untold(key: str) -> None:
    with pytest.raises(ValidationError, match="visible ASCII") as error:
        EmbedderSettings.model_validate({"api_key": key})
    assert key not in str(error.value)


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "word2vec"},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"dimensions": -1},
        {"floor": 1},
        {"floor": float("nan")},
        {"folder": "/nowhere/at/all"},
        {"colour": "blue"},
    ],
)
def test_what_no_embedder_can_be_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EmbedderSettings.model_validate(given)


def test_a_folder_is_taken_from_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").mkdir()
    assert EmbedderSettings(folder=Path("~/model")).folder == tmp_path / "model"


def test_every_setting_can_come_from_the_environment(tmp_path: Path) -> None:
    environ = {
        "TOOLCRIB_DATA_DIR": str(tmp_path),
        "TOOLCRIB_EMBEDDER__KIND": "openai",
        "TOOLCRIB_EMBEDDER__URL": "http://127.0.0.1:11434/v1",
        "TOOLCRIB_EMBEDDER__API_KEY": "sk-hidden",
        "TOOLCRIB_EMBEDDER__DIMENSIONS": "256",
        "TOOLCRIB_EMBEDDER__CJK": "false",
        "TOOLCRIB_EMBEDDER__QUERY_PREFIX": "query: ",
        "TOOLCRIB_CHROMA__URL": "http://127.0.0.1:8000",
    }
    settings = load({}, environ=environ)
    embedder = settings.embedder
    assert (embedder.kind, embedder.url) == ("openai", "http://127.0.0.1:11434/v1")
    assert (embedder.dimensions, embedder.cjk) == (256, False)
    assert embedder.query_prefix == "query: "
    assert embedder.api_key.get_secret_value() == "sk-hidden"
    assert settings.chroma.url == "http://127.0.0.1:8000"
    assert "sk-hidden" not in repr(settings)
