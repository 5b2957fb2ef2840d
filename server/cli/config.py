"""`toolcrib config`: shows the settings, and changes the settings file for a person."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
import tomllib
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, JsonOption, RootOption
from server.cli.terminal.screen import check_person, echo, fail, print_json, say
from server.mcp.visible import visible, visible_lines
from server.settings.settings import DEFAULT_SOURCE
from server.settings.sources import check_key, check_text, explain, is_secret, load
from server.settings_file import SettingsError, settings_path

if TYPE_CHECKING:
    from server.settings.sources import SettingRow


TAKES_EFFECT = (
    "Running servers apply servers, profiles, policy and functions.paths now; the rest at a start."
)


class Action(StrEnum):
    """The action of the command."""

    SHOW = "show"
    GET = "get"
    SET = "set"
    UNSET = "unset"
    EDIT = "edit"
    PATH = "path"


def config(  # noqa: PLR0913, PLR0917  # one parameter an option
    action: Annotated[
        Action,
        typer.Argument(
            help="show: every setting; get, set or unset one; edit the settings file, which is "
            "checked before it counts; path: print where it is."
        ),
    ] = Action.SHOW,
    key: Annotated[str, typer.Argument(help="Setting, such as search.alpha.")] = "",
    value: Annotated[
        str | None, typer.Argument(help="New value; set asks for it if it is not given.")
    ] = None,
    as_json: JsonOption = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config_file: ConfigOption = None,
) -> None:
    """Show the settings and where each comes from, or change the settings file."""
    _check_usage(action, key, value)
    path, _ = settings_path(config_file, os.environ)
    if action is Action.PATH:
        echo(str(path))
        return
    if action in {Action.SET, Action.UNSET, Action.EDIT}:
        check_person("Changing settings")
        if action is Action.SET and value is None:
            value = typer.prompt(key, hide_input=is_secret(key))
        changed = _edit(path) if action is Action.EDIT else _set(path, key, value)
        if not changed or action is not Action.SET:
            return
    rows = explain(load({"root": root, "data_dir": data_dir}, config_file=config_file))
    if action is Action.SHOW:
        _show(rows, as_json=as_json)
    elif key:
        row = next(row for row in rows if row.key == key)
        if action is Action.GET:
            plain = isinstance(row.value, str) and not as_json
            echo(row.value if plain else json.dumps(row.value, ensure_ascii=False))
        elif row.source != str(path):
            echo(visible(f"It has no effect while {key} comes from the {row.source}."), err=True)


def _check_usage(action: Action, key: str, value: str | None) -> None:
    if action in {Action.GET, Action.SET, Action.UNSET}:
        check_key(key)
    elif key:
        raise typer.BadParameter(f"{action} takes no key")
    if value is not None and action is not Action.SET:
        raise typer.BadParameter(f"{action} takes no value")


def _show(rows: list[SettingRow], *, as_json: bool) -> None:
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    for row in rows:
        value = "not set" if row.value is None else json.dumps(row.value, ensure_ascii=False)
        origin = "dim" if row.source == DEFAULT_SOURCE else "green"
        say((row.key, "bold"), f" = {visible(value)}", (f"  ({visible(row.source)})", origin))
        say(f"    {row.description}")


def _set(path: Path, key: str, value: str | None) -> bool:
    """Sets or takes out one setting; a value that is not TOML is a text."""
    from server.settings.file import PRIVATE, SettingsFile

    file = SettingsFile(path)
    given = None if value is None else _parse(value)
    text = file.with_value(key, given)
    try:
        settings = check_text(text, path)
    except SettingsError as error:
        if given == value:
            raise
        text = file.with_value(key, value)
        try:  # a text that looks like a number or a date
            settings = check_text(text, path)
        except SettingsError:
            raise error from None
    if isinstance(given, str):  # lists may be given with commas, as in the environment
        [meant] = (row.value for row in explain(settings) if row.key == key)
        text = file.with_value(key, meant) if isinstance(meant, list) else text
    if text == file.text:
        echo("Nothing was changed.")
        return False
    file.write(text, mode=PRIVATE if value is not None and is_secret(key) else None)
    verb = f"Took {key} out of" if value is None else f"Set {key} in"
    echo(visible(f"{verb} {path}."))
    echo(TAKES_EFFECT)
    return True


def _parse(value: str) -> Any:  # noqa: ANN401  # any value of TOML
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return value


def _edit(path: Path) -> bool:
    """Lets the user's editor change a copy, until it is valid or given up; mends a broken file."""
    from server.settings.file import replace_text

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        before = path.read_bytes().decode() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}.") from error
    with tempfile.TemporaryDirectory(prefix="toolcrib-config-") as folder:
        copy = Path(folder, path.name)
        copy.write_bytes(before.encode())
        while True:
            try:
                command = [*shlex.split(editor), str(copy)]
                subprocess.run(command, check=True)  # noqa: S603  # the editor of the person
                text = copy.read_bytes().decode()
                check_text(text, path)
                break
            except (OSError, ValueError, subprocess.CalledProcessError) as error:
                fail(visible(f"{editor} failed: {error}. Set EDITOR to another editor."))
            except SettingsError as error:
                echo(visible_lines(error.message), err=True)
                if not typer.confirm("Edit it again? (No keeps the file as it was)", default=True):
                    raise typer.Exit(1) from None
    if text == before:
        echo("Nothing was changed.")
        return False
    replace_text(path, before, text)
    echo(visible(f"Wrote {path}."))
    echo(TAKES_EFFECT)
    return True
