"""Temporary directories that are removed even if the server is killed, and private homes.

A private home is for one program, and removed when it ends. The user's git identity is in a
configuration file there instead of variables, which would override a repository's own settings.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tools.core.unicode_safety import encodable
from tools.sandbox.processes.confinement.plan import find_program
from tools.sandbox.processes.scratch import remove_scratch

_PREFIX = "toolcrib-own-"


class PrivateDirectory:
    """A private directory, removed on close or when its process ends.

    It is locked while in use, which makes systemd-tmpfiles(8) and the like leave it alone. Creating
    one removes all unlocked ones with their contents.
    """

    def __init__(self) -> None:
        parent = os.path.realpath(tempfile.gettempdir())
        for path in Path(parent).glob(f"{_PREFIX}*"):
            with suppress(OSError):  # another user's, or in use
                _remove_abandoned(str(path))
        self.path, lock = _create(parent)
        self._remove = weakref.finalize(self, _end, self.path, lock)

    def close(self) -> None:
        """Removes it."""
        self._remove()


def _create(parent: str) -> tuple[str, int]:
    """Creates and locks a directory; retries if it was removed before it was locked."""
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        with suppress(FileNotFoundError, BlockingIOError):
            lock = _locked(path)
            if os.access(path, os.F_OK):
                return path, lock
            _end(path, lock)


def _remove_abandoned(path: str) -> None:
    lock = _locked(path)
    if os.fstat(lock).st_uid == os.geteuid():
        _end(path, lock)
    else:
        os.close(lock)


def _end(path: str, lock: int) -> None:
    remove_scratch(os.fsencode(path))
    os.close(lock)


def _locked(path: str) -> int:
    """Locks a directory; returns the descriptor with the lock."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(fd)
        raise
    return fd


_GIT_SECONDS = 5.0

_CONTROLS = re.compile(r"[\x00-\x1f\x7f]+")

_CACHES = (
    ".astropy .bash_history .bun .cache .cargo/.global-cache .cargo/.package-cache "
    ".cargo/git .cargo/registry .conda .config/@angular .config/configstore .config/go "
    ".config/matplotlib .config/nextjs-nodejs .dotnet .gradle .ipython .ivy2 .java .jupyter "
    ".keras .lesshst .local/share/NuGet .local/share/pnpm .local/share/virtualenv "
    ".local/state .m2 .node-gyp .node_repl_history .npm .nuget .nv .pki .python_history "
    ".rustup .sbt .templateengine .viminfo .wget-hsts .yarn go/pkg"
)
"""Caches that programs write to a home on their own, and can recreate."""

_SHARED = frozenset({".cargo", ".config", ".local", ".local/share", "go"})
"""Directories shared by many programs, whose entries are named instead."""

_MOST_NAMES = 5
_LONGEST_NAME = 80


class PrivateHome:
    """A home directory."""

    def __init__(self, parent: str, git_config: bytes, files: Mapping[str, bytes]) -> None:
        self.path = tempfile.mkdtemp(prefix="home-", dir=parent)
        self._git_config = git_config
        self._given = {Path(name).parts[0] for name in files}
        if git_config:
            Path(self.path, ".gitconfig").write_bytes(git_config)
        for name, content in files.items():
            path = Path(self.path, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def remove(self) -> tuple[str, ...]:
        """Removes it; returns a note that names anything but caches written there."""
        written: list[str] = []
        with suppress(OSError):  # the program removed permissions
            written = sorted(self._written("."))
        remove_scratch(os.fsencode(self.path))
        return (_note(written),) if written else ()

    def _written(self, folder: str) -> Iterator[str]:
        with os.scandir(Path(self.path, folder)) as entries:
            found = list(entries)
        caches = _CACHES.split()
        for entry in found:
            name = os.path.normpath(f"{folder}/{entry.name}")
            if name in _SHARED and entry.is_dir(follow_symlinks=False):
                yield from self._written(name)
            elif name not in caches and not self._is_given(name, entry):
                yield name

    def _is_given(self, name: str, entry: os.DirEntry[str]) -> bool:
        """Returns whether it holds initial files, or the unchanged `.gitconfig`."""
        if name != ".gitconfig":
            return name in self._given
        return entry.is_file(follow_symlinks=False) and (
            entry.stat().st_size == len(self._git_config)
            and Path(entry.path).read_bytes() == self._git_config
        )


def git_identity(environ: Mapping[str, str], root: str) -> bytes:
    """Returns git settings with only the user's name and address.

    Git reads them outside of every repository, so that no repository's settings affect them. A git
    inside the root is not run.
    """
    program = find_program("git", environ.get("PATH", os.defpath), root)
    own = ("PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "USERPROFILE")
    if not program:
        return b""
    try:
        read = subprocess.run(  # noqa: S603  # found outside the root
            [program, "config", "--null", "--get-regexp", r"^user\.(name|email)$"],
            cwd="/",
            env={**{name: environ[name] for name in own if name in environ}, "GIT_DIR": os.devnull},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_GIT_SECONDS,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return b""
    found = dict(each.partition("\n")[::2] for each in read.split("\0") if each)
    lines = []
    for key, value in found.items():
        escaped = _CONTROLS.sub(" ", value).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'\t{key.removeprefix("user.")} = "{escaped}"\n')
    return "".join(["[user]\n", *lines]).encode() if lines else b""


def _note(written: list[str]) -> str:
    shown = map(encodable, written[:_MOST_NAMES])
    names = [_CONTROLS.sub("?", name)[:_LONGEST_NAME] for name in shown]
    more = f" and {len(written) - _MOST_NAMES} more" if len(written) > _MOST_NAMES else ""
    return f"Written to the private home, and removed with it: {', '.join(names)}{more}"
