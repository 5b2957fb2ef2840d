"""The hosts that programs may reach: those of the settings, and package registries.

Programs do not see the user's configuration. If it names a mirror, its host is allowed and the
variables that package managers read point to it, unless they would contain a password.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.hosts import host_and_port, join_host_port

PACKAGES = "packages"  # stands for the default registries of package managers

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
    """Hosts by pattern: `host:port`, `*.host:port` for all subdomains, or `packages`."""

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


_INDEXES = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"),
    *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"),
    *("npm_config_registry", "NPM_CONFIG_REGISTRY", "GOPROXY"),
)
_BESIDE = (
    *("PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT"),
    *("UV_FIND_LINKS", "UV_NO_INDEX", "GOSUMDB", "GONOSUMDB"),
)
"""Variables that configure access to the indexes."""

_CERTIFICATES = (
    *("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    "CARGO_HTTP_CAINFO",
)
"""Variables for certificate files, passed on if programs can see the files."""

_PIP_FILES = ("/etc/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf")
_PIP_OPTIONS = ("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "cert")
_NPM_REGISTRY = re.compile(r"^\s*registry\s*=\s*(\S+)\s*$", re.MULTILINE)

_URL = re.compile(r"https?://[^\s,|]+")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Registries:
    """Access to the registries for programs."""

    variables: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()  # their addresses, each `host:port`


def find_registries(
    environ: Mapping[str, str], home: Path, is_visible: Callable[[str], bool]
) -> Registries:
    """Finds the registries in the server's environment and the user's files."""
    names = (*_INDEXES, *_BESIDE, *_CERTIFICATES)
    named = _of_pip(home)
    if found := _NPM_REGISTRY.search(_text("~/.npmrc", home)):
        named["npm_config_registry"] = found[1]
    named |= {name: environ[name] for name in names if environ.get(name)}
    variables = {
        name: value
        for name, value in named.items()
        if "@" not in value and (name not in _CERTIFICATES or is_visible(value))
    }
    hosts = [host for name in _INDEXES for host in _hosts(variables.get(name, ""))]
    return Registries(variables, tuple(dict.fromkeys(hosts)))


def _hosts(value: str) -> Iterator[str]:
    for url in _URL.findall(value):
        with suppress(ValueError, InvalidArgumentsError):  # malformed, so useless
            parts = urlsplit(url)
            port = parts.port or _PORTS[parts.scheme]
            host, port = host_and_port(f"{parts.netloc.removesuffix(f':{port}')}:{port}")
            yield join_host_port(host, port)


def _of_pip(home: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    for name in _PIP_FILES:
        try:
            parser.read_string(_text(name, home))
        except configparser.Error:
            continue
    options = dict(parser["global"]) if parser.has_section("global") else {}
    return {
        f"PIP_{option.replace('-', '_').upper()}": " ".join(options[option].split())
        for option in _PIP_OPTIONS
        if option in options
    }


def _text(name: str, home: Path) -> str:
    try:
        return Path(name.replace("~", str(home), 1)).read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return ""
