"""What the first reply takes from the settings; that it is true, `test_first_reply` shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.opening.changing_lists import changing_lists

SERVERS = "[servers.one]\ncommand = 'one'\n"


def lists(directory: Path, *, config: str = "", **environ: str) -> object:
    file = directory / "config.toml"
    file.write_text(config)
    return changing_lists(None, {"TOOLCRIB_CONFIG": str(file), **environ})


def test_without_other_servers_no_list_changes(tmp_path: Path) -> None:
    assert lists(tmp_path, config="surface = ['full']") == ()


def test_other_servers_change_what_they_are_listed_in(tmp_path: Path) -> None:
    assert lists(tmp_path, config=SERVERS) == ("prompts", "resources")


@pytest.mark.parametrize(
    "config",
    [
        "surface = ['full']\n" + SERVERS,
        SERVERS + "[profiles.small]\nclients = ['*']",
        SERVERS + "enabled = false",
        "servers = 1",
        "no toml",
    ],
)
def test_settings_that_need_more_than_the_file_are_left_to_the_server(
    tmp_path: Path, config: str
) -> None:
    assert lists(tmp_path, config=config) is None


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TOOLCRIB_SERVERS", "{}"),
        ("TOOLCRIB_servers", "{}"),
        ("TOOLCRIB_SURFACE", "full"),
        ("TOOLCRIB_PROFILES", "{}"),
        ("_TOOLCRIB_DEPTH", "3"),
    ],
)
def test_so_are_variables_that_say_otherwise(tmp_path: Path, variable: str, value: str) -> None:
    assert lists(tmp_path, config=SERVERS, **{variable: value}) is None
    assert lists(tmp_path, config=SERVERS, **{variable: ""}) == ("prompts", "resources")


def test_a_file_that_is_named_and_missing_is_left_to_the_server(tmp_path: Path) -> None:
    assert changing_lists(tmp_path / "missing.toml", {}) is None


def test_the_usual_file_need_not_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert changing_lists(None, {}) == ()
