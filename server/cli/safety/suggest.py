"""`toolcrib policy suggest`: shows the rules for a project, or writes them to the settings."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
import typer

from server.cli.invocation import invocation
from server.cli.terminal.screen import echo, forget_typed, print_json
from server.composition.policy import counting_file
from server.mcp.visible import visible
from server.settings import SettingsError
from server.settings.file import ListEntries, SettingsFile, add_entries
from server.settings.settings import DEFAULT_SOURCE
from tools.answers.directory import counted
from tools.sandbox.processes.models import SandboxMode

if TYPE_CHECKING:
    from server.settings import Settings

_RULES = Path(__file__).with_name("suggested_rules.toml")
_PACKAGES = "packages"
"""The package registries, as `system.network` names them."""

_MOST_BYTES = 1_000_000
_MOST_NAMES = 50
"""Maximum number of scripts or targets to read."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]*")
_TARGET = re.compile(r"^([A-Za-z0-9][A-Za-z0-9_.-]*)\s*:(?![=:])", re.MULTILINE)
_PYTHON = ("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "uv.lock", "poetry.lock")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_PYTHON_TOOLS = ("ruff", "mypy", "pyright", "black", "isort", "flake8", "pylint", "coverage")
_NODE_TOOLS = {"typescript": "tsc"}  # where the program is not called as its package
_NODE_TOOLS |= {each: each for each in ("eslint", "prettier", "jest", "vitest", "mocha", "vite")}
_LEAVES = ("publish", "release", "deploy", "upload", "push")
"""Words in names of scripts and targets that reach beyond this machine."""


@dataclass(frozen=True, slots=True)
class Project:
    """What the files at the root of a project say about it."""

    traits: frozenset[str]  # python, uv, poetry, node, npm, pnpm, yarn, rust, go, make
    words: Mapping[str, tuple[str, ...]]  # lists that the suggested rules refer to
    leaving: tuple[str, ...]  # commands that reach beyond this machine

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of its kinds."""
        names = {"python": "Python", "node": "Node", "rust": "Rust", "go": "Go", "make": "make"}
        return tuple(name for trait, name in names.items() if trait in self.traits)


def look_at(root: Path) -> Project:
    """Detects the project from the top-level files of a directory, without running any."""

    def has(*names: str) -> bool:
        return any((root / name).is_file() for name in names)

    makefile = next((root / name for name in _MAKEFILES if has(name)), None)
    package = _json(root / "package.json") if has("package.json") else {}
    locks = {"pnpm": "pnpm-lock.yaml", "yarn": "yarn.lock"}
    manager = next((name for name, lock in locks.items() if has(lock)), "npm")
    files = {
        "python": _PYTHON,
        "uv": ("uv.lock",),
        "poetry": ("poetry.lock",),
        "node": ("package.json",),
        manager: ("package.json",),
        "rust": ("Cargo.toml",),
        "go": ("go.mod",),
        "make": _MAKEFILES,
    }
    traits = frozenset(trait for trait, names in files.items() if has(*names))
    read = {word for name in _PYTHON[:4] for word in re.findall(r"[a-z][\w-]*", _text(root / name))}
    scripts = _names(package, "scripts")
    packages = {*_names(package, "dependencies"), *_names(package, "devDependencies")}
    targets = () if makefile is None else _limited(_TARGET.findall(_text(makefile)))
    own = [each for each in scripts if not _leaves(each)]
    runs = [f"{manager} run {each}" for each in own]
    words = {
        "python_tools": tuple(each for each in _PYTHON_TOOLS if each in read),
        "node_runs": (*runs, *(f"{manager} {each}" for each in ("test", "start") if each in own)),
        "node_tools": tuple(_NODE_TOOLS[each] for each in sorted(packages & _NODE_TOOLS.keys())),
        "targets": tuple(each for each in targets if not _leaves(each)),
    }
    publishers = [each for each in ("uv", "poetry", manager) if each in traits]
    leaving = ["git push *", *(f"{each} publish *" for each in publishers)]
    leaving += [f"{manager} run {each} *" for each in scripts if _leaves(each)]
    leaving += ["cargo publish *"] if "rust" in traits else []
    leaving += [f"make {each} *" for each in targets if _leaves(each)]
    return Project(traits, words, tuple(leaving))


def suggested(project: Project, profile: str) -> list[ListEntries]:
    """Returns the settings for a project, in groups with a comment each.

    Only the profile that allows programs needs rules that ask for what leaves the machine. The
    others ask without a rule, and an ask rule would match every command with unknown programs.
    """
    groups = []
    for each in tomllib.loads(_RULES.read_text(encoding="utf-8"))["allow"]:
        commands = list(_commands(each, project))
        if commands and each.get("if", "") in {"", *project.traits}:
            groups.append(_rules("allow", each["comment"], commands))
    if profile == "trusting":
        comment = "Commands that reach beyond this machine."
        groups.append(_rules("ask", comment, project.leaving))
    managers = {"python": "PyPI", "node": "npm", "rust": "crates.io", "go": "Go"}
    named = ", ".join(name for trait, name in managers.items() if trait in project.traits)
    if named:
        comment = f"Registries of packages, to install from ({named})."
        groups.append(ListEntries("system", "network", (_PACKAGES,), comment))
    return groups


def _commands(group: Mapping[str, Any], project: Project) -> Iterator[str]:
    """Yields the commands of a group for every combination of the words that they name."""
    for command in group["commands"]:
        names = re.findall(r"\{(\w+)\}", command)
        for words in product(*(_words(group[name], project) for name in names)):
            yield command.format(**dict(zip(names, words, strict=True)))


def _words(text: str, project: Project) -> Iterator[str]:
    for word in text.split():
        yield from project.words.get(word[1:-1], [word]) if word[:1] == "[" else [word]


def _rules(key: str, comment: str, commands: Iterable[str]) -> ListEntries:
    return ListEntries("policy", key, tuple(f"bash({each})" for each in commands), comment)


def _limited(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))[:_MOST_NAMES]


def _names(package: object, key: str) -> tuple[str, ...]:
    """Returns the keys of a nested object that are plain words."""
    found = package.get(key) if isinstance(package, dict) else None
    return _limited(filter(_NAME.fullmatch, found)) if isinstance(found, dict) else ()


def _json(path: Path) -> object:
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError):
        return {}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _leaves(name: str) -> bool:
    return any(word in name.lower() for word in _LEAVES)


def suggest(settings: Settings, *, write: bool, yes: bool, as_json: bool) -> None:
    """Shows the rules for the project at the root, or writes the missing ones."""
    if settings.policy.profile == "read-only":
        raise SettingsError(
            "The profile is read-only, which runs no programs; rules that allow programs would"
            " contradict it. Choose another policy.profile first."
        )
    project = look_at(settings.root)
    groups = suggested(project, settings.policy.profile)
    if as_json:
        print_json({"kinds": project.kinds, **_values(groups)})
    elif not write:
        echo(_format_groups(settings, project, groups))
    if write:
        _write(settings, groups, yes=yes, quiet=as_json)


def _write(settings: Settings, groups: Sequence[ListEntries], *, yes: bool, quiet: bool) -> None:
    assert settings.config_file is not None  # noqa: S101  # load always sets it
    file = SettingsFile(settings.config_file)
    missing = list(_missing(groups, file.values))
    if not missing:
        echo(visible(f"{file.path} has all of these rules."), err=quiet)
        return
    text = file.with_entries(missing)
    if not quiet:
        name, lines = str(file.path), (file.text.splitlines(), text.splitlines())
        difference = difflib.unified_diff(*lines, name, name, lineterm="")
        echo("\n".join(map(visible, difference)))
    forget_typed()
    if not yes and not typer.confirm(visible(f"Write this into {file.path}?"), err=quiet):
        raise typer.Exit(1)
    settings.create_directories()
    file.write(text)
    number = counted(sum(len(each.entries) for each in missing), "entry")
    echo(visible(f"Added {number} to {file.path}."), err=quiet)
    for line in (*_counting(settings, missing), *_unconfined(settings)):
        echo(line, err=True)


def _counting(settings: Settings, added: Sequence[ListEntries]) -> Iterator[str]:
    origin = settings.source_of("policy.allow")
    if origin not in {DEFAULT_SOURCE, str(settings.config_file)}:
        yield f"Rules have no effect while policy.allow comes from the {origin}."
    elif counting_file(settings) is None:
        yield "They take effect when the server restarts."
    elif any(each.table == "system" for each in added):
        yield "Network settings take effect when the server restarts."


def _missing(
    groups: Sequence[ListEntries], values: Mapping[str, Mapping[str, Any]]
) -> Iterator[ListEntries]:
    """Yields entries that are in no list of their table: the user may have moved a rule."""
    for group in groups:
        lists = [each for each in values.get(group.table, {}).values() if isinstance(each, list)]
        there = {entry for each in lists for entry in each if isinstance(entry, str)}
        if left := tuple(each for each in group.entries if each not in there):
            yield replace(group, entries=left)


def _format_groups(settings: Settings, project: Project, groups: Sequence[ListEntries]) -> str:
    document = tomlkit.document()
    for line in (
        f"Rules for {settings.root} ({', '.join(('Git', *project.kinds))}).",
        f"`{invocation()} policy suggest --write` adds those that",
        f"are missing to {settings.config_file}.",
        *_unconfined(settings),
    ):
        document.add(tomlkit.comment(visible(line)))
    add_entries(document, groups)
    return tomlkit.dumps(document).rstrip()


def _unconfined(settings: Settings) -> Iterator[str]:
    if settings.system.sandbox is not SandboxMode.REQUIRED:
        yield "The rules also apply to unconfined programs, where no confinement works;"
        yield 'with system.sandbox = "required", those do not run.'


def _values(groups: Sequence[ListEntries]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for each in groups:
        found.setdefault(each.table, {}).setdefault(each.key, []).extend(each.entries)
    return found
