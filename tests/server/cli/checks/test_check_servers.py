import json
import sys
from pathlib import Path
from typing import Any

import pytest

from server.cli.checks.servers import check_servers
from server.settings import Settings
from server.settings.sources import load
from tests.server.cli.conftest import Command


def seen(work: Path, **server: Any) -> tuple[bool | None, str]:
    (found,) = check_servers(made(work, server))
    assert found.subject == "Server a"
    return found.ok, found.detail


def made(work: Path, server: dict[str, Any]) -> Settings:
    return Settings.model_validate({"root": work, "servers": {"a": server}})


@pytest.fixture
def program(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program on PATH, in a directory of its own."""
    path = work / "bin" / "my-server"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o700)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    return path


def test_a_program_that_is_everywhere_on_path_is_fine(work: Path) -> None:
    assert seen(work, command="sh") in {(True, "/usr/bin/sh"), (True, "/bin/sh")}


def test_a_program_that_only_shells_find_is_found_with_advice(work: Path, program: Path) -> None:
    ok, detail = seen(work, command="my-server")
    assert ok
    assert detail.startswith(f"{program}; if a desktop application starts Toolcrib")
    assert seen(work, command="my-server", env={"PATH": str(program.parent)}) == (
        True,
        str(program),
    )


def test_a_path_is_taken_from_the_server_s_directory(work: Path, program: Path) -> None:
    assert seen(work, command=str(program)) == (True, str(program))
    assert seen(work, command="./my-server", cwd=program.parent) == (True, str(program))
    assert seen(work, command="./bin") == (
        False,
        f"Its command {str(work / 'bin')!r} is not a program.",
    )


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"command": "no-such-program"}, "'no-such-program' was not found: install it"),
        ({"command": "sh", "cwd": "/no/such"}, "'/no/such' is not a directory"),
        ({"command": "sh", "env": {"A": "x${NO_SUCH}"}}, "env.A names the variable NO_SUCH"),
        ({"url": "https://h/", "token": "${NO_SUCH}"}, "token names the variable NO_SUCH"),
        ({"url": "https://h/", "headers": {"K": "${NO_SUCH}"}}, "headers.K names the variable"),
        (
            {"command": "sh", "args": ["--key=${input:key}"]},
            "The placeholder ${input:key} in its args has no value",
        ),
        ({"command": "sh", "args": ["${workspaceFolder}/x"]}, "The placeholder ${workspaceF"),
        ({"command": "${NO_SUCH}/x"}, "command names the variable NO_SUCH"),
        ({"url": "http://:80/"}, "names no host"),
        ({"url": "http://h:99999/"}, "Port out of range"),
        ({"url": "http://127.0.0.1:8765/mcp"}, "This is Toolcrib itself"),
        ({"command": "uvx", "args": ["toolcrib", "serve"]}, "This is Toolcrib itself"),
    ],
)
def test_what_keeps_a_server_from_working_is_told(
    server: dict[str, Any], said: str, work: Path
) -> None:
    ok, detail = seen(work, **server)
    assert ok is False
    assert said in detail


@pytest.mark.parametrize(
    ("server", "detail"),
    [
        ({"command": "no", "enabled": False}, (None, "not enabled")),
        ({"url": "https://you:pw@h/mcp?key=x"}, (True, "https://h/mcp")),
        ({"url": "https://h/ghp_123456789012345678901234/mcp"}, (True, "https://h/[redacted]/mcp")),
        ({"url": "http://[::1]:9000/", "token": "x"}, (True, "http://[::1]:9000/")),
        ({"url": "https://h/", "token": "${NO:-none}"}, (True, "https://h/")),
    ],
)
def test_what_there_is_to_see_is_told_without_secrets(
    server: dict[str, Any], detail: tuple[bool | None, str], work: Path
) -> None:
    assert seen(work, **server) == detail


def test_a_variable_that_is_not_set_is_told_as_a_sentence(work: Path) -> None:
    _, detail = seen(work, url="https://h/mcp", token="${NO_SUCH}")  # noqa: S106  # made up
    assert detail.startswith("Its token names the variable NO_SUCH, which is not set: ")
    assert detail.endswith("${NO_SUCH:-default}.")


def test_a_url_without_a_host_is_told_without_its_query(work: Path) -> None:
    ok, detail = seen(work, url="https://:80/mcp?key=geheim")
    assert (ok, "geheim" in detail, "https://:80/mcp" in detail) == (False, False, True)


def test_a_token_on_a_plain_connection_is_told(work: Path) -> None:
    ok, detail = seen(work, url="http://example.com/mcp", token="x")  # noqa: S106  # made up
    assert (ok, "unencrypted" in detail) == (True, True)


def test_doctor_looks_at_the_servers_of_the_settings(
    cli: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = work / "config.toml"
    config.write_text(
        f'[servers.here]\ncommand = "{sys.executable}"\n'
        '[servers.gone]\ncommand = "no-such-program"\n'
    )
    monkeypatch.setenv("TOOLCRIB_CONFIG", str(config))
    assert list(load().servers) == ["here", "gone"]
    ended = cli("doctor", "--json")
    found = {row["subject"]: row["ok"] for row in json.loads(ended.out)}
    assert (found["Server here"], found["Server gone"]) == (True, False)
    assert ended.code == 1
