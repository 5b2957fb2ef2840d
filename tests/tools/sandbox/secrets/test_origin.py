"""Values are read at each use, from where nobody else can read them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tools.core.errors import UnavailableError
from tools.sandbox.secrets.secrets import File, KeyringEntry, Secret, Secrets, Variable


@pytest.fixture
def private(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first-value\n")
    path.chmod(0o600)
    return path


def test_a_variable_that_is_missing_is_named() -> None:
    assert Variable("TOKEN").read({"TOKEN": "a"}) == "a"
    for environ in ({}, {"TOKEN": ""}):
        with pytest.raises(UnavailableError, match="TOKEN is not set"):
            Variable("TOKEN").read(environ)


def test_a_file_is_read_at_each_use(private: Path) -> None:
    secrets = Secrets([Secret(name="a", origin=File(private))])
    secret = Secret(name="a", origin=File(private))
    assert secrets.read(secret) == "first-value"
    private.write_text("second-value\n")
    assert secrets.read(secret) == "second-value"
    assert secrets.redaction.text("first-value second-value") == "[secret:a] [secret:a]"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o601])
def test_a_file_that_others_can_use_is_refused(private: Path, mode: int) -> None:
    private.chmod(mode)
    with pytest.raises(UnavailableError, match=f"mode {mode:03o}") as error:
        File(private).read({})
    assert error.value.next_actions == (f"The user runs: chmod 600 {private}.",)


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    with pytest.raises(UnavailableError, match="is not a file"):
        File(pipe).read({})
    with pytest.raises(UnavailableError, match="cannot be read: Is a directory"):
        File(tmp_path).read({})
    with pytest.raises(UnavailableError, match="cannot be read: No such file"):
        File(tmp_path / "none").read({})


@pytest.mark.parametrize(
    "value", ["", "short", "1234567", "line\nend-of-it", "x" * 8_001, "nul\0nul-nul"]
)
def test_a_value_that_could_not_be_taken_out_is_refused(private: Path, value: str) -> None:
    private.write_text(value)
    with pytest.raises(UnavailableError, match="The secret 'a' has") as error:
        Secrets().read(Secret(name="a", origin=File(private)))
    assert not value or value not in str(error.value)


def test_the_keyring_is_asked_for_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring = pytest.importorskip("keyring", reason="the extra keyring is not installed")
    (tmp_path / "kept_in_memory.py").write_text(
        "from keyring.backend import KeyringBackend\n"
        "class Keyring(KeyringBackend):\n"
        "    priority = 1\n"
        "    def get_password(self, service, username):\n"
        "        return 'kept-value' if (service, username) == ('api', 'a/b') else None\n"
        "    def set_password(self, *given): raise NotImplementedError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    before = keyring.get_keyring()
    keyring.set_keyring(keyring.core.load_keyring("kept_in_memory.Keyring"))
    try:
        assert KeyringEntry("api", "a/b").read({}) == "kept-value"
        with pytest.raises(UnavailableError, match="no entry api/b"):
            KeyringEntry("api", "b").read({})
        keyring.set_keyring(keyring.core.load_keyring("keyring.backends.fail.Keyring"))
        with pytest.raises(UnavailableError, match="the keyring cannot be used"):
            KeyringEntry("api", "b").read({})
    finally:
        keyring.set_keyring(before)


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(UnavailableError, match="keyring is not installed") as error:
        KeyringEntry("api", "a").read({})
    assert "toolcrib[keyring]" in error.value.next_actions[0]
