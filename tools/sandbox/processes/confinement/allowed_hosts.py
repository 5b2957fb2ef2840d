"""The hosts that the settings let programs reach."""

from __future__ import annotations

from collections.abc import Sequence

from tools.sandbox.web.hosts import host_and_port

PACKAGES = "packages"
"""Stands for the default registries of package managers."""

_REGISTRIES = (
    *("pypi.org", "files.pythonhosted.org"),
    *("registry.npmjs.org", "registry.yarnpkg.com"),
    *("index.crates.io", "static.crates.io", "crates.io"),
    *("proxy.golang.org", "sum.golang.org"),
    *("rubygems.org", "index.rubygems.org"),
    *("repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org"),
    "api.nuget.org",
)
_HTTPS = 443

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names of the loopback host, which programs contact directly, never through a proxy."""


class AllowedHosts:
    """Hosts by pattern.

    Args:
        patterns: Each `host:port`, `*.host:port` for all subdomains, or `packages`.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._exact: set[tuple[str, int]] = set()
        self._below: set[tuple[str, int]] = set()
        for pattern in patterns:
            if pattern == PACKAGES:
                self._exact.update((host, _HTTPS) for host in _REGISTRIES)
            else:
                kind = self._below if pattern.startswith("*.") else self._exact
                kind.add(host_and_port(pattern.removeprefix("*.")))
        self.loopback = sorted(each for each in self._exact if each[0] in LOOPBACK)

    def __call__(self, host: str, port: int) -> bool:
        """Returns whether a canonical host may be reached on a port."""
        labels = host.split(".")
        above = (".".join(labels[count:]) for count in range(1, len(labels)))
        return (host, port) in self._exact or any((name, port) in self._below for name in above)


def is_registry(host: str, port: int) -> bool:
    """Returns whether `packages` includes a host."""
    return port == _HTTPS and host in _REGISTRIES


def is_loopback(host: str) -> bool:
    """Returns whether a canonical host is the local machine."""
    return host in LOOPBACK or host.startswith("127.") or host.endswith(".localhost")
