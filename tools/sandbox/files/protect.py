"""Protects files inside the root from tools.

There are two kinds. The server's own files (settings, data directory) are closed to reads and
writes. Files that programs obey (function files, a repository's hooks, the settings of agents and
shells) are closed to writes. Both are checked on the opened directory, by device and inode and up
to the root, so that no link or alternative spelling can bypass them.

Files that programs obey although the user meant something else: when opening a directory in an
editor, a shell, a debugger or an interpreter, committing, connecting to another machine, or
starting an agent. Files that the project's own build, tests and continuous integration run
(makefiles, package.json, .npmrc, .github/workflows) stay open: running the project runs them
anyway, and writing them is ordinary work. So do texts for agents (AGENTS.md, CLAUDE.md,
.cursor/rules), which no program executes. A user may allow a file tool to write most of them:
`OBEYED`. The others are closed for good.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.core.unicode_safety import EMOJI_SELECTOR, INVISIBLE
from tools.sandbox.files.openat import MAX_DEPTH, Root, identity, path_of

_EFFECTIVE = os.access in os.supports_effective_ids

_FOR_GOOD = ".config/toolcrib .git .hg .jj .repo .sl .svn .toolcribignore toolcrib/config.toml"
"""Internals of repositories, which hold hooks and name programs, and our own settings."""

_VERSION_CONTROL = ".config/git .config/hg .config/jj .gitconfig .gitmodules .hgrc"
"""Settings of version control, which name programs."""

_COMMIT = (
    ".githooks .husky .lefthook .lefthook.json .lefthook.toml .lefthook.yaml .lefthook.yml "
    ".lefthook-local.yml .local-overcommit.yml .overcommit.yml .pre-commit-config.yaml "
    ".pre-commit-config.yml lefthook-local.json lefthook-local.toml lefthook-local.yaml "
    "lefthook-local.yml lefthook.json lefthook.toml lefthook.yaml lefthook.yml prek.toml"
)
"""Hooks that run on a commit or push."""

_AGENTS = (
    ".aider.conf.yml .amazonq .amp .augment .claude .claude.json .clinerules/hooks .codeium "
    ".codex .config/amp .config/crush .config/goose .config/opencode .continue "
    ".continuerc.json .copilot .crush.json .cursor/cli.json .cursor/environment.json "
    ".cursor/hooks .cursor/hooks.json .cursor/mcp.json .cursor/permissions.json "
    ".cursor/sandbox.json .cursor/worktrees.json .factory .gemini .github/hooks .github/mcp.json "
    ".grok .junie/mcp .kilocode/mcp.json .kiro/hooks .kiro/settings .mcp.json .opencode "
    ".openhands .qwen .roo/mcp.json .trae/mcp.json .windsurf crush.json opencode.json "
    "opencode.jsonc"
)
"""Servers that an agent starts, hooks that it runs, and its permissions."""

_EDITORS = (
    ".config/Code/User .config/helix .config/nvim .config/zed .devcontainer .devcontainer.json "
    ".dir-locals-2.el .dir-locals.el .emacs .emacs.d .exrc .fleet .helix .idea .lvimrc .nvim.lua "
    ".nvimrc .vim .vimrc .vscode .zed"
)
"""Tasks that start when a directory is opened, linters and formatters, local scripts."""

_SHELLS = (
    ".bash_aliases .bash_login .bash_logout .bash_profile .bashrc .config/fish .config/mise "
    ".config/mise.toml .config/nushell .cshrc .direnv .envrc .inputrc .kshrc .login .logout .mise "
    ".mise.local.toml .mise.toml .pam_environment .profile .screenrc .tcshrc .tmux.conf .xinitrc "
    ".xprofile .xsession .zlogin .zlogout .zprofile .zshenv .zshrc mise.local.toml mise.toml"
)
"""Files that a shell or session runs when it starts, or when it enters a directory."""

_SESSIONS = (
    ".config/autostart .config/environment.d .config/systemd .local/bin .local/share/applications "
    ".local/share/systemd Library/LaunchAgents"
)
"""Programs that start by themselves or shadow others, if the root is a home directory."""

_INTERPRETERS = (
    ".RData .Renviron .byebugrc .erlang .gdbinit .ghci .iex.exs .irbrc .jdbrc .lldbinit "
    ".ocamlinit .octaverc .pdbrc .pdbrc.py .perldb .pryrc .psqlrc .Rprofile .sqliterc"
)
"""Files that a debugger, an interpreter or a database prompt runs when it starts."""

_CONNECTIONS = ".curlrc .gnupg .netrc .ripgreprc .ssh .wgetrc"
"""Trusted hosts, their credentials, and helper programs."""

Name = tuple[str, ...]  # a path below any directory, by its components


def _names(group: str) -> list[Name]:
    return [tuple(path.split("/")) for path in group.split()]


OBEYED: Mapping[Name, str] = {
    name: obeys
    for group, obeys in (
        (_VERSION_CONTROL, "Version control obeys"),
        (_COMMIT, "A commit runs"),
        (_AGENTS, "Agents obey and run"),
        (_EDITORS, "Editors run"),
        (_SHELLS, "Shells and sessions run"),
        (_SESSIONS, "The user's session runs"),
        (_INTERPRETERS, "Debuggers and interpreters run"),
        (_CONNECTIONS, "Programs that connect to others obey"),
    )
    for name in _names(group)
}
"""The names that a user may allow a tool to write, and what obeys each."""

CLOSED_TO_WRITES: tuple[Name, ...] = (*_names(_FOR_GOOD), *OBEYED)
"""Paths, in any directory of the root, that make other programs run or trust things."""

REMOVABLE = frozenset(
    path.rpartition("/")[2].casefold()
    for path in (*_COMMIT.split(), *_EDITORS.split(), ".envrc", ".gitmodules", ".mcp.json")
)
"""Last names of those that projects commit and that only make programs run: removing one runs less.
Agent settings are excluded, since they also forbid."""

REPOSITORY_MARKS = (
    frozenset({"head", "objects", "refs"}),
    frozenset({"head", "commondir"}),
    frozenset({"config", "objects", "refs"}),
    frozenset({"hooks", "objects", "refs"}),
)
"""Folded names by which Git recognizes a repository and obeys its settings; the last two apply once
the `commondir` of another repository leads to it.

From is_git_directory() in Git's setup.c and gitrepository-layout(5).
"""


_UNSEEN = re.compile(f"[{INVISIBLE}{EMOJI_SELECTOR}]")


@functools.lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """Folds a name as the most forgiving file system compares it.

    Drops case and compatibility forms (APFS, NTFS), invisible characters (HFS+, and ext4 with case
    folding), and trailing dots and spaces (Windows shares).
    """
    if name.isascii():  # the common case, which needs only a few of these steps
        return name.lower().rstrip(". ")
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    seen = (c for c in _UNSEEN.sub("", plain) if unicodedata.category(c) != "Cf")
    return "".join(seen).rstrip(". ")


_BY_FIRST: dict[str, list[tuple[Name, Name]]] = defaultdict(list)
for _name in CLOSED_TO_WRITES:
    _BY_FIRST[folded(_name[0])].append((tuple(map(folded, _name)), _name))


def closed_names(names: Sequence[str]) -> Iterator[Name]:
    """Yields the protected names among consecutive names."""
    given = tuple(map(folded, names))
    for start, first in enumerate(given):
        for wanted, name in _BY_FIRST.get(first, ()):
            if given[start : start + len(wanted)] == wanted:
                yield name


Identity = tuple[int, int]


class ProtectedPathError(Exception):
    """The place is protected; the message names the protected path."""


class StrayDirectoryError(Exception):
    """The directory has been moved out of the root."""


@dataclass(frozen=True, slots=True)
class _Own:
    """One of the server's own paths."""

    path: str  # absolute path; its links are followed at each check
    parent: str
    name: str  # its folded name
    parts: tuple[str, ...]

    @classmethod
    def of(cls, path: Path) -> _Own:
        """Makes the path absolute without resolving links."""
        absolute = Path(os.path.abspath(path))  # noqa: PTH100  # links stay: stat follows them
        name = folded(absolute.name)
        return cls(str(absolute), str(absolute.parent), name, absolute.parts[1:])


@dataclass(slots=True)
class _Judged:
    directory: int
    names: tuple[str, ...]  # the folded names below it
    levels: tuple[Identity, ...]  # that directory and its parents, up to the root
    chain: frozenset[Identity]  # the levels, and the file if it exists

    def exists(self, path: str) -> bool:
        """Returns whether a path from the deepest directory exists, even as a dangling link."""
        if not _access_tells():
            return _is_there(path, self.directory)
        # Most of these do not exist, and an exception costs more.
        return os.access(
            path, os.F_OK, dir_fd=self.directory, effective_ids=_EFFECTIVE, follow_symlinks=False
        )

    def is_at_or_below(self, top: str, parts: Sequence[str]) -> bool:
        """Returns whether it is the target of a path, or inside it.

        `top` is a path from the deepest directory, empty or with a trailing slash.
        """
        for count in range(len(parts) + 1):
            path = top + "/".join(parts[:count]) or "."
            found = _identity_of(path, self.directory)
            if found is None:
                return self._is_awaited_by(path, parts[count:])
            rest = tuple(map(folded, parts[count:]))
            # The rest need not exist yet; folded, because some systems ignore case.
            if found == self.levels[0] and rest and self.names[: len(rest)] == rest:
                return True
        return found in self.chain

    def _is_awaited_by(self, path: str, below: Sequence[str]) -> bool:
        """Returns whether it is the missing target of a dangling link."""
        try:
            os.readlink(path, dir_fd=self.directory)
        except OSError:
            return False
        here = path_of(self.directory)
        target = os.path.realpath(os.path.join(here, path, *below))  # noqa: PTH118  # as Path has it with `..`
        awaited = tuple(map(folded, target.split("/")))
        place = (*map(folded, here.split("/")), *self.names)
        return place[: len(awaited)] == awaited

    def is_in_repository(self, level: int) -> bool:
        """Returns whether one of its directories is a Git repository, or is becoming one."""
        top = "../" * level
        made = self.names[:1] if level == 0 else ()
        return any(
            all(mark in made or self.exists(top + _SPELLED.get(mark, mark)) for mark in marks)
            for marks in REPOSITORY_MARKS
        )


_SPELLED = {"head": "HEAD"}


class Guard:
    """Decides whether an opened directory may be read or written.

    All checks raise ProtectedPathError if the place is protected, StrayDirectoryError if it was
    moved out of the root, and OSError if a parent directory cannot be examined.

    `protected` places are closed to reads and writes; they need not exist.
    """

    def __init__(self, protected: Iterable[Path], read_only: Iterable[Path] = ()) -> None:
        self._protected = tuple(map(_Own.of, protected))
        self._read_only = tuple(map(_Own.of, read_only))
        self._closed: dict[str, list[Name]] = defaultdict(list)
        for name in CLOSED_TO_WRITES:
            self._closed[name[0]].append(name)

    def judge_read(
        self, root: Root, directory: int, name: str = "", file: os.stat_result | None = None
    ) -> None:
        """Raises an error if what was opened may not be read.

        `file` is the status of the file `name` in the directory; None if the directory itself is
        read.
        """
        levels = _levels(root, directory)
        opened = file and identity(file)
        called = folded(name)
        for own in self._protected:
            found = _identity_of(own.path)
            if found is not None and (found == opened or found in levels):
                raise ProtectedPathError(own.path)
            # Also by name: the file may have been replaced since it was opened.
            if opened and own.name == called and _identity_of(own.parent) == levels[0]:
                raise ProtectedPathError(own.path)

    def judge_write(
        self, root: Root, directory: int, names: Sequence[str], permitted: Collection[Name] = ()
    ) -> None:
        """Raises an error if a place may not be written.

        `directory` is the deepest that exists; `names` lead from there to the file. `permitted` are
        protected names that this write may use.
        """
        levels = _levels(root, directory)
        # The file may be a hard link to a protected one.
        file = _identity_of(names[0], directory) if len(names) == 1 else None
        chain = frozenset(levels) | ({file} if file else frozenset())
        self.judge_names(names, permitted)
        place = _Judged(directory, tuple(map(folded, names)), levels, chain)
        for level in range(len(levels)):
            self._judge_level(place, level, permitted)
        for own in (*self._protected, *self._read_only):
            if place.is_at_or_below("/", own.parts):
                raise ProtectedPathError(own.path)

    def judge_names(self, names: Sequence[str], permitted: Collection[Name] = ()) -> None:
        """Raises ProtectedPathError if consecutive names are closed to writes."""
        for name in closed_names(names):
            if name not in permitted:
                raise ProtectedPathError("/".join(name))

    def _judge_level(self, place: _Judged, level: int, permitted: Collection[Name]) -> None:
        top = "../" * level
        for first, closed in self._closed.items():
            if not place.exists(top + first):
                continue
            for name in closed:
                if name not in permitted and place.is_at_or_below(top, name):
                    raise ProtectedPathError("/".join(name))
        if place.is_in_repository(level):
            raise ProtectedPathError("the inside of a Git repository")

    def identities(self) -> frozenset[Identity]:
        """Returns the identities of existing places that are closed to reads."""
        return frozenset(filter(None, (_identity_of(own.path) for own in self._protected)))

    def hides(self, status: os.stat_result) -> bool:
        """Returns whether a directory in a listing is closed to reads."""
        return any(identity(status) == _identity_of(own.path) for own in self._protected)


def _levels(root: Root, directory: int) -> tuple[Identity, ...]:
    """Returns the directory and its parents, up to the root."""
    here, top = identity(os.fstat(directory)), identity(os.fstat(root.fd))
    found, way = [here], ""
    while here != top:
        if len(found) > MAX_DEPTH:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        way += "../"
        above = identity(os.stat(way, dir_fd=directory))
        if above == here:
            raise StrayDirectoryError
        here = above
        found.append(here)
    return tuple(found)


def _identity_of(path: str, directory: int | None = None) -> Identity | None:
    """Returns the identity of a path's target, or None if it does not exist."""
    try:
        return identity(os.stat(path, dir_fd=directory))
    except OSError:
        return None


def _is_there(path: str, directory: int) -> bool:
    try:
        os.lstat(path, dir_fd=directory)
    except OSError:
        return False
    return True


@functools.cache
def _access_tells() -> bool:
    """Returns whether faccessat(2) can check a link itself; some C libraries cannot."""
    return os.access("/", os.F_OK, effective_ids=_EFFECTIVE, follow_symlinks=False)
