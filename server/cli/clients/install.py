"""`toolcrib install` and `uninstall`: add this server to MCP clients, and remove it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.cli.terminal.screen import echo, fail, forget_typed, wrapped
from server.mcp.visible import visible, visible_lines
from tools.answers.directory import counted

if TYPE_CHECKING:
    from server.clients.client import Client
    from server.clients.launch import Wanted
    from server.clients.pieces import FileChange, Piece, Plan, Refusal
    from server.settings import Settings

_Clients = Annotated[
    list[str] | None,
    typer.Argument(metavar="CLIENT", help="Such as cursor; by default, those found here."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes; write nothing.")]
_Project = Annotated[
    bool, typer.Option("--project", help="Write the files of the project in this directory.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]

MOST_LINES = 60
"""Maximum number of diff lines shown of a file."""

MOST_CHARACTERS = 500
"""Maximum length of a diff line shown."""


def install(  # noqa: PLR0913, PLR0917  # one parameter an option
    clients: _Clients = None,
    project: _Project = False,
    root: RootOption = None,
    no_files: Annotated[
        bool, typer.Option("--no-files", help="Let agents work in none of your directories.")
    ] = False,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the entry, to copy it; write nothing.")
    ] = False,
    only_link: Annotated[
        bool, typer.Option("--link", help="Print links that Cursor, VS Code and goose open.")
    ] = False,
    no_hooks: Annotated[
        bool, typer.Option("--no-hooks", help="Leave out the hooks that fill the memory.")
    ] = False,
    hooks_url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Send what hooks report to the server that runs there, such as"
            " http://127.0.0.1:8765, where a client can (Claude Code).",
        ),
    ] = "",
    plugin: Annotated[
        bool, typer.Option("--plugin", help="Add a plugin with the client's own command instead.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Add this server to MCP clients; shows the changes and asks first."""
    from server.cli.clients.copies import print_copies
    from server.cli.clients.plugins import add_plugins, clients_without
    from server.clients.pieces import plan
    from server.clients.receipts import Receipts

    if hooks_url and not hooks_url.startswith(("http://", "https://")):
        raise typer.BadParameter(
            f"--hooks-url {hooks_url!r} does not begin with http:// or https://."
        )
    settings, wanted = _wanted(root, data_dir, config, project=project, no_files=no_files)
    if only_print or only_link:
        print_copies(_clients_named(clients or ()), wanted, links=only_link)
        return
    chosen = _clients_named(clients) if clients else _clients_here(wanted)
    agreed = partial(agrees, dry_run=dry_run, yes=yes)
    hooks = (lambda _: ()) if no_hooks else partial(_hooks, wanted=wanted, url=hooks_url)
    if plugin:
        _show_roots(chosen, wanted, settings)
        if add_plugins(chosen, wanted, settings.data_dir, agreed, hooks):
            _finish(
                {each.name: wanted.launch(each).words for each in chosen},
                wanted,
                hooks=not no_hooks,
            )
        return
    chosen = clients_without(chosen, settings.data_dir)
    made = plan(_pieces(chosen, wanted, hooks), wanted.own)
    for client in chosen:
        copy = f"`{invocation()} install --print {client.name}`"
        advice = f"Correct the file, or copy what {copy} prints."
        _show(client, made, advice)
    _show_roots(chosen, wanted, settings)
    refused = list(made.refusals)
    if made.changes and agreed(sum(each.is_needed for each in made.changes)):
        more = Receipts(settings.data_dir).apply(made.changes)
        _report(made.changes, more)
        refused += more
    if not dry_run:
        working = [each for each in chosen if not any(each.name in it.clients for it in refused)]
        _finish(
            {each.name: wanted.configured(each) for each in working}, wanted, hooks=not no_hooks
        )
    if refused:
        sys.exit(1)


def uninstall(
    clients: _Clients = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Remove this server from MCP clients, and restore their files."""
    from server.cli.clients.plugins import added_plugins, remove_plugin
    from server.clients.receipts import Receipts
    from server.clients.table import CLIENTS

    settings, wanted = _wanted(None, data_dir, config)
    names = [each.name for each in _clients_named(clients)] if clients else list(CLIENTS)
    receipts = Receipts(settings.data_dir)
    made = receipts.plan_undo(names, wanted.own)
    plugins = added_plugins([CLIENTS[name] for name in names], settings.data_dir)
    for client in plugins:
        echo(f"{client.title}: its own command removes the plugin")
    if not made.changes and not made.refusals and not plugins:
        echo("`install` has written nothing that is still there.")
    for name in names:
        _show(CLIENTS[name], made, "Correct the file and try again, or remove the entry by hand.")
    refused = list(made.refusals)
    kept: list[Client] = []
    count = sum(each.is_needed for each in made.changes) + len(plugins)
    if (made.changes or plugins) and agrees(count, dry_run=dry_run, yes=yes):
        kept = [each for each in plugins if not remove_plugin(each, settings.data_dir)]
        more = receipts.apply(made.changes)
        refused += more
        if made.changes:
            _report(made.changes, more)
    if not dry_run:
        _remove_rules(names, settings)
        _tell_left(names, wanted)
    if refused or kept:
        sys.exit(1)


def _wanted(
    root: Path | None,
    data_dir: Path | None,
    config: Path | None,
    *,
    project: bool = False,
    no_files: bool = False,
) -> tuple[Settings, Wanted]:
    from server.clients.launch import Wanted
    from server.clients.locations import OwnAddress
    from server.settings.group import OWN_FILES
    from server.settings.settings import DEFAULT_SOURCE
    from server.settings.sources import load
    from server.settings_file import usual_path

    if no_files and root is not None:
        raise typer.BadParameter("--root and --no-files exclude each other.")
    settings = load({"root": root, "data_dir": data_dir}, config_file=config)
    usual = settings.data_dir / OWN_FILES if no_files else settings.root

    def is_given(key: str) -> bool:
        # In the terminal: clients do not inherit its variables.
        return settings.source_of(key) not in {DEFAULT_SOURCE, str(settings.config_file)}

    options: list[str] = []
    if is_given("data_dir"):
        options += ["--data-dir", str(settings.data_dir.absolute())]
    if settings.config_file not in {None, usual_path()}:
        options += ["--config", str(settings.config_file)]
    return settings, Wanted(
        dict(os.environ),
        OwnAddress(settings.http.host, settings.http.port),
        tuple(options),
        usual if no_files or is_given("root") else None,
        usual if settings.source_of("root") == str(settings.config_file) else None,
        Path.cwd() if project else None,
    )


def _clients_named(names: Sequence[str]) -> list[Client]:
    from server.clients.table import CLIENTS, client_named

    found: dict[str, Client] = {}
    for name in names:
        client = client_named(name)
        if client is None:
            raise typer.BadParameter(
                f"{name!r} is not a client that this command knows. Known are:"
                f" {', '.join(CLIENTS)}. For another one, `{invocation()} install --print`"
                " prints the entry.",
                param_hint="'CLIENT'",
            )
        found[client.name] = client
    return list(found.values())


def _clients_here(wanted: Wanted) -> list[Client]:
    from server.clients.table import found_clients

    found = [each for each in found_clients(wanted.variables) if wanted.file(each) is not None]
    if not found:
        fail(
            "No MCP client was found on this machine. Name one, such as"
            f" `{invocation()} install cursor`, or copy the entry that"
            f" `{invocation()} install --print` shows."
        )
    return found


def _pieces(
    clients: Iterable[Client], wanted: Wanted, hooks: Callable[[Client], Iterable[Piece]]
) -> Iterator[Piece]:
    for client in clients:
        file = wanted.file(client)
        if file is None:
            raise typer.BadParameter(
                f"{client.title} has no files in projects: leave out --project."
            )
        yield wanted.entry(client, file)
        yield from hooks(client)


def _hooks(client: Client, wanted: Wanted, url: str) -> Iterable[Piece]:
    from server.clients.launch import own_launch
    from server.hooks.registration import hook_pieces

    return hook_pieces(
        client.name,
        own_launch(wanted.variables).words,
        wanted.project,
        wanted.options,
        wanted.variables,
        url=url.rstrip("/").removesuffix("/mcp"),
    )


def _show(client: Client, plan: Plan, advice: str) -> None:
    """Shows what changes in a client's files, and the files that are left alone."""
    for change in plan.changes:
        if client.name not in change.clients[:1]:  # a file of two clients is shown once
            continue
        also = " (new file)" if change.before is None else ""
        done = f": {change.note}" if change.note else also if change.is_needed else ": up to date"
        echo(wrapped(f"{client.title}  {short(change.path)}{done}"))
        if change.after is None:  # a file of ours that is removed
            continue
        show_diff(change)
    for refusal in plan.refusals:
        if client.name in refusal.clients[:1]:
            echo(wrapped(f"{client.title}  {short(refusal.path)} is left as it is:"))
            echo(wrapped(f"  {visible(refusal.reason)}."))
            echo(wrapped(f"  {advice}"))


def show_diff(change: FileChange) -> None:
    """Shows the changed lines of a file, without secrets."""
    from storage.index.bounded import clip
    from tools.core.audit.secret_patterns import redacted_text

    lines = change.diff(lambda line: redacted_text(line, 2 * len(line) + MOST_CHARACTERS))
    for line in lines[:MOST_LINES]:
        echo(wrapped(visible_lines(f"  {clip(line, MOST_CHARACTERS)}")))
    if len(lines) > MOST_LINES:
        echo(f"  … and {len(lines) - MOST_LINES} more lines")


def agrees(count: int, *, dry_run: bool, yes: bool) -> bool:
    """Asks once, if there is something to write and nothing has answered yet."""
    if dry_run:
        echo(f"Nothing was written: {counted(count, 'file')} would change.")
        return False
    if not count:
        return True  # receipts may need an update
    if yes:
        return True
    if not sys.stdin.isatty():
        fail("This is not a terminal: add --yes to write, or --dry-run to only look.")
    forget_typed()
    typer.confirm(f"Change {counted(count, 'file')}?", abort=True)
    return True


def _report(changes: Iterable[FileChange], refused: Sequence[Refusal]) -> None:
    left = {each.path for each in refused}
    done = [each for each in changes if each.is_needed and each.path not in left]
    if not done:
        echo("Nothing had to be changed.")
    elif any(each.note for each in done):
        echo(f"Changed {counted(len(done), 'file')}.")
    else:
        echo(
            f"Changed {counted(len(done), 'file')}; those that existed have a backup next to them."
        )
    for each in refused:
        echo(wrapped(f"Left {short(each.path)}: {each.reason}."), err=True)


def _show_roots(clients: Iterable[Client], wanted: Wanted, settings: Settings) -> None:
    """Says which directory agents get in each client, and how to choose another."""
    from server.clients.launch import words_of
    from server.settings.group import OWN_FILES

    usual = f"the project that it is in, or else {short(settings.data_dir / OWN_FILES)}"
    if wanted.settings_root is not None:
        usual = f"{short(wanted.settings_root)}, by the settings"
    titles: dict[str, list[str]] = {}
    for client in clients:
        file = wanted.file(client)
        words = [] if file is None else words_of(wanted.entry(client, file).value)
        if "serve" in words:
            root = words[words.index("--root") + 1] if "--root" in words[:-1] else ""
            titles.setdefault(short(Path(root)) if root else usual, []).append(client.title)
    for root, named in titles.items():
        echo(wrapped(f"Agents in {', '.join(named)} work on files in {root}."))
    if titles and wanted.root is None:
        echo("To change that: --root DIR, or --no-files for none of yours.")


def _finish(commands: Mapping[str, Sequence[str]], wanted: Wanted, *, hooks: bool) -> None:
    """Tries the command of each client, by its name, and prints the user's next steps."""
    from server.cli.clients.trial import try_commands

    clients = _clients_named(list(commands))
    if not try_commands([(each, commands[each.name]) for each in clients], wanted):
        sys.exit(1)
    for client in clients:
        for hint in (client.hint, client.project_hint if wanted.project else ""):
            if hint:
                echo(wrapped(hint.format(title=client.title)))
        if client.hook_hint and hooks:
            echo(wrapped(client.hook_hint))
    if clients:
        echo(wrapped(f"To undo: `{invocation()} uninstall`"))


def _remove_rules(names: Iterable[str], settings: Settings) -> None:
    """Removes the rules files that hooks wrote into projects."""
    from server.hooks.payloads import CLIENTS
    from server.hooks.rules_file import remove_rules
    from storage.database import RECORD, Database
    from storage.errors import StorageError

    record = settings.data_dir / RECORD
    if not record.exists():
        return
    try:
        with closing(Database(record)) as database:
            for path in remove_rules(database, [each for each in names if each in CLIENTS]):
                echo(wrapped(f"Removed {short(path)}"))
    except StorageError as error:
        echo(f"Rules files that hooks wrote into projects are left: {error.message}", err=True)


def _tell_left(names: Iterable[str], wanted: Wanted) -> None:
    """Names entries of Toolcrib that were written by hand or by another program."""
    from server.clients.dialects import files_of, named_servers
    from server.clients.locations import starts_toolcrib
    from server.clients.table import CLIENTS
    from server.settings import SettingsError

    for name in names:
        files, _ = files_of(CLIENTS[name], Path.cwd(), wanted.variables)
        for file in files:
            try:
                found = named_servers([file], Path.cwd())
            except SettingsError:
                continue
            for each in found:
                if starts_toolcrib(each.entry, wanted.own):
                    title = CLIENTS[name].title
                    echo(wrapped(f"{title} still has {each.name!r} in {short(file.path)}, which"))
                    echo("  `install` did not write: remove it there.")


def short(path: Path) -> str:
    """Returns a path as people write it, with ~ for the home directory."""
    home = Path.home()
    return visible(f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path))
