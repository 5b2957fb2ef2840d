"""The package registries that this machine uses instead of the default ones.

Programs do not see the user's configuration. If it names a mirror, its host is allowed and the
variables that package managers read point to it, unless they would contain a password.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.hosts import host_and_port, join_host_port

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
    """Access to the registries for programs.

    Attributes:
        hosts: Their addresses, each `host:port`.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()


def find_registries(
    environ: Mapping[str, str], home: Path, is_visible: Callable[[str], bool]
) -> Registries:
    """Finds the registries in the server's environment and the user's files."""
    names = (*_INDEXES, *_BESIDE, *_CERTIFICATES)
    named = {**_of_pip(home), **_of_npm(home)}
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


def _of_npm(home: Path) -> dict[str, str]:
    found = _NPM_REGISTRY.search(_text("~/.npmrc", home))
    return {"npm_config_registry": found[1]} if found else {}


def _text(name: str, home: Path) -> str:
    try:
        return Path(name.replace("~", str(home), 1)).read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return ""
