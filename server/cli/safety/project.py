"""Detects the kind of a project from the files at its root, without running any."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 1_000_000
_MOST_NAMES = 50
"""Maximum number of scripts or targets to read."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]*")
_TARGET = re.compile(r"^([A-Za-z0-9][A-Za-z0-9_.-]*)\s*:(?![=:])", re.MULTILINE)
_PYTHON = ("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "uv.lock", "poetry.lock")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


@dataclass(frozen=True, slots=True)
class Project:
    """A detected project.

    Attributes:
        python: Whether it is a Python project.
        python_tools: Words in its files, searched for names of tools.
        uv: Whether it uses uv.
        poetry: Whether it uses Poetry.
        node: Its Node package manager: npm, pnpm or yarn; empty without package.json.
        scripts: The scripts of its package.json.
        node_packages: The packages in package.json.
        rust: Whether it is a Rust project.
        go: Whether it is a Go project.
        targets: The targets of its Makefile; None without one.
    """

    python: bool = False
    python_tools: frozenset[str] = frozenset()
    uv: bool = False
    poetry: bool = False
    node: str = ""
    scripts: tuple[str, ...] = ()
    node_packages: frozenset[str] = frozenset()
    rust: bool = False
    go: bool = False
    targets: tuple[str, ...] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of its kinds."""
        found = {
            "Python": self.python,
            "Node": self.node,
            "Rust": self.rust,
            "Go": self.go,
            "make": self.targets is not None,
        }
        return tuple(kind for kind, there in found.items() if there)


def look_at(root: Path) -> Project:
    """Detects the project from the top-level files of a directory."""

    def has(*names: str) -> bool:
        return any((root / name).is_file() for name in names)

    makefile = next((root / name for name in _MAKEFILES if has(name)), None)
    package = _json(root / "package.json") if has("package.json") else {}
    locks = {"pnpm": "pnpm-lock.yaml", "yarn": "yarn.lock"}
    manager = next((name for name, lock in locks.items() if has(lock)), "npm")
    return Project(
        python=has(*_PYTHON),
        python_tools=frozenset(
            word for name in _PYTHON[:4] for word in re.findall(r"[a-z][\w-]*", _text(root / name))
        ),
        uv=has("uv.lock"),
        poetry=has("poetry.lock"),
        node=manager if has("package.json") else "",
        scripts=_names(package, "scripts"),
        node_packages=frozenset(
            name for kind in ("dependencies", "devDependencies") for name in _names(package, kind)
        ),
        rust=has("Cargo.toml"),
        go=has("go.mod"),
        targets=None if makefile is None else tuple(_targets(_text(makefile))),
    )


def _targets(text: str) -> Iterator[str]:
    yield from list(dict.fromkeys(_TARGET.findall(text)))[:_MOST_NAMES]


def _names(package: object, key: str) -> tuple[str, ...]:
    """Returns the keys of a nested object that are plain words."""
    found = package.get(key) if isinstance(package, dict) else None
    names = found if isinstance(found, dict) else {}
    return tuple(name for name in names if _NAME.fullmatch(name))[:_MOST_NAMES]


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
