"""What can be set of secrets, and what is said of settings that are wrong."""

from pathlib import Path
from typing import Any

import pytest

from server.composition.machine import protected
from server.settings import Settings, SettingsError
from server.settings.sources import explain, load
from tools.sandbox.secrets.secrets import File, KeyringEntry, Variable

PLACE = {"env": "TOKEN", "hosts": ["api.example.com"]}


def loaded(tmp_path: Path, **secret: Any) -> Settings:
    flags = {"data_dir": tmp_path / "data", "root": tmp_path, "secrets": {"api": secret}}
    return load(flags, environ={"TOOLCRIB_CONFIG": ""})


@pytest.mark.parametrize(
    ("given", "header", "query", "form"),
    [
        ({}, "Authorization", "", "Bearer {secret}"),
        ({"header": "authorization"}, "authorization", "", "Bearer {secret}"),
        ({"header": "X-Api-Key"}, "X-Api-Key", "", "{secret}"),
        ({"query": "api_key"}, "", "api_key", "{secret}"),
        ({"format": "token {secret}"}, "Authorization", "", "token {secret}"),
        ({"format": "Basic {base64}"}, "Authorization", "", "Basic {base64}"),
    ],
)
def test_a_secret_is_sent_where_the_settings_say(
    tmp_path: Path, given: dict[str, str], header: str, query: str, form: str
) -> None:
    secret = loaded(tmp_path, **PLACE, **given).secrets["api"].to_secret("api")
    assert (secret.header, secret.query, secret.form) == (header, query, form)


def test_a_value_comes_from_a_variable_a_file_or_the_keyring(tmp_path: Path) -> None:
    hosts = "api.example.com, *.example.org"
    for given, origin in (
        ({"env": "TOKEN"}, Variable("TOKEN")),
        ({"file": str(tmp_path / "t")}, File(tmp_path / "t")),
        ({"keyring": "api/ann/b"}, KeyringEntry("api", "ann/b")),
    ):
        secret = loaded(tmp_path, hosts=hosts, **given).secrets["api"].to_secret("api")
        assert secret.origin == origin
        assert list(map(str, secret.hosts)) == ["api.example.com", "*.example.org"]


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"hosts": ["a.com"]}, "needs one of env, file and keyring"),
        ({**PLACE, "file": "x"}, "needs one of env, file and keyring"),
        ({"env": "A"}, "needs hosts or programs"),
        ({**PLACE, "header": "X", "query": "y"}, "either header or query"),
        ({**PLACE, "header": "Host"}, "The header 'Host' is set for you"),
        ({**PLACE, "header": "Proxy-Authorization"}, "is set for you"),
        ({**PLACE, "header": "X: y"}, "secrets.api.header"),
        ({**PLACE, "format": "Bearer"}, "secrets.api.format"),
        ({**PLACE, "format": "{secret}\n{secret}"}, "secrets.api.format"),
        ({**PLACE, "hosts": ["https://a.com"]}, "Write hosts as host, host:port"),
        ({**PLACE, "hosts": ["a.com."]}, "ends in a dot"),
        ({**PLACE, "hosts": ["*.com"]}, "too many hosts"),
        ({"env": "A", "programs": "npm publish *"}, "both programs and variable"),
        ({**PLACE, "variable": "A"}, "both programs and variable"),
        ({"env": "A", "programs": "*", "variable": "B"}, "has to name one program"),
        ({"env": "A", "programs": "a; b", "variable": "B"}, "has to name one program"),
        ({"env": "A", "programs": "a", "variable": "B", "query": "c"}, "but no hosts"),
        ({"env": "A B", "hosts": ["a.com"]}, "secrets.api.env"),
        ({"keyring": "service/", "hosts": ["a.com"]}, "secrets.api.keyring"),
    ],
)
def test_a_wrong_secret_is_refused_at_the_start(
    tmp_path: Path, given: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(SettingsError) as error:
        loaded(tmp_path, **given)
    assert error.value.message.startswith("secrets.api")
    assert wrong in error.value.message


def test_a_value_that_is_written_into_the_settings_is_not_repeated(tmp_path: Path) -> None:
    for given in ({**PLACE, "value": "ghp_written_here"}, {"env": "ghp written here"}):
        with pytest.raises(SettingsError) as error:
            loaded(tmp_path, **given)
        assert "written" not in error.value.message


def test_the_effective_settings_show_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "ghp_0123456789")
    shown = {row.key: row.value for row in explain(loaded(tmp_path, **PLACE))}
    assert shown["secrets"]["api"]["env"] == "TOKEN"
    assert "ghp_0123456789" not in str(shown)


def test_a_file_with_a_secret_is_protected_wherever_it_lies(tmp_path: Path) -> None:
    settings = loaded(tmp_path, file=str(tmp_path / "token"), hosts=["a.com"])
    assert tmp_path / "token" in protected(settings)
