"""Names of files that other programs obey without asking.

Closed to writes are files that a user's programs obey although the user meant something else: when
opening a directory in an editor, a shell, a debugger or an interpreter, committing, connecting to
another machine, or starting an agent. Files that the project's own build, tests and continuous
integration run (makefiles, package.json, .npmrc, .github/workflows) stay open: running the project
runs them anyway, and writing them is ordinary work. So do texts for agents (AGENTS.md, CLAUDE.md,
.cursor/rules), which no program executes.

A user may allow a file tool to write most of them: `OBEYED`. The others are closed for good.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tools.core.unicode_safety import EMOJI_SELECTOR, INVISIBLE

_FOR_GOOD = ".config/toolcrib .git .hg .jj .repo .sl .svn toolcrib/config.toml"
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
