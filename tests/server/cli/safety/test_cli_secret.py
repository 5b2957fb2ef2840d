"""`toolcrib secret` keeps values that settings refer to, and never prints one."""

import io
import sys
from pathlib import Path

import pytest

from tests.server.cli.conftest import Command

VALUE = "kept-value-of-ann"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{VALUE}\n"))


@pytest.mark.usefixtures("typed")
def test_a_secret_from_stdin_is_kept_listed_and_removed_without_being_printed(cli: Command) -> None:
    ended = cli("secret", "set", "gh", "--file")
    assert (ended.code, VALUE in ended.out) == (0, False)
    path = Path(ended.out.removeprefix("Kept gh in ").partition(" (mode 600)")[0])
    assert (path.read_text(), path.stat().st_mode & 0o777) == (VALUE, 0o600)
    assert cli("secret", "list").out == f"gh  in {path}\n"
    assert cli("secret", "remove", "gh").out == "Removed gh.\n"
    assert cli("secret", "list").out.startswith("No secret is kept.")


@pytest.mark.usefixtures("typed")
def test_without_a_keyring_nothing_is_kept_and_the_next_step_is_told(
    cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    ended = cli("secret", "set", "gh")
    assert ended.code == 1
    assert "pip install 'toolcrib[keyring]'" in ended.err
    assert "toolcrib secret set gh --file" in ended.err
    assert cli("secret", "list").out.startswith("No secret is kept.")


def test_a_server_shows_the_reference_and_its_error_the_remedy(cli: Command, work: Path) -> None:
    config = work / "config.toml"
    config.write_text(
        f"root = '{work}'\n"
        '[servers.away]\nurl = "http://127.0.0.1:9/mcp"\ntoken = "${keyring:none}"\n'
        '[servers.plain]\nurl = "http://127.0.0.1:9/mcp"\ntoken = "plain-token-1"\n'
    )
    shown = cli("config", "get", "servers", "--config", str(config)).out
    assert '"token": "${keyring:none}"' in shown
    assert "plain-token-1" not in shown
    checked = cli("doctor", "--json", "--config", str(config)).out
    assert "toolcrib secret set none" in checked


def test_our_endpoint_does_not_start_without_its_token(cli: Command, work: Path) -> None:
    config = work / "config.toml"
    config.write_text(f"root = '{work}'\n[http]\ntoken = \"${{keyring:none}}\"\n")
    ended = cli("serve", "--transport", "http", "--config", str(config))
    assert ended.code == 1
    assert "http.token names ${keyring:none}" in ended.err
