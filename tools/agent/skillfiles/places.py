"""Places: the directories where agents keep skills, in order of precedence."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tools.sandbox.files.sandbox import Sandbox

OWN = Path(__file__).with_name("own")  # the skills that come with Toolcrib

OF_USERS = (
    ("claude", "{claude}/skills"),
    ("agents", "{home}/.agents/skills"),
    ("codex", "{codex}/skills"),
    ("codex", "/etc/codex/skills"),
    ("gemini", "{home}/.gemini/skills"),
    ("opencode", "{config}/opencode/skills"),
    ("cursor", "{home}/.cursor/skills"),
    ("copilot", "{home}/.copilot/skills"),
    ("goose", "{config}/goose/skills"),
    ("amp", "{config}/agents/skills"),
    ("windsurf", "{home}/.codeium/windsurf/skills"),
)
"""Where agents keep their user's skills, according to their documentation."""

OF_PROJECTS = (
    *(".claude/skills", ".agents/skills", ".codex/skills", ".gemini/skills", ".opencode/skills"),
    *(".cursor/skills", ".github/skills"),
)
"""Where agents keep a project's skills, relative to its root."""

MOST_PLUGINS = 100
MOST_LISTED_BYTES = 1_000_000

_OTHERS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of skills."""

    label: str  # distinguishes its skills from others with the same name
    shown: str
    # Whether it is in the root, where its skills are as trusted as the project.
    is_project: bool = field(default=False, kw_only=True)
    # Whether only the owner of the machine may see its skills
    is_personal: bool = field(default=False, kw_only=True)
    is_own: bool = field(default=False, kw_only=True)  # whether its skills come with Toolcrib
    server: str = field(default="", kw_only=True)  # the other server; empty for local files


@dataclass(frozen=True, slots=True)
class SkillPlace(Origin):
    """A directory that may have skills in it."""

    path: Path  # the directory, absolute
    sandbox: Sandbox  # the files it belongs to; paths that lead out are not opened
    is_named: bool = field(default=False, kw_only=True)  # whether the settings name it


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillPlaces:
    """Every place, looked up each time: plugins come and go."""

    files: Sandbox  # the files inside the root
    machine: Sandbox  # all files that tools may touch
    directories: Sequence[Path] = ()  # the directories in the settings
    discover: bool = True  # whether to include the directories of other agents
    home: Path | None = None  # the user's home directory, if any
    # Environment variables, which tell where some agents keep their files.
    variables: Mapping[str, str]

    def __iter__(self) -> Iterator[SkillPlace]:
        """Yields the places of the settings, Toolcrib, the user, plugins and the project.

        Most of them do not exist; skipping those here only saves time.
        """
        root = os.path.realpath(self.files.root)
        for path in self.directories:
            label = slug(path.name if path.name != "skills" else path.parent.name)
            yield self._elsewhere(_Wanted(label, path, _tilde(path, self.home)), root, named=True)
        # Even if Toolcrib is installed inside the root, these skills are its own.
        yield SkillPlace("toolcrib", "toolcrib", OWN, self.machine, is_own=True)
        if not self.discover:
            return
        for wanted in () if self.home is None else self._of_user(self.home):
            if os.path.isdir(wanted.path):  # noqa: PTH112  # the other raises where it may not look
                yield self._elsewhere(wanted, root)
        for relative in OF_PROJECTS:
            if os.path.isdir(self.files.root / relative):  # noqa: PTH112  # the same
                agent = relative.partition("/")[0].removeprefix(".")
                yield self._in_root(f"project-{agent}", relative)

    def _of_user(self, home: Path) -> Iterator[_Wanted]:
        claude = self._path_from("CLAUDE_CONFIG_DIR", home / ".claude")
        named = {
            "home": home,
            "claude": claude,
            "codex": self._path_from("CODEX_HOME", home / ".codex"),
            "config": self._path_from("XDG_CONFIG_HOME", home / ".config"),
        }
        for label, written in OF_USERS:
            path = Path(written.format_map(named))
            yield _Wanted(label, path, _tilde(path, home))
        for plugin, path in _claude_plugins(claude):
            name = slug(plugin)
            yield _Wanted(name, path / "skills", f"plugin {name} of Claude Code")
        for path in _subdirectories(home / ".gemini" / "extensions"):
            name = slug(path.name)
            yield _Wanted(name, path / "skills", f"extension {name} of Gemini CLI")

    def _path_from(self, variable: str, usual: Path) -> Path:
        given = Path(self.variables.get(variable, ""))
        return given if given.is_absolute() else usual

    def _elsewhere(self, wanted: _Wanted, root: str, *, named: bool = False) -> SkillPlace:
        """Returns a place anywhere on disk; inside the root, it belongs to the project."""
        real = os.path.realpath(wanted.path)
        if f"{real}/".startswith(f"{root}/"):
            return self._in_root(wanted.label, os.path.relpath(real, root), named=named)
        return SkillPlace(
            wanted.label,
            wanted.shown,
            wanted.path,
            self.machine,
            is_personal=not named,
            is_named=named,
        )

    def _in_root(self, label: str, relative: str, *, named: bool = False) -> SkillPlace:
        """Returns a place of the project, whose links cannot lead out of the root."""
        path = self.files.root / relative
        shown = f"project {relative}"
        return SkillPlace(label, shown, path, self.files, is_project=True, is_named=named)


class _Wanted(NamedTuple):
    """A directory to search, with its label and display name."""

    label: str
    path: Path
    shown: str


def slug(text: str) -> str:
    """Converts a text to a valid skill name: lowercase letters, digits and single hyphens."""
    return _OTHERS.sub("-", text.casefold()).strip("-")[:64].rstrip("-") or "skill"


def _tilde(path: Path, home: Path | None) -> str:
    if home is not None and path.is_relative_to(home):
        return f"~/{path.relative_to(home)}"
    return str(path)


def _claude_plugins(claude: Path) -> Iterator[tuple[str, Path]]:
    """Yields the enabled plugins of Claude Code and their directories."""
    enabled = _table(_read(claude / "settings.json"), "enabledPlugins")
    plugins = _table(_read(claude / "plugins" / "installed_plugins.json"), "plugins")
    for name, installed in list(plugins.items())[:MOST_PLUGINS]:
        if enabled.get(name) is False:
            continue
        for each in (installed if isinstance(installed, list) else [installed])[:MOST_PLUGINS]:
            path = each.get("installPath") if isinstance(each, dict) else None
            if isinstance(path, str) and "\0" not in path and Path(path).is_absolute():
                yield name.partition("@")[0], Path(path)


def _table(found: object, key: str) -> Mapping[str, Any]:
    inner = found.get(key) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else {}


def _read(path: Path) -> object:
    """Reads a JSON file of another program; None if it is missing or unreadable."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_LISTED_BYTES:
            return None
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None


def _subdirectories(path: Path) -> list[Path]:
    try:
        return sorted(each for each in path.iterdir() if each.is_dir())[:MOST_PLUGINS]
    except OSError:
        return []
