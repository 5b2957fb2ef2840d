"""`toolcrib policy suggest`: the rules for a project, shown or written into the settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tomlkit
import typer

from server.cli.invocation import invocation
from server.cli.safety.project import Project, look_at
from server.cli.safety.suggested import suggested
from server.cli.terminal.screen import echo, forget_typed, print_json
from server.composition.current_policy import counting_file
from server.mcp.visible import visible
from server.settings import SettingsError
from server.settings.file import ListEntries, SettingsFile, add_entries
from server.settings.settings import DEFAULT_SOURCE
from storage.locks import locked
from tools.answers.directory import counted
from tools.sandbox.processes.models import SandboxMode

if TYPE_CHECKING:
    from server.settings import Settings


def suggest(settings: Settings, *, write: bool, yes: bool, as_json: bool) -> None:
    """Shows the rules for the project at the root, or writes those that are missing.

    Args:
        settings: The settings.
        write: Whether they are written into the settings file, after a question.
        yes: Whether that is answered already.
        as_json: Whether they are printed as JSON.

    Raises:
        SettingsError: If the profile runs no programs, or the settings file cannot be read, or not
            be written safely.
    """
    if settings.policy.profile == "read-only":
        raise SettingsError(
            "The profile is read-only, which runs no programs; rules that allow them would undo"
            " that. Choose another policy.profile first."
        )
    project = look_at(settings.root)
    groups = suggested(project, settings.policy.profile)
    if as_json:
        print_json({"kinds": project.kinds, **_values(groups)})
    elif not write:
        echo(_shown(settings, project, groups))
    if write:
        _write(settings, groups, yes=yes, quiet=as_json)


def _write(settings: Settings, groups: Sequence[ListEntries], *, yes: bool, quiet: bool) -> None:
    assert settings.config_file is not None  # noqa: S101  # load says where it looked
    file = SettingsFile(settings.config_file)
    missing = list(_missing(groups, file.values))
    if not missing:
        echo(visible(f"{file.path} has all of these rules."), err=quiet)
        return
    text = file.with_entries(missing)
    if not quiet:
        echo("\n".join(map(visible, _difference(file, text))))
    forget_typed()
    if not yes and not typer.confirm(visible(f"Write this into {file.path}?"), err=quiet):
        raise typer.Exit(1)
    settings.create_directories()
    with locked(settings.data_dir / "settings.lock", wait=True):
        if SettingsFile(file.path).text != file.text:
            raise SettingsError(
                f"{file.path} was changed meanwhile. Nothing was written; try again."
            )
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
        yield "They count from the server's next start on."
    elif any(each.table == "system" for each in added):
        yield "The network counts from the server's next start on."


def _missing(
    groups: Sequence[ListEntries], values: Mapping[str, Mapping[str, Any]]
) -> Iterator[ListEntries]:
    """What no list of the table has yet: a rule that the user has put elsewhere stays there."""
    for group in groups:
        lists = [each for each in values.get(group.table, {}).values() if isinstance(each, list)]
        there = {entry for each in lists for entry in each if isinstance(entry, str)}
        if left := tuple(each for each in group.entries if each not in there):
            yield replace(group, entries=left)


def _difference(file: SettingsFile, text: str) -> Iterator[str]:
    name = str(file.path)
    return difflib.unified_diff(file.text.splitlines(), text.splitlines(), name, name, lineterm="")


def _shown(settings: Settings, project: Project, groups: Sequence[ListEntries]) -> str:
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
        yield "The rules count for unconfined programs too, where no confinement works;"
        yield 'with system.sandbox = "required" none runs.'


def _values(groups: Sequence[ListEntries]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for each in groups:
        found.setdefault(each.table, {}).setdefault(each.key, []).extend(each.entries)
    return found
