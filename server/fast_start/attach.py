"""Attaches a client's process to a Toolcrib that already runs, as a relay that copies bytes.

The first client's process forks the one that serves, so that all clients end independently of it.
They meet at a socket named by a digest of all that serving depends on: processes that would serve
differently never meet. Only the standard library is loaded here.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import re
import socket
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from server.settings_file import settings_path

if TYPE_CHECKING:
    from server.fast_start.reader import EarlyReader, ServeArguments

WELCOME = b"!"  # sent to a client that is served from now on
PIECE = 65_536
_STDIN, _STDOUT, _STDERR = 0, 1, 2

_READ = re.compile(
    "PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LANGUAGE|TZ|TMPDIR"
    "|(TOOLCRIB|LC_|XDG_|SSL_|GIT_|NODE_|NPM_|PYTHON|PIP_|UV_|CARGO_).*"
    "|.*(PROXY|SUMDB|_BUNDLE|_KEY|_TOKEN)",
    re.IGNORECASE,
)
"""Variables that settings, servers or programs may depend on; functions and agents read any."""

_OF_WINDOW = ("XDG_SESSION_ID", "XDG_ACTIVATION_TOKEN", "XDG_VTNR", "_", "SHLVL", "PWD", "OLDPWD")
"""Variables of a window or a shell, which make no difference."""


class Hosting(NamedTuple):
    """The parts that the serving process inherits."""

    first: socket.socket  # its first client
    listener: socket.socket
    path: Path

    def close(self) -> None:
        """Accepts no more clients: who has just connected is served alone."""
        if self.listener.fileno() >= 0:
            self.path.unlink(missing_ok=True)
            self.listener.close()


def relay(link: socket.socket, early_reader: EarlyReader | None) -> None:
    """Copies the client's bytes and exits at its end; returns if the client is not served."""
    welcome = b""
    with suppress(OSError):
        link.settimeout(30)  # the other process may still be loading
        welcome = link.recv(1)
    if welcome != WELCOME:
        return
    link.settimeout(None)
    before, answered = (b"", None) if early_reader is None else early_reader.end()
    hello, left = json.dumps({"answered": answered}).encode() + b"\n", list[bool]()
    Thread(target=_send, args=(link, hello + before, left), daemon=True).start()
    with suppress(ConnectionError):
        while data := link.recv(PIECE):
            try:
                while data:
                    data = data[os.write(_STDOUT, data) :]
            except OSError:  # the client is gone
                os._exit(0)
    if not left:
        _tell("The Toolcrib that served this client has ended. Restart this server.")
    os._exit(0 if left else 1)


def _send(link: socket.socket, data: bytes, left: list[bool]) -> None:
    with suppress(OSError):
        while data:
            link.sendall(data)
            data = os.read(_STDIN, PIECE)
        left.append(True)
        link.shutdown(socket.SHUT_WR)


def meet(served: ServeArguments, environ: Mapping[str, str]) -> socket.socket | Hosting | None:
    """Connects to the Toolcrib that serves alike, or forks it; None to serve this client alone.

    Returns twice if it forks, like `os.fork`. No thread may run.
    """
    settings = b""
    with suppress(OSError):
        settings = settings_path(served.config, environ)[0].read_bytes()
    if not _is_wanted(settings, environ) or sys.stdin is None or sys.stdin.isatty():
        return None
    try:
        return _meet_at(_directory(environ) / f"{meeting_name(served, environ, settings)}.sock")
    except OSError as error:
        _tell(f"attach failed ({error}); this client gets its own Toolcrib.")
        return None


def _is_wanted(settings: bytes, environ: Mapping[str, str]) -> bool:
    """Returns whether the unvalidated settings ask for it; an agent's or a server's never does."""
    if any(name.startswith("_TOOLCRIB") for name in environ):
        return False
    said: object = environ.get("TOOLCRIB_ATTACH")
    if not said and b"attach" in settings:
        import tomllib

        with suppress(ValueError, RecursionError):
            said = tomllib.loads(settings.decode("utf-8-sig")).get("attach")
    return str(said).lower() in {"1", "true", "t", "yes", "y", "on"}


def meeting_name(served: ServeArguments, environ: Mapping[str, str], settings: bytes) -> str:
    """Returns a name shared by the processes that would serve alike, by all they depend on."""
    from hashlib import sha256
    from importlib.metadata import version

    text = settings.decode(errors="surrogateescape")
    ours = [f"{each}={environ[each]}" for each in environ if each.startswith("TOOLCRIB")]
    named = "\n".join((text, *ours)).casefold()
    reads_all = served.flags["functions.paths"] or "functions" in named or "agents" in named
    what = (
        *(version("toolcrib"), __file__, sys.version, os.geteuid(), os.getgroups()),
        *(str(Path("/proc/self/ns", kind).readlink()) for kind in ("mnt", "net", "pid", "user")),
        *(str(Path.cwd()), str(settings_path(served.config, environ)[0]), text),
        {name: str(value) for name, value in served.flags.items()},
        sorted(
            (name, value)
            for name, value in environ.items()
            if name not in _OF_WINDOW
            and (reads_all or _READ.fullmatch(name) or name.casefold() in named)
        ),
    )
    return sha256(json.dumps(what).encode()).hexdigest()[:16]


def _directory(environ: Mapping[str, str]) -> Path:
    """Returns the directory of sockets, which no other user can enter."""
    base = environ.get("XDG_RUNTIME_DIR") or environ.get("TMPDIR") or "/tmp"  # noqa: S108  # its owner is checked
    directory = Path(base, f"toolcrib-{os.geteuid()}")
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    found = directory.lstat()
    if found.st_mode & ~0o700 != stat.S_IFDIR or found.st_uid != os.geteuid():
        raise PermissionError(f"{directory} is not a directory that only its owner can enter")
    return directory


def _meet_at(path: Path) -> socket.socket | Hosting:
    lock = os.open(path.parent / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two starts at once, the second connects to the first
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(2)
        try:
            link.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):  # refused: it was killed
            path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            listener.listen(128)
            listener.settimeout(0)
        else:
            return link
    finally:
        os.close(lock)
    return _fork(listener, path)


def _fork(listener: socket.socket, path: Path) -> socket.socket | Hosting:
    """Forks the process that serves, as no child of the client's, whose tree a client may kill."""
    ours, theirs = socket.socketpair()
    if child := os.fork():
        os.waitpid(child, 0)
        listener.close()
        theirs.close()
        return ours
    os.setsid()
    if os.fork():
        os._exit(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    ours.detach()
    for standard in (_STDIN, _STDOUT, _STDERR):  # the client waits for their end
        os.dup2(nothing, standard)
    stays = {_STDIN, _STDOUT, _STDERR, theirs.fileno(), listener.fileno()}
    for fd in {int(each.name) for each in Path("/proc/self/fd").iterdir()} - stays:
        with suppress(OSError):  # a client's lock or pipe, perhaps
            os.close(fd)
    atexit.register((hosting := Hosting(theirs, listener, path)).close)
    return hosting


def _tell(text: str) -> None:
    with suppress(OSError):
        if sys.stderr is not None:  # else the descriptor may belong to another file
            os.write(_STDERR, f"{text}\n".encode())
