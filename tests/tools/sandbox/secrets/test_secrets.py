"""Which hosts and lines a secret is for, and from where its value is read."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.core.errors import InvalidArgumentsError, PermissionDeniedError, UnavailableError
from tools.sandbox.secrets.secrets import (
    File,
    HostPattern,
    KeyringEntry,
    ProgramPattern,
    Secret,
    Secrets,
    Variable,
)
from tools.sandbox.web.url import Url


def of_hosts(*hosts: str, **more: Any) -> Secret:
    parsed = tuple(map(HostPattern.parse, hosts))
    return Secret(name="api", origin=Variable("A"), hosts=parsed, **{"header": "X-Key", **more})


def of_programs(*programs: str) -> Secrets:
    parsed = tuple(map(ProgramPattern.parse, programs))
    return Secrets([Secret(name="npm", origin=Variable("N"), programs=parsed, variable="NPM")])


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("api.a.com", "https://api.a.com/x"),
        ("API.a.com", "https://api.A.com:443/x"),
        ("api.a.com:8443", "https://api.a.com:8443/"),
        ("*.a.com", "https://b.a.com/"),
        ("*.a.com", "https://c.b.a.com/"),
        ("[2606:4700::1111]:8443", "https://[2606:4700::1111]:8443/"),
    ],
)
def test_a_secret_is_for_its_hosts(host: str, url: str) -> None:
    of_hosts(host).check(Url.parse(url), is_private=False)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("api.a.com", "https://api.a.com.evil.com/"),
        ("api.a.com", "https://xapi.a.com/"),
        ("api.a.com", "https://a.com/"),
        ("api.a.com", "https://b.api.a.com/"),
        ("api.a.com", "https://api.a.com:8443/"),
        ("api.a.com:8443", "https://api.a.com/"),
        ("api.a.com", "http://api.a.com:443/"),
        ("api.a.com", "http://api.a.com/"),
        ("*.a.com", "https://a.com/"),
        ("*.a.com", "https://evila.com/"),
        ("*.a.com", "https://b.a.com.evil.com/"),
        ("*.a.com", "https://b.a.com:8443/"),
    ],
)
def test_a_secret_is_for_no_other_host_port_or_scheme(host: str, url: str) -> None:
    with pytest.raises(PermissionDeniedError):
        of_hosts(host).check(Url.parse(url), is_private=False)


@pytest.mark.parametrize("host", ["*.com", "*", "a.com.", "a.com/x", "http://a.com", "a@b.com", ""])
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises((InvalidArgumentsError, ValueError)):
        HostPattern.parse(host)


def test_a_header_or_a_parameter_of_the_same_name_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError, match="X-Key"):
        of_hosts("a.com").put_into("/", [("x-key", "mine")], "value-of-it")
    query = of_hosts("a.com", header="", query="api_key")
    for target in ("/?api_key=mine", "/?b=1&api%5Fkey=", "/?api_key"):
        with pytest.raises(InvalidArgumentsError, match="api_key"):
            query.put_into(target, [], "value-of-it")


def test_a_value_stands_in_the_query_once() -> None:
    query = of_hosts("a.com", header="", query="api_key")
    assert query.put_into("/b", [], "v&=é-of-it") == ("/b?api_key=v%26%3D%C3%A9-of-it", [])
    again = "/b?c=1&api_key=[secret:api]&&d"
    assert query.put_into(again, [], "value") == ("/b?c=1&&d&api_key=value", [])


def test_base64_is_made_for_basic_authorization() -> None:
    basic = of_hosts("a.com", header="Authorization", form="Basic {base64}")
    assert basic.put_into("/", [], "user:pass")[1] == [("Authorization", "Basic dXNlcjpwYXNz")]


@pytest.mark.parametrize(
    "line", ["npm publish", "npm publish --tag next", "npm  publish 'a b'", 'npm publish "--tag=x"']
)
def test_the_one_command_of_a_line_is_given_the_secret_that_names_it(line: str) -> None:
    assert [each.name for each in of_programs("npm publish *").of_line(line)] == ["npm"]


@pytest.mark.parametrize(
    "line",
    [
        *("npm publish; env", "npm publish && env", "npm publish | cat", "npm publish &"),
        *("npm publish\nenv", "npm publish > out", "npm publish >/dev/null", "npm publish < in"),
        *("npm publish <<< x", "PATH=. npm publish", "BASH_ENV=x npm publish"),
        *("npm publish $(env)", "npm publish `env`", "npm publish $HOME", "npm publish *"),
        *("npm publish ~", "npm publish {a,b}", "npm publish # and", "(npm publish)"),
        *("{ npm publish; }", "! npm publish", "if true; then npm publish; fi", "env npm publish"),
        *("./npm publish", "/opt/npm publish", "NPM publish", "npm", "npm publishx"),
        *("npm run publish", "npm\u00a0publish", "npm pub\\\nlish", "npm 'publish", ""),
    ],
)
def test_no_other_line_is_given_it(line: str) -> None:
    assert of_programs("npm publish *").of_line(line) == ()


def test_what_a_named_program_runs_has_to_be_named_too() -> None:
    assert of_programs("env *").of_line("env npm publish") == ()
    assert of_programs("git *").of_line("git -c core.pager=evil log") == ()
    assert of_programs("env npm publish *").of_line("env npm publish") != ()


@pytest.mark.parametrize("text", ["", "*", "* publish", "n*m publish", "a && b", "a | b", "'a"])
def test_a_pattern_names_one_program(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        ProgramPattern.parse(text)


async def test_an_unconfined_program_is_given_nothing() -> None:
    secrets = Secrets([], environ={"N": "npm-value-of-it"})
    npm = Secret(name="npm", origin=Variable("N"), variable="NPM")
    assert (await secrets.variables([npm], confined=True))[0] == {"NPM": "npm-value-of-it"}
    values, notes = await secrets.variables([npm], confined=False)
    assert values == {}
    assert "not given the secret npm" in notes[0]


def test_an_unknown_name_is_told_with_those_that_there_are() -> None:
    with pytest.raises(InvalidArgumentsError, match="there are: api") as error:
        Secrets([of_hosts("a.com")]).find("apii")
    assert error.value.suggestions == ("api",)
    with pytest.raises(InvalidArgumentsError, match="the settings name none"):
        of_programs("npm publish *").find("npm")


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
