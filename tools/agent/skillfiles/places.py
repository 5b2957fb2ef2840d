"""Places: the directories in which agents keep skills, in the order in which they count."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tools.sandbox.files.sandbox import Sandbox

OWN = Path(__file__).with_name("own")
"""The skills that come with the product."""

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
"""Where agents keep the skills of their user, as their documentation has it."""

OF_PROJECTS = (
    *(".claude/skills", ".agents/skills", ".codex/skills", ".gemini/skills", ".opencode/skills"),
    *(".cursor/skills", ".github/skills"),
)
"""Where they keep those of a project, relative to its root."""

MOST_PLUGINS = 100
MOST_LISTED_BYTES = 1_000_000

_OTHERS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where skills are from.

    Attributes:
        label: Tells its skills from others of the same name.
        shown: What it is called to people and models.
        is_project: Whether it is in the root, so that whoever writes there wrote its skills.
        is_personal: Whether only the person whose machine it is may see its skills.
        server: The other server that it is; empty where the skills are files here.
    """

    label: str
    shown: str
    is_project: bool = field(default=False, kw_only=True)
    is_personal: bool = field(default=False, kw_only=True)
    server: str = field(default="", kw_only=True)

    @property
    def is_own(self) -> bool:
        """Whether its skills come with the product."""
        return False


@dataclass(frozen=True, slots=True)
class SkillPlace(Origin):
    """A directory that may have skills in it.

    Attributes:
        path: The directory, absolute.
        sandbox: The files that it is among; whatever leads out of them is not opened.
        is_named: Whether the settings name it.
    """

    path: Path
    sandbox: Sandbox
    is_named: bool = field(default=False, kw_only=True)

    @property
    def is_own(self) -> bool:
        """Whether its skills come with the product."""
        return self.path == OWN


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillPlaces:
    """Every place, looked up anew: plugins come and go.

    Attributes:
        files: The files beneath the root.
        machine: All files, without those that no tool may touch.
        directories: Those that the settings name.
        discover: Whether those of other agents count.
        home: The home directory of the user; None where there is none.
        variables: Those of the environment, which say where some agents keep their files.
    """

    files: Sandbox
    machine: Sandbox
    directories: Sequence[Path] = ()
    discover: bool = True
    home: Path | None = None
    variables: Mapping[str, str]

    def __iter__(self) -> Iterator[SkillPlace]:
        """The places of the settings, our own, the user's, those of plugins, the project's.

        Most are not there; that they are not is no more than a saving.
        """
        root = os.path.realpath(self.files.root)
        for path in self.directories:
            label = slug(path.name if path.name != "skills" else path.parent.name)
            yield self._elsewhere(_Wanted(label, path, _tilde(path, self.home)), root, named=True)
        # In an installation beneath the root, too, nobody else wrote these.
        yield SkillPlace("toolcrib", "toolcrib", OWN, self.machine)
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
        claude = self._given("CLAUDE_CONFIG_DIR", home / ".claude")
        named = {
            "home": home,
            "claude": claude,
            "codex": self._given("CODEX_HOME", home / ".codex"),
            "config": self._given("XDG_CONFIG_HOME", home / ".config"),
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

    def _given(self, variable: str, usual: Path) -> Path:
        given = Path(self.variables.get(variable, ""))
        return given if given.is_absolute() else usual

    def _elsewhere(self, wanted: _Wanted, root: str, *, named: bool = False) -> SkillPlace:
        """A place that may lie anywhere; where it is beneath the root, it is of the project."""
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
        """A place of the project, from which no link leads out of the root."""
        path = self.files.root / relative
        shown = f"project {relative}"
        return SkillPlace(label, shown, path, self.files, is_project=True, is_named=named)


class _Wanted(NamedTuple):
    """A directory to look into, by what its skills are told apart and what it is called."""

    label: str
    path: Path
    shown: str


def slug(text: str) -> str:
    """A name as skills have it: small letters, digits and single hyphens."""
    return _OTHERS.sub("-", text.casefold()).strip("-")[:64].rstrip("-") or "skill"


def _tilde(path: Path, home: Path | None) -> str:
    if home is not None and path.is_relative_to(home):
        return f"~/{path.relative_to(home)}"
    return str(path)


def _claude_plugins(claude: Path) -> Iterator[tuple[str, Path]]:
    """The plugins of Claude Code that are installed and not switched off, and where they are."""
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
    """What a JSON file of another program says; nothing where it says nothing readable."""
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
