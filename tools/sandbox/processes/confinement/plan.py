"""A command to run with the paths it sees; each level of confinement turns it into a start.

Toolcrib's own files, and what the server runs, are hidden from programs. Those in the root are
pinned: each directory on the way is a separate mount in every confined process, and a mount cannot
be moved or replaced from inside. So the paths are still the same when the next process starts.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.remedies import Remedy
from tools.sandbox.processes.models import Level, Limits, Prepared

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
"""Files in /etc that programs need: no keys or passwords, and no settings that may hold them."""

_HAS_FDS = hasattr(os, "O_PATH")

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Devices that every process may open."""


@dataclass(frozen=True, slots=True)
class VisiblePaths:
    """Programs, libraries and settings that confined processes may read in addition to the root."""

    # Existing absolute paths without links, each with everything below it.
    readable: tuple[str, ...]
    links: tuple[tuple[str, str], ...]  # other names for them, each with its final target

    def include(self, path: str) -> bool:
        """Returns whether a path is inside a readable one, after resolving links."""
        actual = os.path.realpath(path)
        return any(is_beneath(actual, each) for each in self.readable)


@dataclass(frozen=True, slots=True)
class ProtectedPaths:
    """Visible paths that processes must not touch."""

    hidden: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()  # parent directories in the root, which must not be moved


@dataclass(frozen=True, slots=True)
class HeldPath:
    """A path outside the root, held open so that nothing can redirect it."""

    path: str
    descriptor: int
    writes: bool  # whether a program may write there, instead of only reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A program to run, and what it may access; all paths are absolute."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    stdin: bytes = b""
    root: str
    writes: bool = True
    scratch: str
    home: str = ""  # its private home; empty for none
    visible: VisiblePaths
    protected: ProtectedPaths = field(default_factory=ProtectedPaths)
    # Other paths in the root it may not write; a process may have replaced them by links since they
    # were found.
    write_protected: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()  # parent directories of those, which must not be moved
    # Paths it may neither read nor write, by rules; found like `write_protected`.
    hidden: tuple[str, ...] = ()
    # Namespaces of its session's network; empty for a separate network.
    namespaces: tuple[int, ...] = ()
    # Descriptor of the root, used even if its path is redirected; None to use the path.
    held: int | None = None
    outside: tuple[HeldPath, ...] = ()  # more paths that it may read or write
    limits: Limits = field(default_factory=Limits)

    @property
    def way_in(self) -> str:
        """A path of the root for the process that becomes the program, before it executes it."""
        return self.root if self.held is None or not _HAS_FDS else "/proc/self/fd/3"

    @property
    def ways(self) -> tuple[str, ...]:
        """Paths of the outside ones for that process; see `way_in`."""
        first = 3 if self.held is None else 4
        return tuple(f"/proc/self/fd/{first + number}" for number in range(len(self.outside)))

    def prepared(self) -> Prepared:
        """Returns the start of the program without any outer confinement."""
        tops = [(self.root, self.way_in)]
        if _HAS_FDS:
            tops += [(each.path, way) for each, way in zip(self.outside, self.ways, strict=True)]
        top, way = next(each for each in tops if is_beneath(self.cwd, each[0]))
        return Prepared(
            argv=self.argv,
            cwd=os.path.normpath(f"{way}/{os.path.relpath(self.cwd, top)}"),
            environment=self.environment,
            stdin=self.stdin,
            limits=self.limits,
            scratch=self.scratch,
            root=self.held if _HAS_FDS else None,
            folders=tuple(each.descriptor for each in self.outside) if _HAS_FDS else (),
            namespaces=self.namespaces,
        )


class Confinement:
    """A way to confine processes: the base class."""

    level: Level
    shares_networks = False
    # Prefix of a command line that creates a program's network namespace; empty if the program may
    # create it itself.
    into_network: tuple[str, ...] = ()

    def describe(self) -> str:
        """Returns its local version."""
        raise NotImplementedError

    def remedies(self, problem: str) -> Iterable[Remedy]:  # noqa: ARG002  # most have none
        """Returns what the user can do to make it work."""
        return ()

    def close(self) -> None:
        """Removes the files it has created."""

    def temporary(self, scratch: str) -> str:
        """Returns the path of the private directory as a process sees it."""
        return scratch

    def home(self, home: str) -> str:
        """Returns the path of the private home as a process sees it."""
        return home

    def check(self, protected: ProtectedPaths) -> None:
        """Raises an error if it cannot protect these paths."""

    def prepare(self, plan: Plan) -> Prepared:
        """Converts a plan to a start for the launcher."""
        raise NotImplementedError


def find_visible_paths(readable: Iterable[Path]) -> VisiblePaths:
    """Finds the visible paths of this machine; `~` in the settings is the server's home."""
    named = [str(path.expanduser()) for path in readable]
    prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    system = _MACOS if sys.platform == "darwin" else ()
    etc = sorted(str(path) for pattern in _ETC for path in Path("/etc").glob(pattern))
    paths = [*_SYSTEM, *system, *etc, *prefixes, *(os.path.abspath(path) for path in named)]  # noqa: PTH100  # Path.resolve() would follow the link itself
    found, links = [], []
    for path in dict.fromkeys(paths):
        actual = os.path.realpath(path)
        if not os.access(actual, os.F_OK):
            continue
        found.append(actual)
        if actual != path:
            links.append((path, actual))
    tops = outermost(found)
    inner = [link for link in links if not any(is_beneath(link[0], each) for each in tops)]
    return VisiblePaths(tops, tuple(inner))


class ProtectedPathFinder:
    """Finds the protected paths, and checks that they have not moved."""

    def __init__(
        self, root: str, visible: VisiblePaths, protected: Sequence[Path], read_only: Sequence[Path]
    ) -> None:
        self._root = root
        self._visible = (root, *visible.readable)
        self._protected = [locate(path, root) for path in protected]
        self._read_only = [locate(path, root) for path in read_only]
        self._identities: dict[str, tuple[int, int]] = {}

    def find(self) -> ProtectedPaths:
        """Returns the paths that exist now."""
        hidden = outermost(self._existing(self._protected))
        read_only = [path for path in self._existing(self._read_only) if path != self._root]
        locked = [each for each in read_only if not any(is_beneath(each, top) for top in hidden)]
        inside = [path for path in (*hidden, *locked) if is_beneath(path, self._root)]
        pinned = {each for path in inside for each in directories_between(self._root, path)}
        for path in (*inside, *pinned):
            self._check(path)
        return ProtectedPaths(hidden, tuple(locked), tuple(sorted(pinned - {*hidden, *locked})))

    def _existing(self, paths: Iterable[str]) -> Iterator[str]:
        for path in paths:
            is_seen = any(is_beneath(path, each) for each in self._visible)
            if is_seen and os.path.lexists(path):
                yield path

    def _check(self, path: str) -> None:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            raise UnavailableError(
                f"{path} is a link inside the root, which a program could replace.",
                next_actions=["Ask the user to configure the path that it leads to."],
            )
        found = (status.st_dev, status.st_ino)
        if stat.S_ISDIR(status.st_mode) and self._identities.setdefault(path, found) != found:
            raise UnavailableError(
                f"The directory {path} was replaced while the server ran.",
                next_actions=["Ask the user to look at it and to restart the server."],
            )


def find_program(name: str, search_path: str, root: str) -> str:
    """Finds a program for the server itself; empty if there is none outside the root.

    Agents may have written the programs in the root, which has its links resolved.
    """
    for folder in search_path.split(":"):
        found = shutil.which(name, path=folder) if folder.startswith("/") else None
        if found and not is_beneath(os.path.realpath(found), root):
            return os.path.realpath(found)
    return ""


def directories_between(root: str, path: str) -> Iterator[str]:
    """Yields the directories between a root and a path in it."""
    for above in map(str, Path(path).parents):
        if above == root or not is_beneath(above, root):
            return
        yield above


def is_beneath(path: str, top: str) -> bool:
    """Returns whether a path equals another or is inside it, without resolving links."""
    return path == top or path.startswith(top.rstrip("/") + "/")


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Returns the paths that are not inside others."""
    top: list[str] = []
    for path in sorted(set(paths), key=lambda path: path.split("/")):
        if not any(is_beneath(path, each) for each in top):
            top.append(path)
    return tuple(top)


def locate(path: Path, root: str) -> str:
    """Returns a path inside the root without resolving links there; else its real path."""
    spelled = Path(os.path.abspath(path))  # noqa: PTH100  # Path.resolve() would follow links in the root
    for above in (*reversed(spelled.parents), spelled):
        if os.path.realpath(above) == root:
            return str(Path(root, spelled.relative_to(above)))
    return os.path.realpath(path)


class SearchPath:
    """The PATH of the server, reduced to what programs can see."""

    def __init__(self, path: str, root: str, visible: VisiblePaths) -> None:
        own = str(Path(sys.executable).parent)
        self._folders = [each for each in (*path.split(":"), own) if each.startswith("/")]
        self._root = root
        self._visible = visible
        self._variables: dict[Level, str] = {}

    def find(self, name: str, level: Level) -> str:
        """Returns the path of a program; programs in the root are not found by name."""
        if "/" in name:
            return name
        invisible = ""
        for folder in self._folders:
            found = shutil.which(name, path=folder)
            if found and not (self._is_in_root(folder) or self._is_in_root(found)):
                # A virtual environment is more than the interpreter it links to.
                if self._is_visible(folder, level) and self._is_visible(found, level):
                    return found
                invisible = invisible or folder
        if invisible:
            raise UnavailableError(
                f"The program {name!r} is in {invisible}, which programs cannot see.",
                next_actions=[f"Ask the user to add {invisible} to the setting system.readable."],
            )
        raise UnavailableError(
            f"The program {name!r} is not installed.",
            next_actions=[f"Install {name}, or do without it."],
        )

    def find_hidden(self, name: str) -> str:
        """Returns the directory of a program that is hidden from programs; else empty."""
        folders = [each for each in self._folders if not self._visible.include(each)]
        found = shutil.which(name, path=":".join(folders)) if folders else None
        return str(Path(found).parent) if found and not self._is_in_root(found) else ""

    def variable(self, level: Level, *, outside: bool = False) -> str:
        """Returns the PATH variable; cached for each level, as directories rarely change.

        `outside` leaves out the root, so that files written there are not run as programs.
        """
        path = self._variables.get(level)
        if path is None:
            folders = [each for each in self._folders if self._is_visible(each, level)]
            path = self._variables[level] = ":".join(dict.fromkeys(folders))
        if outside:
            return ":".join(each for each in path.split(":") if not self._is_in_root(each))
        return path

    def _is_visible(self, path: str, level: Level) -> bool:
        return level is Level.NONE or self._is_in_root(path) or self._visible.include(path)

    def _is_in_root(self, path: str) -> bool:
        return is_beneath(os.path.realpath(path), self._root)
