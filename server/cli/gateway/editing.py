"""`toolcrib servers add`, `remove`, `enable`, `disable` and `undo`: edit the settings file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from server.cli.clients.install import DryRun, Yes, agrees, short, show_diff
from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, ServerArgument
from server.cli.terminal.screen import echo, fail, wrapped
from server.mcp.visible import visible

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
EMPTY = "# Settings of Toolcrib.\n"
"""Written instead of an empty file, which a running server would reject as damaged."""


def add(  # noqa: PLR0913, PLR0917  # one parameter an option
    name: Annotated[str, typer.Argument(help="New name: a-z, 0-9, single - and _.")],
    words: Annotated[
        list[str], typer.Argument(metavar="URL | -- COMMAND...", help="Its URL, or its command.")
    ],
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Variable for it, such as 'KEY=${KEY}'; repeat."),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Header sent to its URL; repeat.")
    ] = None,
    lazy: Annotated[bool, typer.Option("--lazy", help="Start it on its first use.")] = False,
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Trust its claims about its tools.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    config: ConfigOption = None,
) -> None:
    """Add a server: shows the change and asks first."""
    from server.cli.gateway.import_servers import validate
    from server.clients.entries import InvalidEntryError
    from server.settings.file import NamedTable

    edit = _Edit(config)
    _check_name(name, edit)
    fields: dict[str, Any] = {}
    if len(words) == 1 and _ADDRESS.match(words[0]):
        if not words[0].startswith(("http://", "https://")):
            fail(visible(f"{words[0]!r} is not a URL of a server: use http:// or https://."))
        fields["url"] = words[0]
    else:
        fields |= {"command": words[0]} | ({"args": words[1:]} if words[1:] else {})
    for key, given in (("env", env), ("headers", header)):
        if given:
            fields[key] = dict(_pair(each, key) for each in given)
    fields |= {"lazy": True} if lazy else {}
    fields |= {"trusted": True} if trusted else {}
    try:
        server = validate(fields)
    except InvalidEntryError as error:
        fail(visible(f"{name} was not added: {error}."))
    for warning in _warnings(fields):
        echo(wrapped(visible(warning)), err=True)
    _check_address(server, edit)
    edit.text = edit.file.with_tables("servers", [NamedTable(name, fields)])
    if edit.write(f"Added {name}.", dry_run=dry_run, yes=yes):
        echo(wrapped(f"To try it: `{invocation()} servers test {name}`"))


def remove(
    name: ServerArgument, dry_run: DryRun = False, yes: Yes = False, config: ConfigOption = None
) -> None:
    """Remove a server from the settings: shows the change and asks first."""
    edit = _Edit(config, name)
    edit.text = edit.file.without_table("servers", name)
    edit.write(f"Removed {name}.", dry_run=dry_run, yes=yes)


def enable(
    name: ServerArgument, dry_run: DryRun = False, yes: Yes = False, config: ConfigOption = None
) -> None:
    """Enable a server that is in the settings."""
    edit = _Edit(config, name)
    edit.text = edit.file.with_value(f"servers.{name}.enabled", None)
    edit.write(f"Enabled {name}.", dry_run=dry_run, yes=yes)


def disable(
    name: ServerArgument, dry_run: DryRun = False, yes: Yes = False, config: ConfigOption = None
) -> None:
    """Disable a server, and keep its settings."""
    edit = _Edit(config, name)
    edit.text = edit.file.with_value(f"servers.{name}.enabled", value=False)
    edit.write(f"Disabled {name}.", dry_run=dry_run, yes=yes)


def undo(dry_run: DryRun = False, yes: Yes = False, config: ConfigOption = None) -> None:
    """Undo the last of these changes that is not undone yet."""
    from server.clients.backups import backups_of

    edit = _Edit(config)
    kept = backups_of(edit.file.path.resolve())
    if not kept:
        fail(f"{short(edit.file.path)} has no earlier version to restore.")
    edit.text = kept[-1].read_bytes().decode(errors="replace")
    if edit.write("Undone.", dry_run=dry_run, yes=yes, backup=False):
        kept[-1].unlink(missing_ok=True)


class _Edit:
    """One change of the settings file: shown, checked, agreed on, and then written."""

    def __init__(self, config: Path | None, name: str = "") -> None:
        import os

        from server.settings.file import SettingsFile
        from server.settings_file import settings_path

        self.file = SettingsFile(settings_path(config, os.environ)[0])
        self.text = self.file.text
        there = self.file.tables_in("servers")
        if name and name not in there:
            known = ", ".join(there) or "none"
            fail(visible(f"{name!r} is not a server in {self.file.path}; there are: {known}."))

    def write(self, done: str, *, dry_run: bool, yes: bool, backup: bool = True) -> bool:
        """Shows the change, asks, and writes it; returns whether it was written."""
        from server.clients.backups import back_up, prune
        from server.clients.pieces import FileChange
        from server.mcp.profiles import check_profiles
        from server.settings.file import PRIVATE
        from server.settings.sources import check_text

        text = self.text if self.text.strip() else EMPTY
        path, before = self.file.path, self.file.text
        if text == before:
            echo("Nothing had to be changed.")
            return False
        settings = check_text(text, path)
        check_profiles(settings)
        echo(wrapped(short(path)))
        show_diff(FileChange(path, before.encode(), text.encode()))
        if not agrees(1, dry_run=dry_run, yes=yes):
            return False
        target = path.resolve()
        if backup and before:
            back_up(target, before.encode())
        self.file.write(text, mode=PRIVATE)
        prune(target, "")
        echo(done)
        source = settings.source_of("servers")
        if source.startswith("environment"):
            echo(wrapped(f"It has no effect while servers come from the {source}."), err=True)
        if backup and before:
            echo(wrapped(f"To undo: `{invocation()} servers undo`"))
        return True


def _check_name(name: str, edit: _Edit) -> None:
    from pydantic import TypeAdapter, ValidationError

    from server.clients.dialects import fitted
    from server.settings.group import ServerName

    there = edit.file.tables_in("servers")
    try:
        TypeAdapter(ServerName).validate_python(name)
    except ValidationError:
        fail(
            visible(
                f"{name!r} is not a valid name: use a-z, 0-9, single - and _, 30 characters at"
                f" most, such as {fitted(name, there)}."
            )
        )
    if name in there:
        fail(
            f"{name!r} is already a server in {short(edit.file.path)}: choose another name, such as"
            f" {fitted(name, there)}, or remove it first (`{invocation()} servers remove {name}`)."
        )


def _pair(given: str, key: str) -> tuple[str, str]:
    name, separator, value = given.partition("=")
    if not (name and separator):
        option = "--header" if key == "headers" else "--env"
        raise typer.BadParameter(f"{given!r} is not KEY=VALUE.", param_hint=f"'{option}'")
    return name, value


def _warnings(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yields warnings about secrets that were typed, and variables that the shell replaced."""
    for key, option in (("env", "--env"), ("headers", "--header")):
        for name, value in fields.get(key, {}).items():
            variable = re.sub(r"\W", "_", name).upper()
            instead = f"Better: {option} '{name}=${{{variable}}}', in single quotes."
            if not value:
                yield f"{name} is empty; a shell replaces ${{...}} outside single quotes. {instead}"
            elif "${" not in value and _is_secret(f"{name}={value}"):
                yield f"{name} looks like a secret. It is now in your shell's history. {instead}"
    words: Sequence[str] = (fields.get("url", ""), *fields.get("args", ()))
    if any("${" not in each and _is_secret(each) for each in (*words, " ".join(words))):
        yield (
            "Its address or arguments contain what looks like a secret. Better: a variable, written"
            " as '${NAME}' in single quotes."
        )


def _is_secret(text: str) -> bool:
    from tools.core.audit.secret_patterns import redacted_text

    return redacted_text(text, 2 * len(text) + 100) != text


def _check_address(server: Any, edit: _Edit) -> None:  # noqa: ANN401  # imported late
    """Ends the command if the server could never be reached; warns of what cannot be read."""
    import os

    from server.cli.checks.servers import check_address, check_references
    from server.composition.machine import references_of
    from server.settings.sources import check_text
    from tools.core.errors import UnavailableError

    references = references_of(check_text(edit.file.text, edit.file.path), os.environ)
    try:
        check_references(server, references)
    except ValueError as error:
        echo(wrapped(visible(str(error))), err=True)
    try:
        check_address(server, references)
    except UnavailableError:  # a variable that is not set here, as reported above
        return
    except (OSError, ValueError) as error:
        fail(visible(f"Nothing was added. {error}"))
