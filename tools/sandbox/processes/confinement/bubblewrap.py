"""Bubblewrap: namespaces in which a process sees its reach, the root and nothing else.

Up to two runs of bwrap, one in the other. The outer one builds the view, from paths that no
confined process can change. What is closed to writes inside the root was found by a walk, and a
process that runs already may have put links there since; bwrap follows links, and before 0.12 it
even makes missing mount points behind them (CVE-2026-87766). So that is left to the inner run, to
which nothing exists but what the process may see anyway.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.etc_copy import EtcCopy
from tools.sandbox.processes.confinement.network import (
    FORWARDER_SOCKET,
    forwarding,
    proxy_variables,
)
from tools.sandbox.processes.confinement.plan import Kept, Plan
from tools.sandbox.processes.confinement.reach import Reach, is_beneath
from tools.sandbox.processes.kernel.bpf import NUMBER, answer, argument, assembled, if_one_of, skip
from tools.sandbox.processes.kernel.seccomp import filter_program
from tools.sandbox.processes.kernel.syscall_numbers import NUMBERS
from tools.sandbox.processes.models import Level, Prepared

__all__ = ["Bubblewrap"]

_FILTER, _VIEW, _CLOSED = 3, 4, 5
"""Descriptors of what the processes find open: the filter and the options of both runs."""

_REFUSE_EPERM = 0x00050000 | errno.EPERM
"""SECCOMP_RET_ERRNO of linux/seccomp.h."""

_OLDEST = (0, 5)
"""The first version that has --clearenv."""


class Bubblewrap:
    """Confines by bubblewrap.

    Args:
        search_path: Where the program is looked for, directories separated by colons.
        root: The root; a program that lies in it is not taken.
        reach: What programs see beside the root.
    """

    level = Level.BUBBLEWRAP

    def __init__(self, search_path: str, root: str, reach: Reach) -> None:
        self._search_path = search_path
        self._root = root
        self._reach = reach
        self._program = ""
        self._etc: EtcCopy | None = None

    def describe(self) -> str:
        """Its version.

        Raises:
            UnavailableError: If it is not installed, or too old.
        """
        program = self._find()
        shown = subprocess.run(  # noqa: S603  # found outside the root
            [program, "--version"], capture_output=True, text=True, check=False, timeout=10
        )
        version = re.search(r"(\d+)\.(\d+)(\.\d+)?", shown.stdout)
        if version is None or (int(version[1]), int(version[2])) < _OLDEST:
            raise UnavailableError(
                f"{program} is {shown.stdout.strip() or 'broken'}, and 0.5 is needed.",
                next_actions=["Update the package bubblewrap."],
            )
        self._program = program
        self._etc = EtcCopy(self._reach)
        return f"bubblewrap {version[0]}"

    def temporary(self, scratch: str) -> str:  # noqa: ARG002  # the same for all
        """It sees its private directory as `/tmp`, where many programs write whatever they say."""
        return "/tmp"  # noqa: S108  # its own, in its own namespace

    def close(self) -> None:
        """Removes what it has made."""
        if self._etc is not None:
            self._etc.close()

    def check(self, kept: Kept) -> None:
        """It can keep processes from all places."""

    def prepare(self, plan: Plan) -> Prepared:
        """Makes the runs of bwrap."""
        innermost = ["--cap-drop", "ALL", "--chdir", plan.cwd, *_environment(plan)]
        # The system's settings that /proc shows are root's to write, whatever the namespace.
        innermost += ["--remount-ro", "/proc", "--seccomp", str(_FILTER)]
        if self._etc is None:
            raise UnavailableError("bubblewrap was not looked for.")
        view = list(_view(plan, self._etc))
        argv = list(plan.argv)
        files = [_filter()]
        if plan.closed or plan.proxy:
            # To map itself once more, root needs one capability (user_namespaces(7)).
            view += ["--cap-drop", "ALL"]
            view += ["--cap-add", "CAP_SETFCAP"] if os.geteuid() == 0 else []
            view += ["--clearenv", "--setenv", "PATH", os.defpath]
            argv = [*self._run(_CLOSED), *argv]
            if plan.proxy:
                argv = [*forwarding(), *argv]
            files += [_packed(view), _packed([*_closed(plan), *innermost])]
        else:
            files += [_packed([*view, *innermost])]
        return Prepared(
            argv=(*self._run(_VIEW), *argv),
            cwd="/",
            # What the call gives is set inside: bwrap itself must not load its libraries.
            environment={"PATH": os.defpath},
            stdin=plan.stdin,
            files=tuple(files),
            limits=plan.limits,
            scratch=plan.scratch,
        )

    def _run(self, descriptor: int) -> list[str]:
        return [self._program, "--args", str(descriptor), "--"]

    def _find(self) -> str:
        for folder in self._search_path.split(":"):
            found = shutil.which("bwrap", path=folder) if folder.startswith("/") else None
            if found and not is_beneath(os.path.realpath(found), self._root):
                return os.path.realpath(found)
        raise UnavailableError(
            "bubblewrap is not installed.", next_actions=["Install the package bubblewrap."]
        )


@functools.cache
def _filter() -> bytes:
    """The filter of namespaces, and no Unix sockets: those in the root may be other programs'."""
    refusal = answer(_REFUSE_EPERM)
    check = if_one_of(argument(0), [socket.AF_UNIX], refusal, skip(refusal))
    number = NUMBERS[os.uname().machine]["socket"]
    program = filter_program(landlocked=False)
    return assembled(if_one_of(NUMBER, [number], check, skip(check))) + program


def _view(plan: Plan, etc: EtcCopy) -> Iterator[str]:
    """The options that build all that there is to see."""
    yield from ("--unshare-all", "--die-with-parent", "--new-session")
    mounts: list[tuple[str, tuple[str, ...]]] = []
    mounts += [(each, ("--ro-bind", each, each)) for each in etc.reach.readable]
    mounts += [(link, ("--symlink", target, link)) for link, target in etc.reach.links]
    mounts += [("/etc", ("--ro-bind", etc.path, "/etc"))]
    mounts = [each for each in mounts if not is_beneath(each[0], plan.root)]
    mounts += [("/proc", ("--proc", "/proc"))]
    mounts += [("/dev", ("--dev", "/dev", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"))]  # noqa: S108  # a private directory
    mounts += [("/tmp", ("--bind", plan.scratch, "/tmp"))]  # noqa: S108  # made for it alone
    mounts += [(plan.root, ("--bind" if plan.writes else "--ro-bind", plan.root, plan.root))]
    if plan.proxy:
        mounts += [(FORWARDER_SOCKET, ("--ro-bind", plan.proxy, FORWARDER_SOCKET))]
    mounts += [(each, ("--bind", each, each)) for each in plan.kept.pinned if plan.writes]
    mounts += [(each, ("--ro-bind", each, each)) for each in plan.kept.locked]
    mounts += [(each, tuple(_hiding(each))) for each in plan.kept.hidden]
    for _path, options in sorted(mounts, key=lambda each: each[0].split("/")):
        yield from options
    if plan.root != "/":
        yield from ("--remount-ro", "/")


def _hiding(path: str) -> Iterator[str]:
    if Path(path).is_dir():
        yield from ("--tmpfs", path, "--remount-ro", path)
    else:
        yield from ("--ro-bind", "/dev/null", path)


def _closed(plan: Plan) -> Iterator[str]:
    """The options that close the places in the root, as far as they are still there."""
    yield from ("--unshare-user", "--die-with-parent", "--dev-bind", "/", "/")
    mounts = [(path, "--bind-try") for path in plan.own]
    mounts += [(path, "--ro-bind-try") for path in plan.closed]
    for path, option in sorted(mounts):
        yield from (option, path, path)


def _environment(plan: Plan) -> Iterator[str]:
    yield "--clearenv"
    variables = {**plan.environment, **(proxy_variables() if plan.proxy else {})}
    for name, value in variables.items():
        yield from ("--setenv", name, value)


def _packed(options: Iterable[str]) -> bytes:
    """Options as `--args` reads them; the list of processes does not show them."""
    return b"".join(os.fsencode(option) + b"\0" for option in options)
