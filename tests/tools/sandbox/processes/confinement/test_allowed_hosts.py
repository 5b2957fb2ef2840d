"""Hosts by pattern, and registries by one name."""

from __future__ import annotations

import pytest

from tools.sandbox.processes.confinement.allowed_hosts import AllowedHosts

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
