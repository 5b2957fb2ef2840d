"""Confines programs that the user chose and that keep running, such as MCP servers."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tools.core.errors import UnavailableError
from tools.sandbox.files.openat import path_of
from tools.sandbox.processes.confinement.plan import HeldPath, Plan, is_beneath, locate, outermost
from tools.sandbox.processes.models import Command, Level, SettingNames
from tools.sandbox.processes.output import Program
from tools.sandbox.processes.processes import Launch, Processes
from tools.sandbox.processes.protection.protection import WriteProtected
from tools.sandbox.processes.protection.scan import Folder, scan

_OPEN = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_CLOEXEC", 0)

_MARKS = ("pyvenv.cfg", "conda-meta", "lib/node_modules", "lib/python3*")
"""Marks of the directory of an interpreter and its packages."""

_SHEBANG_BYTES = 256  # limit on a first line, as the kernel has it


@dataclass(frozen=True, slots=True)
class Outside:
    """The paths outside its root that a program may use."""

    installed: tuple[Path, ...]  # its own files, from `find_installation`
    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    shared: Path  # where agents write, so that a link there may lead anywhere


class LastingProcesses(Processes):
    """Starts programs whose root is a home that they keep.

    The user works in their writable directories meanwhile, so no change is undone when they end.
    What other programs obey there is read-only to them instead.
    """

    undoes = False

    def __init__(
        self,
        outside: Outside,
        names: SettingNames,
        *,
        protected: Sequence[Path],
        read_only: Sequence[Path],
        **options: Any,  # noqa: ANN401  # those of `Processes`
    ) -> None:
        named = (*outside.installed, *outside.readable, *outside.writable)
        super().__init__(
            protected=protected, read_only=read_only, readable=named, names=names, **options
        )
        shared = os.path.realpath(outside.shared)
        self._names = names
        self._writable = outermost(locate(each, shared) for each in outside.writable)
        readable = outermost(locate(each, shared) for each in outside.readable)
        self._readable = [
            each for each in readable if not any(is_beneath(each, top) for top in self._writable)
        ]
        self._closed = [locate(each, shared) for each in (*protected, *read_only)]
        self._explanations = replace(self._explanations, writable=self._writable)
        self._known: dict[str, dict[str, Folder]] = {}
        seen = (*self._readable, *self._writable)
        self._denied.is_own = any(
            is_beneath(shared, each) or is_beneath(each, shared) for each in seen
        )

    async def start(self, command: Command) -> Program:
        """Starts a program; refuses one that would lack what its settings give it."""
        try:
            program = await super().start(command)
        except UnavailableError as error:
            raise UnavailableError(" ".join([error.message, *error.next_actions])) from error
        if program.notes:
            await program.aclose()
            raise UnavailableError(" ".join(program.notes))
        return program

    def refusals(self, program: Program, errors: str) -> tuple[str, ...]:
        """Returns what was refused to a running program, or probably was, by its errors."""
        return (
            program.refused()
            or self.explain(program, 1, errors)
            or self._explanations.find_unseen(errors)
        )

    def _plan(self, launch: Launch, home: str, write_protected: WriteProtected) -> Plan:
        self._check_closed()
        for path in self._readable:
            launch.outside += (_hold(path, self._names.readable, writes=False),)
        for path in self._writable:
            launch.outside += (_hold(path, self._names.writable, writes=True),)
        plan = super()._plan(launch, home, write_protected)
        places = [self._protect(each) for each in launch.outside if each.writes]
        closed = tuple(path for each in places for path in each.paths)
        if closed and launch.confinement.level is Level.LANDLOCK:
            raise UnavailableError(
                f"Landlock cannot keep it from changing {closed[0]}, which other programs obey."
                " Install bubblewrap, or give it other directories."
            )
        own = {
            "HOME": self._root,
            "GIT_CONFIG_GLOBAL": f"{launch.confinement.home(home)}/.gitconfig",
        }
        return replace(
            plan,
            environment={**plan.environment, **own, **launch.command.environment},
            outside=launch.outside,
            write_protected=closed,
            pinned=tuple(path for each in places for path in each.pinned),
        )

    def _directory(self, cwd: str) -> str:
        if not os.path.isabs(cwd):  # noqa: PTH117  # a path as text
            return super()._directory(cwd)
        actual = os.path.realpath(cwd)
        if not any(is_beneath(actual, each) for each in (*self._readable, *self._writable)):
            raise UnavailableError(
                f"Its working directory {cwd} is out of its reach: the user"
                f" {self._names.adding(self._names.readable, cwd)}."
            )
        return actual

    def _check_closed(self) -> None:
        """Refuses to share what belongs to Toolcrib, which a program could move or replace."""
        for closed in self._closed:
            for path in (*self._readable, *self._writable):
                holds = path in self._writable and is_beneath(closed, path)
                if holds or is_beneath(path, closed):
                    raise UnavailableError(
                        f"It cannot be given {path}: {closed}, which belongs to Toolcrib, must stay"
                        " closed to it. Name directories inside or next to it."
                    )

    def _protect(self, held: HeldPath) -> WriteProtected:
        """Finds what other programs obey in a writable directory."""
        top = Path(held.path)
        if not stat.S_ISDIR(os.fstat(held.descriptor).st_mode):
            return WriteProtected()
        found = scan(held.descriptor, self._known.get(held.path, {}))
        self._known[held.path] = found.folders
        named = (top / folder / name for folder, name in found.protected())
        return WriteProtected(
            tuple(str(path) for path in named if not path.is_symlink()),
            tuple(str(top / each) for each in found.repositories()),
        )


def _hold(path: str, setting: str, *, writes: bool) -> HeldPath:
    try:
        held = HeldPath(path, os.open(path, _OPEN), writes)
    except OSError as error:
        raise UnavailableError(
            f"{setting} names {path}, which cannot be opened: {error.strerror}."
        ) from error
    if path_of(held.descriptor) != path:
        os.close(held.descriptor)
        raise UnavailableError(
            f"{setting} names {path}, which is or passes a link that programs could replace. Name"
            " the path that it leads to."
        )
    return held


def find_installation(program: str, search_path: str) -> tuple[Path, ...]:
    """Finds the files of a program: itself, its interpreter, and the packages of that.

    Of directories that hold more than an installation, such as `~/.local`, only the program.
    """
    found: dict[Path, None] = {}
    seen: set[Path] = set()
    pending = [Path(program)]
    while pending:
        path = pending.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        prefix = path.parent.parent
        is_whole = _is_installation(prefix)
        found[prefix if is_whole else path] = None
        if is_whole:
            pending += [Path(base, "python3") for base in _base_of(prefix)]
        if path.is_symlink():
            pending.append(path.parent / path.readlink())
        else:
            pending += _interpreters(path, search_path)
        if path.name == "uvx":  # which runs uv
            pending.append(path.with_name("uv"))
    return tuple(found)


def _is_installation(prefix: Path) -> bool:
    home = Path.home()
    if home.is_relative_to(prefix) or prefix == home / ".local":
        return False
    return any(next(prefix.glob(each), None) for each in _MARKS)


def _base_of(prefix: Path) -> Iterator[str]:
    """Yields the directory of the interpreter that a virtual environment was made with."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError):
        return
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "home":
            yield value.strip()


def _interpreters(path: Path, search_path: str) -> Iterator[Path]:
    """Yields the interpreter in a script's first line."""
    try:
        with path.open("rb") as file:
            line = os.fsdecode(file.readline(_SHEBANG_BYTES))
    except OSError:
        return
    words = line.removeprefix("#!").split() if line.startswith("#!") else []
    if words and Path(words[0]).name == "env":
        names = [each for each in words[1:] if not each.startswith("-") and "=" not in each]
        words = [found for each in names[:1] if (found := shutil.which(each, path=search_path))]
    yield from map(Path, words[:1])
