"""The table of clients: where each is found, and which of its files is written."""

import re
from pathlib import Path

import pytest

from server.clients.client import Client, placed
from server.clients.dialects import client_of
from server.clients.table import CLIENTS, client_named, found_clients

ALL = pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@ALL
def test_a_client_is_found_by_what_it_leaves_in_the_home_directory(
    client: Client, home: Path
) -> None:
    assert list(found_clients({})) == []
    placed(client.markers[-1], {}).mkdir(parents=True)
    assert client in found_clients({})


@ALL
def test_a_client_is_known_by_each_of_its_names(client: Client) -> None:
    assert re.fullmatch(r"[a-z-]+", client.name)
    for name in (client.name, client.title, client.title.upper(), *client.aliases):
        assert client_named(name) is client


@ALL
def test_its_file_is_recognised_by_its_path(client: Client, home: Path) -> None:
    file = client.file_to_write({}, None)
    assert file is not None
    shared = {"cline-cli": "cline"}  # one form and one name of file
    assert client_of(file, {}).name == shared.get(client.name, client.name)


@ALL
def test_the_file_that_exists_is_written_and_else_the_first(client: Client, home: Path) -> None:
    for project in (None, home / "project"):
        patterns = client.user if project is None else client.project
        if not patterns:
            continue
        first = client.file_to_write({}, project)
        assert first is not None
        writable = [each for each in patterns if not client.written or each in client.written]
        last = placed(writable[-1], {}) if project is None else project / writable[-1]
        last.parent.mkdir(parents=True, exist_ok=True)
        last.touch()
        assert client.file_to_write({}, project) == last


def test_variables_move_the_files_of_clients(home: Path) -> None:
    environ = {"CODEX_HOME": "/c", "XDG_CONFIG_HOME": "/x", "CLAUDE_CONFIG_DIR": "/d"}
    files = {name: CLIENTS[name].file_to_write(environ, None) for name in CLIENTS}
    assert files["codex"] == Path("/c/config.toml")
    assert files["opencode"] == Path("/x/opencode/opencode.json")
    assert files["claude-code"] == Path("/d/.claude.json")
