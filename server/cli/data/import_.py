"""`toolcrib import`: imports folders, notes, chats, records, other servers and APIs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.cli.terminal.screen import echo
from server.mcp.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress

    from server.app import App
    from server.cli.data.directory_importer import RecordTally
    from server.cli.data.tally import Outcome, Tally
    from server.cli.data.walk import Folder
    from storage.directory.models import Directory

HINT = "'PATH...'"
RESEARCHERS = "researchers"
"""The directory that has a sample."""

SERVERS = "servers"
"""The first argument that selects the MCP servers of other clients."""

OPENAPI = "openapi"
"""The first argument that precedes the description of an HTTP API."""

MOST_SAID = 10
"""Skipped files reported per cause; the rest are counted."""


def import_(  # noqa: PLR0913, PLR0917  # one parameter an option
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Folders, Markdown vaults, files, exports of ChatGPT, Claude (zip or JSON) or"
            " Toolcrib; or a directory, such as researchers, and files with its records"
            " (JSON, JSONL or CSV); or servers, with --from; or openapi, and the file or address"
            " of a description of an HTTP API.",
        ),
    ],
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Delete what was imported from the folder, or into the directory, and is no"
            " longer there.",
        ),
    ] = False,
    sample: Annotated[
        bool,
        typer.Option("--sample", help="With researchers: import 40 made-up ones to try it."),
    ] = False,
    as_me: Annotated[
        bool,
        typer.Option(
            "--as-me",
            help="With an export of Toolcrib: store it as yours, even if it is someone else's.",
        ),
    ] = False,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="CLIENT|FILE",
            help="With servers: the client whose MCP servers are added to the settings"
            " (claude-desktop, claude-code, vscode, cursor, codex, windsurf, gemini, zed), or a"
            " configuration file.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="With servers: only this one; with openapi: only these operations, by operationId,"
            " tag:TAG or 'GET /path/*'. May be repeated.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="With servers, openapi: replace what has the name.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With servers, openapi: show what would be done.")
    ] = False,
    name: Annotated[
        str, typer.Option("--name", help="With openapi: what the API is to be called.")
    ] = "",
    no_wait: Annotated[
        bool,
        typer.Option(
            "--no-wait",
            help="Return when everything is stored and indexed for keyword search; embedding for"
            " semantic search continues in the background.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Import folders, notes, chats and records; other MCP servers; or HTTP APIs (OpenAPI).

    What is already stored is left as it is. Exits with 1 if nothing or a named file cannot be
    stored.
    """
    if names[0] == OPENAPI and (len(names) > 1 or not Path(OPENAPI).exists()):
        from server.cli.gateway.import_openapi import WantedApi, import_openapi

        api = WantedApi(_description(names), name, tuple(only or ()), replace, dry_run)
        import_openapi(api, config, as_json=as_json)
        return
    if source is not None or only or replace or dry_run:
        from server.cli.gateway.import_servers import Wanted, import_servers

        _check_servers(names, source)
        wanted = Wanted(source or "", tuple(only or ()), replace=replace, dry_run=dry_run)
        import_servers(wanted, config, as_json=as_json)
        return
    from server.cli.data.tally import Tally
    from server.cli.opened import open_app
    from server.cli.terminal.interruption import run

    directories = _directories(config)
    directory = directories.get(names[0])  # a path of that name is written ./name
    paths = _paths(names, directories, sample=sample)
    with open_app(root=root, data_dir=data_dir, config_file=config) as app:
        if directory is not None:
            _import_records(app, directory, paths, prune=prune, as_json=as_json, no_wait=no_wait)
            return
        tally = Tally()
        with _report(app, tally, as_json=as_json, no_wait=no_wait) as progress:
            files = _take_exports(app, paths, tally, progress, as_me=as_me)
            if files:
                run(partial(_import_all, app, files, tally, progress, prune=prune))
    if tally.failed({path.resolve() for path in paths}):
        sys.exit(1)


def _description(names: list[str]) -> str:
    if len(names) != 2:  # noqa: PLR2004  # the word and the description
        raise typer.BadParameter(
            f"name one file or address: `toolcrib import {OPENAPI} openapi.yaml`.", param_hint=HINT
        )
    return names[1]


def _check_servers(names: list[str], source: str | None) -> None:
    if names != [SERVERS]:
        raise typer.BadParameter(
            "--from goes with `toolcrib import servers` alone; --only, --replace and --dry-run with"
            " that and `toolcrib import openapi`.",
            param_hint=HINT,
        )
    if source is None:
        raise _no_source()


def _no_source() -> typer.Exit:
    """Prints the clients that servers can be imported from."""
    from server.cli.gateway.import_servers import importable

    echo("Error: --from is missing: which client has the servers?", err=True)
    for line in importable():
        echo(line, err=True)
    return typer.Exit(2)


def _directories(config: Path | None) -> dict[str, Directory]:
    from server.settings.collections import collections_of
    from server.settings.sources import load

    settings = load({}, config_file=config)
    collections = collections_of(settings.sources, settings.directories, settings.root)
    return {each.name: each for each in collections.directories}


def _paths(names: list[str], directories: Collection[str], *, sample: bool) -> list[Path]:
    from server.cli.data.directory_importer import SAMPLE

    if sample:
        if names != [RESEARCHERS]:
            raise typer.BadParameter(
                f"it goes with `toolcrib import {RESEARCHERS}` alone.", param_hint="'--sample'"
            )
        return [SAMPLE]
    is_directory = names[0] in directories
    paths = [Path(name) for name in names[is_directory:]]
    if not paths:
        raise _no_file(names[0])
    for path in paths:
        if not path.exists():
            if names == [SERVERS]:
                raise _no_source()
            raise _nowhere(path, directories)
        if is_directory and path.is_dir():
            raise typer.BadParameter(
                f"{str(path)!r} is a folder; a file with records is needed.", param_hint=HINT
            )
    return paths


def _nowhere(path: Path, directories: Collection[str]) -> typer.BadParameter:
    from tools.conversion.arguments.validation_errors import nearest

    meant = nearest(path, directories)
    hint = f" Did you mean the directory {meant!r}?" if meant else ""
    return typer.BadParameter(f"Path {str(path)!r} does not exist.{hint}", param_hint=HINT)


def _no_file(name: str) -> typer.BadParameter:
    sample = f", or --sample for {RESEARCHERS} who are made up" if name == RESEARCHERS else ""
    path = f" The path of that name is ./{name}." if Path(name).exists() else ""
    return typer.BadParameter(
        f"{name} is a directory of records: name the file to import into it{sample}.{path}",
        param_hint=HINT,
    )


@contextmanager
def _report(
    app: App, tally: Tally | RecordTally, *, as_json: bool, no_wait: bool
) -> Iterator[Progress]:
    """Shows the progress of an import, embeds what it stored, and prints the summary."""
    from server.cli.data.embedding import embed_in_background
    from server.cli.terminal.interruption import stoppable
    from server.cli.terminal.progress import bars, drain
    from server.cli.terminal.screen import console

    advice = "Stored documents are kept; run the same command again to continue."
    try:
        with stoppable(advice), bars(console()) as progress:
            yield progress
            if no_wait:
                embed_in_background(app)
            else:
                drain(app.library, progress)
    finally:
        if as_json:
            echo(json.dumps(tally.as_json(), ensure_ascii=False))
        else:
            echo("".join(f"{line}\n" for line in tally.lines()), nl=False)


def _import_records(  # noqa: PLR0913  # the options of the command
    app: App,
    directory: Directory,
    files: list[Path],
    *,
    prune: bool,
    as_json: bool,
    no_wait: bool,
) -> None:
    from server.cli.data.directory_importer import (
        SAMPLE,
        DirectoryImporter,
        RecordTally,
    )
    from server.cli.terminal.screen import console, print_line

    if files == [SAMPLE]:
        print_line(console(), f"The people in {SAMPLE} are made up.")
    tally = RecordTally(directory)
    importer = DirectoryImporter(app.library.shelf(app.identity), tally, console())
    records = importer.read(files)
    with _report(app, tally, as_json=as_json, no_wait=no_wait) as progress:
        importer.store(records, progress, prune=prune)


def _take_exports(
    app: App, paths: list[Path], tally: Tally, progress: Progress, *, as_me: bool
) -> list[Path]:
    """Stores Toolcrib exports among the paths; returns the other paths."""
    from server.cli.data.exports import is_export, take_export

    exports = [path for path in paths if is_export(path)]
    if as_me and not exports:
        raise typer.BadParameter(
            "name a file that `toolcrib export` wrote.", param_hint="'--as-me'"
        )
    for path in exports:
        take_export(app, path.resolve(), _make_note(tally, progress), progress, as_me=as_me)
    return [path for path in paths if path not in exports]


def _make_note(tally: Tally, progress: Progress) -> Callable[[Outcome], None]:
    """Returns a callback that counts outcomes and reports why something is skipped."""
    from server.cli.terminal.screen import print_line

    def note(outcome: Outcome) -> None:
        tally.note(outcome)
        if outcome.message and outcome.result != "skipped" and tally.marked <= MOST_SAID:
            print_line(progress.console, f"Note: {outcome.message}")
        if outcome.result == "skipped" and (nth := tally.causes[outcome.cause]) <= MOST_SAID + 1:
            more = "The others with this reason are counted below."
            print_line(
                progress.console, f"Skipped: {outcome.message if nth <= MOST_SAID else more}"
            )

    return note


async def _import_all(
    app: App, paths: list[Path], tally: Tally, progress: Progress, *, prune: bool
) -> None:
    """Stores all files under the paths, each once, by its real path.

    Raises:
        NotFoundError: If there are no files.
    """
    from server.cli.data.importer import Importer
    from server.cli.data.walk import Folder

    def leave_out(reason: str, count: int) -> None:
        tally.left_out[reason] += count

    note = _make_note(tally, progress)
    named = [path.resolve() for path in paths]
    found = {path: [path] for path in named if not path.is_dir()}
    folders = [Folder(path, [app.settings.data_dir.resolve()]) for path in named if path.is_dir()]
    for folder in folders:
        found[folder.path] = _list_files(folder, tally, note)
    files = set(chain.from_iterable(found.values()))
    if not files:
        raise _nothing_in(paths)
    importer = Importer(app, note, leave_out)
    task = progress.add_task("Importing", total=len(files), detail="")
    for file in sorted(files):
        progress.update(task, detail=visible(file.name))
        await importer.take(file)
        progress.advance(task)
    progress.update(task, detail="")
    for folder in folders if prune else ():
        if found[folder.path]:  # an empty folder is usually an unmounted disk
            await anyio.to_thread.run_sync(importer.prune, folder, files)


def _list_files(folder: Folder, tally: Tally, note: Callable[[Outcome], None]) -> list[Path]:
    from server.cli.data.tally import Outcome

    files = list(folder.files())
    tally.passed_over.update(folder.passed_over)
    for error in folder.unlisted:
        message = f"{error.filename!r} cannot be listed: {error.strerror}."
        note(Outcome(Path(error.filename), error.filename, "skipped", message))
    return files


def _nothing_in(paths: list[Path]) -> Exception:
    from tools.core.errors import NotFoundError

    names = ", ".join(repr(str(path)) for path in paths)
    return NotFoundError(
        f"No files in {names}.",
        next_actions=["Name a folder with documents; hidden and ignored files are passed over."],
    )
