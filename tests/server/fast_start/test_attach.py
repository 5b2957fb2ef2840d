"""Which processes meet: those that would serve alike."""

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from server.fast_start.attach import meeting_name
from server.fast_start.reader import ServeArguments, read_command_line

SETTINGS = b'[servers.mail]\ncommand = "mail"\nenv = { KEY = "${env:MAIL_LOGIN}" }\n'
ENVIRON = {"PATH": "/bin", "HOME": "/home/ann"}


def served(*words: str) -> ServeArguments:
    found = read_command_line(["serve", *words])
    assert found is not None
    return found


def name(*words: str, settings: bytes = SETTINGS, **variables: Any) -> str:
    return meeting_name(served(*words), ENVIRON | variables, settings)


def test_windows_of_one_client_meet() -> None:
    one = name(WINDOWID="1", TERM_PROGRAM="a", OLDPWD="/a", XDG_SESSION_ID="1", SHLVL="1")
    assert one == name(WINDOWID="2", TERM_PROGRAM="b", XDG_SESSION_ID="2")


@pytest.mark.parametrize(
    "other",
    [
        {"PATH": "/usr/bin"},
        {"MAIL_LOGIN": "x"},
        {"TOOLCRIB_RESULTS": "text"},
        {"TOOLCRIB_SERVERS": "{}"},
        {"LC_ALL": "C"},
        {"https_proxy": "http://127.0.0.1:1"},
        {"OPENAI_API_KEY": "x"},
        {"UV_INDEX_URL": "http://127.0.0.1:1"},
    ],
)
def test_what_servers_may_read_keeps_processes_apart(other: dict[str, Any]) -> None:
    assert name() != name(**other)


def test_a_variable_that_variables_name_keeps_processes_apart() -> None:
    named: dict[str, Any] = {"TOOLCRIB_SECRETS": '{"a": {"env": "INNOCENT"}}'}
    assert name(**named, INNOCENT="1") != name(**named, INNOCENT="2")
    assert name(INNOCENT="1") == name(INNOCENT="2")


@pytest.mark.parametrize("by", [b"[functions]\n", b"[agents.claude]\n"])
def test_functions_and_agents_may_read_any_variable(by: bytes) -> None:
    assert name(settings=by, WINDOWID="1") != name(settings=by, WINDOWID="2")
    assert name("--functions", "a.py", WINDOWID="1") != name("--functions", "a.py")


def test_other_settings_arguments_and_places_keep_processes_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {
        name(),
        name(settings=SETTINGS + b"\n"),
        name(settings=b""),
        name("--root", "/a"),
        name("--data-dir", "/a"),
        name("--config", "/a"),
    }
    monkeypatch.chdir(tmp_path)
    assert len(names | {name()}) == 7


def test_another_version_keeps_processes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = name()
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: "99")
    assert ours != name()
