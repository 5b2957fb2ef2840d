"""Describes one MCP client: its files, the form of a server in them, its habits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from server.clients.pieces import Format

COMMON = ("mcpServers",)
"""The table that many clients use: it identifies none of them."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A command that starts a server."""

    command: str
    args: tuple[str, ...]

    @property
    def entry(self) -> dict[str, Any]:
        """The form that most clients read."""
        return {"command": self.command, "args": list(self.args)}

    @property
    def words(self) -> list[str]:
        """The program and its arguments in one list."""
        return [self.command, *self.args]


class Root(StrEnum):
    """Where a client's agent works if the user names no root."""

    PROJECT = "project"  # the client starts servers in the project: no --root is needed
    WORKSPACE = "workspace"  # the client replaces ${workspaceFolder}, in a project's file
    DOCUMENTS = "documents"  # a desktop application, which starts servers anywhere


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client; in paths, `{config}` and similar stand for folders that vary."""

    name: str
    title: str
    # its files for all projects, with a pattern such as `profiles/*`; the first that exists counts
    user: tuple[str, ...] = ()
    project: tuple[str, ...] = ()  # its files in a project
    # paths to the table of servers; of those in a file, the first that exists counts
    tables: tuple[tuple[str, ...], ...] = (COMMON,)
    kind: Format = Format.JSON
    shape: Callable[[Launch], dict[str, Any]] = field(default=lambda launch: launch.entry)
    # the files among `user` and `project` that install may write; empty means all
    written: tuple[str, ...] = ()
    # paths that exist if the client was used on this machine, in addition to the files' folders
    markers: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()  # patterns of the names with which it connects
    aliases: tuple[str, ...] = ()
    root: Root = Root.PROJECT
    comments: tuple[str, ...] = ()  # why the entry has more than a command
    hint: str = ""  # what the user must do before the server is used
    project_hint: str = ""  # the same, for the servers in a project's files
    hook_hint: str = ""  # the same, before its hooks run
    timeout_unit: float | None = None  # unit of `timeout` in seconds; None if undocumented
    bare_variables: bool = False  # whether `$NAME` is a variable in addition to `${NAME}`

    def looked_for(self, environ: Mapping[str, str]) -> list[Path]:
        """Returns the paths of which one exists if the client is on this machine."""
        return [placed(each, environ) for each in self.markers]

    def is_found(self, environ: Mapping[str, str]) -> bool:
        """Returns whether the client was used on this machine."""
        return any(os.path.exists(each) for each in self.looked_for(environ))  # noqa: PTH110  # does not raise

    def file_to_write(self, environ: Mapping[str, str], project: Path | None) -> Path | None:
        """Returns the file for a server: one that exists, or else the client's usual one."""
        patterns = self.user if project is None else self.project
        writable = [each for each in patterns if not self.written or each in self.written]
        if project is None:
            places = [placed(each, environ) for each in writable if "*" not in each]
        else:
            places = [project / each for each in writable]
        there = [each for each in places if os.path.lexists(each)]
        homes = [each for each in places if each.parent.is_dir()]
        return next(iter([*there, *homes, *places]), None)


def placed(pattern: str, environ: Mapping[str, str]) -> Path:
    """Returns a path of the table on this machine."""
    filled = pattern.format(**_folders(environ))
    return Path(os.path.expanduser(filled))  # noqa: PTH111  # does not raise without a home


def _folders(environ: Mapping[str, str]) -> dict[str, str]:
    config = environ.get("XDG_CONFIG_HOME") or "~/.config"
    mac = sys.platform == "darwin"
    return {
        "config": "~/.config" if mac else config,
        "support": "~/Library/Application Support" if mac else config,
        "zed": "~/Library/Application Support/Zed" if mac else f"{config}/zed",
        "claude": environ.get("CLAUDE_CONFIG_DIR") or "~",
        "claude_settings": environ.get("CLAUDE_CONFIG_DIR") or "~/.claude",
        "codex": environ.get("CODEX_HOME") or "~/.codex",
        "grok": environ.get("GROK_HOME") or "~/.grok",
        "kimi": environ.get("KIMI_CODE_HOME") or "~/.kimi-code",
        "cline": environ.get("CLINE_DIR") or "~/.cline",
        "opencode": f"{environ.get('XDG_CONFIG_HOME') or '~/.config'}/opencode",
    }
