"""Attaches a client's process to a Toolcrib that already runs, as a relay that copies bytes.

The first client's process forks the one that serves, so that all clients end independently of it.
They meet at a socket named by a digest of all that a server depends on: processes that would serve
differently never meet. Only the standard library is loaded here.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from server.fast_start.reader import EarlyReader, ServeArguments

VARIABLE = "TOOLCRIB_ATTACH"
WELCOME = b"!"
"""Sent to a client that is served from now on."""

WELCOME_SECONDS = 30.0
"""Time for the running Toolcrib to accept a client, which may still be loading."""

CONNECT_SECONDS = 2.0
BACKLOG = 128
PIECE = 65_536
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CREDENTIALS = struct.Struct("=iII")  # of SO_PEERCRED: process, user, group

_BEGINNINGS = tuple(
    "TOOLCRIB LC_ XDG_ SSL_ GIT_ NODE_ NPM_ PYTHON PIP_ UV_ CARGO_".split()  # noqa: SIM905  # shorter
)
_ENDINGS = ("PROXY", "SUMDB", "_BUNDLE", "_KEY", "_TOKEN")
_NAMES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR")
"""Variables that settings, servers or programs may depend on, in capitals.

The settings may name more; functions and agents may read any.
"""

_OF_WINDOW = frozenset({"XDG_SESSION_ID", "XDG_ACTIVATION_TOKEN", "XDG_VTNR"})
_OF_SHELL = _OF_WINDOW | {"_", "SHLVL", "PWD", "OLDPWD"}
"""Variables that make no difference: of a window, and of a shell."""


class Hosting(NamedTuple):
    """What the process that serves inherits."""

    first: socket.socket  # its first client
    listener: socket.socket
    path: Path


class Attached(NamedTuple):
    """The connection of a relay."""

    link: socket.socket
    is_first: bool  # whether this process started the one that serves

    def serve(self, early_reader: EarlyReader | None) -> None:
        """Copies the client's bytes until its end; returns if the other process serves no more."""
        if not self._is_welcome():
            if self.is_first:
                _leave("Toolcrib ended while it started.")
            return
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        early = None if early_reader is None else early_reader.end()
        hello = json.dumps({"answered": early and early.answered}).encode() + b"\n"
        ended: list[bool] = []
        Thread(
            target=self._send, args=(hello + (early.data if early else b""), ended), daemon=True
        ).start()
        with suppress(ConnectionError):
            while data := self.link.recv(PIECE):
                try:
                    while data:
                        data = data[os.write(_STDOUT, data) :]
                except OSError:  # the client is gone
                    os._exit(0)
        if ended:
            os._exit(0)
        _leave("The Toolcrib that served this client has ended. Restart this server.")

    def _is_welcome(self) -> bool:
        self.link.settimeout(WELCOME_SECONDS)
        with suppress(OSError):
            if self.link.recv(1) == WELCOME:
                self.link.settimeout(None)
                return True
        self.link.close()
        return False

    def _send(self, data: bytes, ended: list[bool]) -> None:
        with suppress(OSError):
            while data:
                self.link.sendall(data)
                data = os.read(_STDIN, PIECE)
            ended.append(True)
            self.link.shutdown(socket.SHUT_WR)


def meet(served: ServeArguments, environ: Mapping[str, str]) -> Attached | Hosting | None:
    """Connects to the Toolcrib that serves alike, or forks it; None to serve this client alone.

    Returns twice if it forks, like `os.fork`. No thread may run.
    """
    settings = _settings_text(served, environ)
    if not _is_wanted(settings, environ) or sys.stdin is None or sys.stdin.isatty():
        return None
    if not hasattr(socket, "SO_PEERCRED"):
        _tell("attach is supported on Linux only; this client gets its own Toolcrib.")
        return None
    try:
        path = _directory(environ) / f"{meeting_name(served, environ, settings)}.sock"
        return _meet_at(path)
    except OSError as error:
        _tell(f"attach failed ({error}); this client gets its own Toolcrib.")
        return None


def is_same_user(link: socket.socket) -> bool:
    """Returns whether the process at the other end of a socket runs as the same user."""
    said = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(said)[1] == os.geteuid())


def _is_wanted(settings: bytes, environ: Mapping[str, str]) -> bool:
    """Returns whether the unvalidated settings ask for it; an agent's or a server's never does."""
    if any(name.startswith("_TOOLCRIB") for name in environ):
        return False
    if said := environ.get(VARIABLE):
        return said.lower() in {"1", "true", "t", "yes", "y", "on"}
    if b"attach" not in settings:
        return False
    import tomllib

    with suppress(ValueError, RecursionError):
        return tomllib.loads(settings.decode("utf-8-sig")).get("attach") is True
    return False


def _settings_text(served: ServeArguments, environ: Mapping[str, str]) -> bytes:
    from server.settings_file import settings_path

    with suppress(OSError):
        return settings_path(served.config, environ)[0].read_bytes()
    return b""


def meeting_name(served: ServeArguments, environ: Mapping[str, str], settings: bytes) -> str:
    """Returns a name shared by the processes that would serve alike, by all they depend on."""
    from hashlib import sha256
    from importlib.metadata import version

    from server.settings_file import settings_path

    places = [Path("/proc/self/ns", kind) for kind in ("mnt", "net", "pid", "user")]
    what = (
        version("toolcrib"),
        __file__,
        sys.version,
        os.geteuid(),
        os.getgroups(),
        [str(each.readlink()) for each in places],
        str(Path.cwd()),
        str(settings_path(served.config, environ)[0]),
        settings.decode(errors="surrogateescape"),
        {name: str(value) for name, value in served.flags.items()},
        sorted(_relevant(served, environ, settings).items()),
    )
    return sha256(json.dumps(what).encode()).hexdigest()[:16]


def _relevant(
    served: ServeArguments, environ: Mapping[str, str], settings: bytes
) -> dict[str, str]:
    """Returns the variables that may make a difference."""
    ours = {name: value for name, value in environ.items() if name.startswith("TOOLCRIB")}
    text = "\n".join((settings.decode(errors="replace"), *ours, *ours.values())).casefold()
    if served.flags["functions.paths"] or "functions" in text or "agents" in text:
        return {name: value for name, value in environ.items() if name not in _OF_SHELL}
    return {
        name: value
        for name, value in environ.items()
        if (
            name.upper() in _NAMES
            or name.upper().startswith(_BEGINNINGS)
            or name.upper().endswith(_ENDINGS)
            or name.casefold() in text
        )
        and name not in _OF_SHELL
    }


def _directory(environ: Mapping[str, str]) -> Path:
    """Returns the directory of sockets, which no other user can enter."""
    base = environ.get("XDG_RUNTIME_DIR") or environ.get("TMPDIR") or "/tmp"  # noqa: S108  # checked
    directory = Path(base, f"toolcrib-{os.geteuid()}")
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    found = directory.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not is_ours or found.st_mode & 0o077:
        raise PermissionError(f"{directory} is not a directory that only its owner can enter")
    return directory


def _meet_at(path: Path) -> Attached | Hosting:
    lock = os.open(path.parent / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two starts at once, the second connects to the first
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(CONNECT_SECONDS)
        try:
            link.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):  # refused: it was killed
            link.close()
            path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            listener.listen(BACKLOG)
        else:
            if not is_same_user(link):
                raise PermissionError(f"{path} belongs to another user")
            return Attached(link, is_first=False)
    finally:
        os.close(lock)
    return _fork(listener, path)


def _fork(listener: socket.socket, path: Path) -> Attached | Hosting:
    """Forks the process that serves; returns in both.

    It is no child of the client's process, whose tree and group a client may kill.
    """
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        listener.close()
        theirs.close()
        return Attached(ours, is_first=True)
    os.setsid()
    if os.fork():
        os._exit(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (_STDIN, _STDOUT):  # the client waits for their end
        os.dup2(nothing, standard)
    stays = {_STDIN, _STDOUT, _STDERR, theirs.fileno(), listener.fileno()}
    ours.detach()
    for each in tuple(Path("/proc/self/fd").iterdir()):  # of a client's lock or pipe, perhaps
        if int(each.name) not in stays:
            with suppress(OSError):  # that of the directory
                os.close(int(each.name))
    return Hosting(theirs, listener, path)


def _leave(reason: str) -> NoReturn:
    _tell(reason)
    os._exit(1)


def _tell(text: str) -> None:
    with suppress(OSError):
        if sys.stderr is not None:  # else the descriptor may belong to another file
            os.write(_STDERR, f"{text}\n".encode())
