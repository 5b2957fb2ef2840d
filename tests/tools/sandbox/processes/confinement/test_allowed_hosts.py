"""Hosts by pattern, registries by one name, and the registries that a machine is set to."""

from pathlib import Path

import pytest

from tools.sandbox.processes.confinement import allowed_hosts
from tools.sandbox.processes.confinement.allowed_hosts import (
    AllowedHosts,
    Registries,
    find_registries,
)

pytestmark = pytest.mark.boundary


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("example.com", 443, True),
        ("example.com", 80, False),
        ("www.example.com", 443, False),
        ("example.com.evil.org", 443, False),
        ("evilexample.com", 443, False),
        ("a.example.org", 8080, True),
        ("a.b.example.org", 8080, True),
        ("example.org", 8080, False),
        ("notexample.org", 8080, False),
        ("a.example.org", 80, False),
        ("::1", 8000, True),
        ("127.0.0.1", 8000, False),
    ],
)
def test_hosts_are_allowed_by_pattern(host: str, port: int, *, allowed: bool) -> None:
    hosts = AllowedHosts(["Example.com:443", "*.example.org:8080", "[::1]:8000"])
    assert hosts(host, port) is allowed


def test_one_name_stands_for_the_registries_of_packages() -> None:
    hosts = AllowedHosts(["packages"])
    for registry in (
        *("pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "index.crates.io"),
        *("static.crates.io", "proxy.golang.org", "sum.golang.org"),
    ):
        assert hosts(registry, 443)
        assert not hosts(registry, 80)
    for other in ("evil.pypi.org", "upload.pypi.org", "github.com"):
        assert not hosts(other, 443)


@pytest.fixture(autouse=True)
def _no_system_files(monkeypatch: pytest.MonkeyPatch) -> None:
    own = [name for name in allowed_hosts._PIP_FILES if name.startswith("~")]
    monkeypatch.setattr(allowed_hosts, "_PIP_FILES", own)


def find(home: Path, **environ: str) -> Registries:
    return find_registries(environ, home, lambda path: path.startswith("/etc/"))


def test_without_a_mirror_there_is_nothing_to_hand_in(tmp_path: Path) -> None:
    assert find(tmp_path, PATH="/bin", AWS_REGION="x") == Registries()


def test_mirrors_of_the_environment_are_handed_in_and_allowed(tmp_path: Path) -> None:
    named = {
        "PIP_INDEX_URL": "http://127.0.0.1:8081/simple",
        "UV_INDEX": "own=https://Nexus.example/a https://other.example:8443/b",
        "GOPROXY": "https://go.example,direct",
        "PIP_FIND_LINKS": "/opt/wheels",
    }
    assert find(tmp_path, **named, HOME="/home/x") == Registries(
        named, ("127.0.0.1:8081", "nexus.example:443", "other.example:8443", "go.example:443")
    )


def test_mirrors_of_the_users_files_are_handed_in_below_the_environment(tmp_path: Path) -> None:
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text(
        "[global]\nindex-url = https://pip.example/simple\ntrusted-host =\n  a\n  b\n"
    )
    (tmp_path / ".npmrc").write_text("fund=false\nregistry = https://npm.example/\n")
    found = find(tmp_path)
    assert found.variables == {
        "PIP_INDEX_URL": "https://pip.example/simple",
        "PIP_TRUSTED_HOST": "a b",
        "npm_config_registry": "https://npm.example/",
    }
    assert found.hosts == ("pip.example:443", "npm.example:443")
    found = find(tmp_path, PIP_INDEX_URL="https://other.example/simple")
    assert found.hosts == ("other.example:443", "npm.example:443")


def test_a_password_is_never_handed_in(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text(
        "//npm.example/:_authToken=secret\nregistry=https://a:secret@npm.example/\n"
    )
    assert find(tmp_path, PIP_INDEX_URL="https://me:secret@pip.example/simple") == Registries()


def test_certificates_are_named_where_programs_see_them(tmp_path: Path) -> None:
    found = find(tmp_path, PIP_CERT="/etc/ssl/own.pem", SSL_CERT_FILE="/home/x/own.pem")
    assert found.variables == {"PIP_CERT": "/etc/ssl/own.pem"}


@pytest.mark.parametrize(
    "odd",
    ["https://", "https://[::1", "http://x:port/", "http://0x7f.1/", "nonsense", "https://a..b/"],
)
def test_an_odd_address_allows_no_host(tmp_path: Path, odd: str) -> None:
    (tmp_path / ".npmrc").write_bytes(b"registry=\xff\xfe")
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip/pip.conf").write_text("no section = 1")
    assert find(tmp_path, PIP_INDEX_URL=odd).hosts == ()
