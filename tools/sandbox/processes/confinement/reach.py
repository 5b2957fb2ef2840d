"""What a confined process sees of the system, beside the root: programs, libraries, devices."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DEVICES", "Reach", "find_reach", "is_beneath", "outermost"]

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")

_MACOS = ("/System", "/Library", "/Applications", "/private/var/db/dyld", "/private/etc")

_ETC = (
    *("ld.so.*", "passwd", "group", "nsswitch.conf", "hosts", "host.conf", "hostname", "gai.conf"),
    *("resolv.conf", "protocols", "services", "networks", "rpc", "ethertypes", "netconfig"),
    *("localtime", "timezone", "locale.*", "os-release", "lsb-release", "debian_version"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates*", "crypto-policies"),
    *("pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust/extracted"),
    *("alternatives", "gitconfig", "mime.types", "magic", "magic.mime", "terminfo", "shells"),
    *("bash.bashrc", "bashrc", "profile", "profile.d", "inputrc", "manpath.config", "groff"),
    *("fonts", "xml", "sgml", "texmf", "ImageMagick-*", "R", "java*", "perl", "python*"),
)
"""What programs read of /etc: no keys, no passwords, no settings that may hold either."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Devices that every process may open."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be read and run.

    Attributes:
        readable: Absolute paths that exist, none of them a link; each with all beneath it.
        links: Other names of theirs, and where each leads in the end.
    """

    readable: tuple[str, ...]
    links: tuple[tuple[str, str], ...]

    def has(self, path: str) -> bool:
        """Whether a path lies beneath what may be read, links followed."""
        actual = os.path.realpath(path)
        return any(is_beneath(actual, each) for each in self.readable)


def find_reach(readable: Iterable[Path]) -> Reach:
    """Finds what there is of it on this machine.

    Args:
        readable: Files and directories beside, of the settings; `~` is the home of the server.
    """
    named = [str(path.expanduser()) for path in readable]
    prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    system = _MACOS if sys.platform == "darwin" else ()
    paths = [*_SYSTEM, *system, *_etc(), *prefixes, *(os.path.abspath(path) for path in named)]  # noqa: PTH100  # the link itself is kept
    found, links = [], []
    for path in dict.fromkeys(paths):
        actual = os.path.realpath(path)
        if not os.path.exists(actual):  # noqa: PTH110  # texts, not paths
            continue
        found.append(actual)
        if actual != path:
            links.append((path, actual))
    tops = outermost(found)
    inner = [link for link in links if not any(is_beneath(link[0], each) for each in tops)]
    return Reach(tops, tuple(inner))


def is_beneath(path: str, top: str) -> bool:
    """Whether an absolute path is another or lies beneath it, as both are spelled."""
    return path == top or path.startswith(top.rstrip("/") + "/")


def outermost(paths: Sequence[str]) -> tuple[str, ...]:
    """The paths without those that lie beneath others."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda path: path.split("/")):
        if not any(is_beneath(path, each) for each in kept):
            kept.append(path)
    return tuple(kept)


def _etc() -> list[str]:
    return sorted(str(path) for pattern in _ETC for path in Path("/etc").glob(pattern))
