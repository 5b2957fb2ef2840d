"""Bubblewrap: namespaces in which a process sees only its visible paths and the root.

Up to two nested runs of bwrap are used. The outer one builds the view, from paths that no confined
process can change. Write-protected paths inside the root are found by a walk, and a running process
may have replaced them by links since. bwrap follows links, and before 0.12 it even creates missing
mount points behind them (CVE-2026-87766). So these paths are left to the inner run, which sees only
what the process may see anyway.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import socket
import stat
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import (
    Confinement,
    Plan,
    VisiblePaths,
    find_program,
    is_beneath,
)
from tools.sandbox.processes.confinement.remedies import (
    NOT_INSTALLED,
    Remedy,
    find_remedies,
    read_facts,
)
from tools.sandbox.processes.kernel.seccomp import filter_program
from tools.sandbox.processes.kernel.syscalls import (
    NUMBER,
    NUMBERS,
    answer,
    argument,
    assembled,
    if_one_of,
    skip,
)
from tools.sandbox.processes.models import Level, Prepared
from tools.sandbox.processes.temporary import PrivateDirectory

_FILTER, _OUTER, _INNER = 3, 4, 5
"""Descriptors open in the processes: the filter and the options of both runs."""

_REFUSE_EPERM = 0x00050000 | errno.EPERM  # SECCOMP_RET_ERRNO from linux/seccomp.h

_TEMPORARY = "/tmp"  # noqa: S108  # private, in its own namespace
_HOME = f"{_TEMPORARY}/home"

_ROOT = 6  # the descriptor of the root; 5 without an inner run

_NEEDED = ("--clearenv", "--bind-fd")
"""Options missing in old versions: 0.5 has the first, 0.10 and patched older ones the second."""


class Bubblewrap(Confinement):
    """Confines programs with bubblewrap; a bwrap inside the root is not used."""

    level = Level.BUBBLEWRAP
    shares_networks = True

    def __init__(self, search_path: str, root: str, visible: VisiblePaths) -> None:
        self._search_path = search_path
        self._root = root
        self._visible = visible
        self._program = ""
        self._etc: EtcCopy | None = None

    def describe(self) -> str:
        """Returns the version."""
        program = find_program("bwrap", self._search_path, self._root)
        if not program:
            raise UnavailableError(NOT_INSTALLED)
        shown, offered = (
            subprocess.run(  # noqa: S603  # found outside the root
                [program, option], capture_output=True, text=True, check=False, timeout=10
            ).stdout
            for option in ("--version", "--help")
        )
        version = re.search(r"(\d+)\.(\d+)(\.\d+)?", shown)
        missing = [option for option in _NEEDED if f" {option} " not in offered]
        if version is None or missing:
            lacks = f", which lacks {' and '.join(missing)}" if missing else ""
            raise UnavailableError(
                f"{program} is {shown.strip() or 'broken'}{lacks}.",
                next_actions=["Update the package bubblewrap."],
            )
        self._program = program
        if os.geteuid() != 0:  # AppArmor may let only bwrap create usable namespaces
            own = ("--unshare-user", "--unshare-net", "--dev-bind", "/", "/")
            self.into_network = (program, *own, "--")
        self._etc = EtcCopy(self._visible)
        return f"bubblewrap {version[0]}"

    def remedies(self, problem: str) -> Iterator[Remedy]:
        """Yields commands that make it work on this machine."""
        return find_remedies(problem, read_facts(), self._program)

    def temporary(self, scratch: str) -> str:  # noqa: ARG002  # the same for all
        """Returns `/tmp`: many programs write there whatever their variables say."""
        return _TEMPORARY

    def home(self, home: str) -> str:  # noqa: ARG002  # the same for all
        """Returns `/tmp/home`."""
        return _HOME

    def close(self) -> None:
        """Removes the files it has created."""
        if self._etc is not None:
            self._etc.close()

    def prepare(self, plan: Plan) -> Prepared:
        """Builds the command line of one or two runs of bwrap."""
        innermost = ["--cap-drop", "ALL", "--chdir", plan.cwd, "--clearenv"]
        for name, value in plan.environment.items():
            innermost += ["--setenv", name, value]
        # Root may write the kernel settings in /proc in any namespace.
        innermost += ["--remount-ro", "/proc", "--seccomp", str(_FILTER)]
        if self._etc is None:
            raise UnavailableError("bubblewrap was not looked for.")
        is_nested = bool(plan.write_protected or plan.hidden)
        view = list(_view(plan, self._etc, _ROOT if is_nested else _ROOT - 1))
        argv = list(plan.argv)
        files = [_filter()]
        if is_nested:
            # To map itself once more, root needs one capability (user_namespaces(7)).
            view += ["--cap-drop", "ALL"]
            view += ["--cap-add", "CAP_SETFCAP"] if os.geteuid() == 0 else []
            view += ["--clearenv", "--setenv", "PATH", os.defpath]
            argv = [*self._run(_INNER), *argv]
            files += [_pack(view), _pack([*_protect_options(plan, self._etc), *innermost])]
        else:
            files += [_pack([*view, *innermost])]
        return Prepared(
            argv=(*self._run(_OUTER), *argv),
            cwd="/",
            # The call's variables are set inside: bwrap itself must not load its libraries.
            environment={"PATH": os.defpath},
            stdin=plan.stdin,
            files=tuple(files),
            limits=plan.limits,
            scratch=plan.scratch,
            root=plan.held,
            folders=tuple(each.descriptor for each in plan.outside),
            namespaces=plan.namespaces,
        )

    def _run(self, descriptor: int) -> list[str]:
        return [self._program, "--args", str(descriptor), "--"]


@functools.cache
def _filter() -> bytes:
    """Builds the filter, without Unix sockets: those in the root may belong to other programs."""
    refusal = answer(_REFUSE_EPERM)
    check = if_one_of(argument(0), [socket.AF_UNIX], refusal, skip(refusal))
    number = NUMBERS[os.uname().machine]["socket"]
    program = filter_program(landlocked=False)
    return assembled(if_one_of(NUMBER, [number], check, skip(check))) + program


def _view(plan: Plan, etc: EtcCopy, held: int) -> Iterator[str]:
    """Yields the options that build the whole view; `held` is the root's descriptor."""
    yield from ("--unshare-all", "--die-with-parent", "--new-session")
    if plan.namespaces:
        yield "--share-net"
    mounts: list[tuple[str, tuple[str, ...]]] = []
    mounts += [(each, ("--ro-bind", each, each)) for each in etc.others.readable]
    mounts += [(link, ("--symlink", target, link)) for link, target in etc.others.links]
    mounts += [("/etc", ("--ro-bind", etc.path, "/etc"))]
    mounts = [each for each in mounts if not is_beneath(each[0], plan.root)]
    mounts += [("/proc", ("--proc", "/proc"))]
    shared = ("--bind", plan.scratch, "/dev/shm")  # noqa: S108  # on disk, as memory has no limit
    mounts += [("/dev", ("--dev", "/dev", *shared, "--remount-ro", "/dev"))]
    mounts += [(_TEMPORARY, ("--bind", plan.scratch, _TEMPORARY))]
    if plan.home and plan.root not in {_HOME, _TEMPORARY}:
        mounts += [(_HOME, ("--bind", plan.home, _HOME))]
    bind = "--bind" if plan.writes else "--ro-bind"
    root = (bind, plan.root, plan.root)
    if plan.held is not None:  # bwrap checks that it mounted this directory, and closes it
        root = (f"{bind}-fd", str(held), plan.root)
    mounts += [(plan.root, root)]
    for number, each in enumerate(plan.outside, held if plan.held is None else held + 1):
        bind = "--bind-fd" if each.writes else "--ro-bind-fd"
        mounts += [(each.path, (bind, str(number), each.path))]
    mounts += [(each, ("--bind", each, each)) for each in plan.protected.pinned if plan.writes]
    mounts += [(each, ("--ro-bind", each, each)) for each in plan.protected.read_only]
    mounts += [(each, tuple(_hiding(each))) for each in plan.protected.hidden]
    # The parents of a root in /tmp would be created in the private /tmp, and be writable.
    above = "/".join(plan.root.split("/")[:3])
    holds = above != plan.root and is_beneath(above, _TEMPORARY) and above not in dict(mounts)
    mounts += [(above, ("--tmpfs", above))] if holds else []
    for _path, options in sorted(mounts, key=lambda each: each[0].split("/")):
        yield from options
    if plan.root != "/":
        yield from ("--remount-ro", "/")
    if holds:
        yield from ("--remount-ro", above)


def _hiding(path: str) -> Iterator[str]:
    if Path(path).is_dir():
        yield from ("--tmpfs", path, "--remount-ro", path)
    else:
        yield from ("--ro-bind", "/dev/null", path)


def _protect_options(plan: Plan, etc: EtcCopy) -> Iterator[str]:
    """Yields the options that hide or protect paths found by a walk, if they still exist."""
    yield from ("--unshare-user", "--die-with-parent", "--dev-bind", "/", "/")
    mounts = [(path, "--bind-try") for path in plan.pinned]
    mounts += [(path, "--ro-bind-try") for path in plan.write_protected]
    for path, option in sorted(mounts):
        if not any(is_beneath(path, each) for each in plan.hidden):
            yield from (option, path, path)
    for path in plan.hidden:
        if is_beneath(path, plan.root) or etc.has(path):
            # It can be listed but not entered, so that git does not see it as deleted.
            is_folder = Path(path).is_dir()
            yield from ("--perms", "0444") if is_folder else ()
            yield from _hiding(path)


def _pack(options: Iterable[str]) -> bytes:
    """Encodes options for `--args`, which hides them from process lists."""
    return b"".join(os.fsencode(option) + b"\0" for option in options)


class EtcCopy:
    """A copy of the visible files in /etc: one mount instead of fifty, which cost 8 ms."""

    def __init__(self, visible: VisiblePaths) -> None:
        self._directory = PrivateDirectory()
        self.path = self._directory.path
        Path(self.path).chmod(0o755)  # like /etc, which some programs check
        within = [path for path in visible.readable if is_beneath(path, "/etc")]
        links = [link for link in visible.links if is_beneath(link[0], "/etc")]
        for path in within:
            _copy(path, str(self._make_parents(path)))
        for path, target in links:
            self._make_parents(path).symlink_to(target)
        self.others = VisiblePaths(  # outside /etc
            tuple(path for path in visible.readable if path not in within),
            tuple(link for link in visible.links if link not in links),
        )

    def close(self) -> None:
        """Removes the copy."""
        self._directory.close()

    def has(self, path: str) -> bool:
        """Returns whether a path exists in the programs' view."""
        is_copied = is_beneath(path, "/etc") and path != "/etc"
        return os.path.lexists(self._path_of(path) if is_copied else path)

    def _path_of(self, path: str) -> Path:
        return Path(self.path, os.path.relpath(path, "/etc"))

    def _make_parents(self, path: str) -> Path:
        copy = self._path_of(path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        return copy


def _copy(source: str, target: str) -> None:
    """Copies a file, link or directory; shutil would take five times as long."""
    with suppress(OSError):  # programs may not read what the server may not
        status = os.lstat(source)
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211  # pathlib is slower
        elif stat.S_ISDIR(status.st_mode):
            os.mkdir(target, status.st_mode | stat.S_IRWXU)  # noqa: PTH102  # pathlib is slower
            for name in os.listdir(source):  # noqa: PTH208  # pathlib is slower
                _copy(f"{source}/{name}", f"{target}/{name}")
        elif stat.S_ISREG(status.st_mode):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with open(source, "rb", buffering=0) as file:  # noqa: PTH123  # pathlib is slower
                fd = os.open(target, flags, stat.S_IMODE(status.st_mode))
                with os.fdopen(fd, "wb", buffering=0) as copy:
                    copy.write(file.read())
