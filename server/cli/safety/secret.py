"""`toolcrib secret`: keeps the secrets that settings refer to as `${keyring:NAME}`."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption
from server.cli.terminal.screen import echo, fail
from server.mcp.visible import visible

if TYPE_CHECKING:
    from tools.sandbox.secrets.store import SecretStore

MOST_READ = 65_536


class Action(StrEnum):
    """The action of the command."""

    SET = "set"
    LIST = "list"
    REMOVE = "remove"


def secret(
    action: Annotated[
        Action,
        typer.Argument(
            help="set: keep a secret, which is asked for, or read from stdin; list: names, never "
            "values; remove: delete one."
        ),
    ],
    name: Annotated[str, typer.Argument(help="Name of the secret: a-z, 0-9, _ and -.")] = "",
    in_file: Annotated[
        bool,
        typer.Option("--file", help="Keep it in a private file of Toolcrib instead of a keyring."),
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Keep secrets for settings, which refer to them as ${keyring:NAME}."""
    from server.settings.sources import load
    from tools.sandbox.secrets.store import FOLDER, SecretStore

    if (action is Action.LIST) == bool(name):
        raise typer.BadParameter(f"{action} takes {'no' if name else 'a'} name")
    if in_file and action is not Action.SET:
        raise typer.BadParameter(f"{action} takes no --file")
    settings = load({"data_dir": data_dir}, config_file=config)
    store = SecretStore(settings.data_dir / FOLDER)
    match action:
        case Action.SET:
            settings.create_directories()
            _set(store, name, in_file=in_file)
        case Action.REMOVE:
            store.remove(name)
            echo(f"Removed {name}.")
        case Action.LIST:
            found = list(store.names())
            for each, is_file in found:
                echo(visible(f"{each}  in {store.directory / each if is_file else 'the keyring'}"))
            if not found:
                echo(f"No secret is kept. To keep one: {invocation()} secret set NAME")


def _set(store: SecretStore, name: str, *, in_file: bool) -> None:
    from tools.core.errors import UnavailableError

    store.check(name)
    is_person = sys.stdin.isatty()
    # A longer value is refused by its length.
    value = typer.prompt(name, hide_input=True) if is_person else sys.stdin.read(MOST_READ)
    value = value.strip()
    try:
        path = store.put(name, value, in_file=in_file)
    except UnavailableError as error:
        where = store.directory / name
        next_step = " ".join(error.next_actions).removeprefix("The user runs: ")
        echo(
            visible(f"No keyring has it: {error.message.rstrip('.')}. {next_step}".rstrip()),
            err=True,
        )
        question = f"Keep it in {where}, which only you can read (mode 600)?"
        if not (is_person and typer.confirm(visible(question))):
            fail(
                visible(
                    f"Nothing was kept. To keep it in {where} (mode 600):"
                    f" {invocation()} secret set {name} --file. Or write a private file yourself,"
                    " and ${file:PATH} in the settings."
                )
            )
        path = store.put(name, value, in_file=True)
    kept = "the keyring" if path is None else f"{path} (mode 600), unencrypted"
    echo(visible(f"Kept {name} in {kept}. Settings refer to it as ${{keyring:{name}}}."))
