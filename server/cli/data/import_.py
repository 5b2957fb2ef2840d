"""`toolcrib import`: imports folders, notes, chats, records, other servers and APIs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.cli.terminal.screen import echo
from server.mcp.visible import visible
from tools.core.errors import NotFoundError

if TYPE_CHECKING:
    from rich.progress import Progress

    from server.app import App
    from server.cli.data.directory_importer import RecordTally
    from server.cli.data.importer import Outcome, Tally
    from server.cli.data.walk import Folder
    from storage.directory.models import Directory

Note = Callable[["Outcome"], None]
HINT = "'PATH...'"
RESEARCHERS = "researchers"
"""The directory that has a sample."""

SERVERS = "servers"
"""The first argument that selects the MCP servers of other clients."""

SESSIONS = "sessions"
"""The first argument that selects the sessions that clients have stored."""

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
            " (JSON, JSONL or CSV); or sessions of coding agents on this machine; or servers, with"
            " --from; or openapi, and the file or address of a description of an HTTP API.",
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
        bool, typer.Option("--sample", help="With researchers: import 40 made-up ones to try it.")
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
            help="With sessions: only those of this client (claude-code, codex, gemini, opencode,"
            " copilot)."
            " With servers: the client whose MCP servers are added to the settings"
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
    """Import folders, notes, chats, records and sessions; MCP servers; or HTTP APIs (OpenAPI).

    What is already stored is left as it is.
    Exits with 1 if nothing or a named file cannot be stored.
    """
    chosen = tuple(only or ())
    if names[0] == OPENAPI and (len(names) > 1 or not Path(OPENAPI).exists()):
        from server.cli.gateway.import_openapi import import_openapi
        from server.cli.gateway.import_servers import Wanted

        if len(names) != 2:  # noqa: PLR2004  # the word and the description
            example = f"`toolcrib import {OPENAPI} openapi.yaml`"
            raise typer.BadParameter(f"name one file or address: {example}.", param_hint=HINT)
        import_openapi(Wanted(names[1], chosen, replace, dry_run, name), config, as_json=as_json)
        return
    if names == [SESSIONS] and not Path(SESSIONS).exists():
        from server.cli.data.import_sessions import import_sessions
        from server.cli.opened import open_app

        _refuse_others(chosen, replace, dry_run)
        with open_app(root=root, data_dir=data_dir, config_file=config) as app:
            import_sessions(app, source, as_json=as_json)
        return
    if source is not None or chosen or replace or dry_run:
        from server.cli.gateway.import_servers import Wanted, import_servers

        if names != [SERVERS]:
            raise typer.BadParameter(
                "--from goes with `toolcrib import servers` and `toolcrib import sessions` alone;"
                " --only, --replace and --dry-run with servers and `toolcrib import openapi`.",
                param_hint=HINT,
            )
        if source is None:
            raise _no_source()
        import_servers(Wanted(source, chosen, replace, dry_run), config, as_json=as_json)
        return
    from server.cli.data.importer import Tally
    from server.cli.opened import open_app
    from server.cli.terminal.errors import run
    from server.settings.sources import load

    known = load({}, config_file=config).collections.directories
    directories = {each.name: each for each in known}
    directory = directories.get(names[0])  # a path of that name is written ./name
    paths = _paths(names, directories, sample=sample)
    with open_app(root=root, data_dir=data_dir, config_file=config) as app:
        report = partial(_report, app, as_json=as_json, no_wait=no_wait)
        if directory is not None:
            _import_records(app, directory, paths, report, prune=prune)
            return
        tally = Tally()
        with report(tally) as progress:
            note = _make_note(tally, progress)
            files = _take_exports(app, paths, note, progress, as_me=as_me)
            if files:
                run(partial(_Import(app, tally, progress, note).store, files, prune=prune))
    if tally.failed({path.resolve() for path in paths}):
        sys.exit(1)


def _refuse_others(*options: object) -> None:
    if any(options):
        raise typer.BadParameter("sessions takes only --from.", param_hint=HINT)


def _no_source() -> typer.Exit:
    """Prints the clients that servers can be imported from."""
    from server.cli.gateway.import_servers import importable

    echo("Error: --from is missing: which client has the servers?", err=True)
    for line in importable():
        echo(line, err=True)
    return typer.Exit(2)


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
            from tools.conversion.arguments.validation_errors import nearest

            meant = nearest(path, directories)
            hint = f" Did you mean the directory {meant!r}?" if meant else ""
            raise typer.BadParameter(f"Path {str(path)!r} does not exist.{hint}", param_hint=HINT)
        if is_directory and path.is_dir():
            raise typer.BadParameter(
                f"{str(path)!r} is a folder; a file with records is needed.", param_hint=HINT
            )
    return paths


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
    from server.cli.terminal.errors import stoppable
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


def _import_records(
    app: App,
    directory: Directory,
    files: list[Path],
    report: Callable[[RecordTally], AbstractContextManager[Progress]],
    *,
    prune: bool,
) -> None:
    from server.cli.data.directory_importer import SAMPLE, DirectoryImporter, RecordTally
    from server.cli.terminal.screen import console, print_line

    if files == [SAMPLE]:
        print_line(console(), f"The people in {SAMPLE} are made up.")
    tally = RecordTally(directory)
    importer = DirectoryImporter(app.library.shelf(app.identity), tally, console())
    records = importer.read(files)
    with report(tally) as progress:
        importer.store(records, progress, prune=prune)


def _take_exports(
    app: App, paths: list[Path], note: Note, progress: Progress, *, as_me: bool
) -> list[Path]:
    """Stores Toolcrib exports among the paths; returns the other paths."""
    from server.cli.data.importer import is_export, take_export

    exports = [path for path in paths if is_export(path)]
    if as_me and not exports:
        raise typer.BadParameter(
            "name a file that `toolcrib export` wrote.", param_hint="'--as-me'"
        )
    for path in exports:
        take_export(app, path.resolve(), note, progress, as_me=as_me)
    return [path for path in paths if path not in exports]


def _make_note(tally: Tally, progress: Progress) -> Note:
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


@dataclass(frozen=True, slots=True)
class _Import:
    """One import of files and folders."""

    app: App
    tally: Tally
    progress: Progress
    note: Note

    async def store(self, paths: list[Path], *, prune: bool) -> None:
        """Stores all files under the paths, each once, by its real path."""
        from server.cli.data.importer import Importer
        from server.cli.data.walk import Folder

        def leave_out(reason: str, count: int) -> None:
            self.tally.left_out[reason] += count

        named = [path.resolve() for path in paths]
        own = [self.app.settings.data_dir.resolve()]
        folders = [Folder(path, own) for path in named if path.is_dir()]
        found = {path: [path] for path in named if not path.is_dir()}
        found |= {folder.path: self._list_files(folder) for folder in folders}
        files = set(chain.from_iterable(found.values()))
        if not files:
            names = ", ".join(repr(str(path)) for path in paths)
            advice = "Name a folder with documents; hidden and ignored files are passed over."
            raise NotFoundError(f"No files in {names}.", next_actions=[advice])
        importer = Importer(self.app, self.note, leave_out)
        task = self.progress.add_task("Importing", total=len(files), detail="")
        for file in sorted(files):
            self.progress.update(task, detail=visible(file.name))
            await importer.take(file)
            self.progress.advance(task)
        self.progress.update(task, detail="")
        for folder in folders if prune else ():
            if found[folder.path]:  # an empty folder is usually an unmounted disk
                await anyio.to_thread.run_sync(importer.prune, folder, files)

    def _list_files(self, folder: Folder) -> list[Path]:
        from server.cli.data.importer import Outcome

        files = list(folder.files())
        self.tally.passed_over.update(folder.passed_over)
        for error in folder.unlisted:
            message = f"{error.filename!r} cannot be listed: {error.strerror}."
            self.note(Outcome(Path(error.filename), error.filename, "skipped", message))
        return files
