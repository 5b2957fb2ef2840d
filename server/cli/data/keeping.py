"""`toolcrib export`, `backup`, `restore`, `rebuild` and `delete`: keep and delete stored data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.cli.terminal.screen import echo
from server.mcp.visible import visible

if TYPE_CHECKING:
    from storage.library import Shelf
    from storage.models import Context


class Form(StrEnum):
    """The format of an export."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"


def export(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A new file, or a new folder.")],
    form: Annotated[
        Form, typer.Option("--format", help="A file of JSON lines, or a folder of Markdown files.")
    ] = Form.JSONL,
    everybody: Annotated[
        bool, typer.Option("--all", help="The data of all users, not only yours.")
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Export contexts, profile, entities and relationships to files."""
    from server.cli.opened import record
    from server.cli.terminal.progress import bars, counter
    from server.cli.terminal.screen import console
    from server.settings.sources import load
    from storage.keeping.export import export_jsonl, export_markdown
    from storage.models import Identity

    settings = load({"data_dir": data_dir}, config_file=config)
    whose = None if everybody else Identity(**settings.identity.model_dump())
    write, things = {
        Form.JSONL: (export_jsonl, "record"),
        Form.MARKDOWN: (export_markdown, "file"),
    }[form]
    target = target.absolute()
    with record(data_dir, config) as database, bars(console()) as progress:
        count = write(database, target, whose, counter(progress, "Exporting"))
    echo(f"Wrote {count} {things}{'' if count == 1 else 's'} to {visible(str(target))}.")


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File for the copy.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing FILE.")] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Copy all stored data to one file, even while servers write."""
    from server.cli.opened import record
    from server.cli.terminal.progress import bars, counter
    from server.cli.terminal.screen import console
    from storage.keeping.backup import back_up

    with record(data_dir, config) as database, bars(console()) as progress:
        made = back_up(database, file, force=force, on_copied=counter(progress, "Copying pages"))
    contexts = "1 context" if made.contexts == 1 else f"{made.contexts} contexts"
    echo(f"Copied {contexts} to {visible(str(made.path))} ({made.size / 1e6:.1f} MB).")


def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that `toolcrib backup` made.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Move existing data aside.")] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Restore a data directory from a backup; nothing in it is ever deleted."""
    from server.cli.opened import open_app
    from server.cli.terminal.progress import bars, counter, drain
    from server.cli.terminal.screen import console
    from server.settings.sources import load
    from storage.keeping import backup

    target = load({"data_dir": data_dir}, config_file=config).data_dir
    with bars(console()) as progress:
        aside = backup.restore(
            file, target, force=force, on_copied=counter(progress, "Copying pages")
        )
    echo(f"Restored {visible(str(target))}.")
    if aside is not None:
        echo(f"The previous data is now in {visible(str(aside))}; restart running servers.")
    with open_app(data_dir=target, config_file=config) as app, bars(console()) as progress:
        app.library.indexer.rebuild_vectors()
        drain(app.library, progress)


def rebuild(data_dir: DataDirOption = None, config: ConfigOption = None) -> None:
    """Rebuild both indexes and rewrite the database file, even while servers run."""
    from server.cli.opened import open_app, record
    from server.cli.terminal.progress import bars, drain
    from server.cli.terminal.screen import console
    from storage.keeping.erasure import erase

    with record(data_dir, config), open_app(data_dir=data_dir, config_file=config) as app:
        app.library.indexer.rebuild_words()
        app.library.indexer.rebuild_vectors()
        with bars(console()) as progress:
            done = drain(app.library, progress)
        erase(app.library.database)
    by_vectors = f" and {done.vectors} by their vectors" if done.vectors else ""
    echo(f"Indexed {done.words} chunks by their words{by_vectors}.")


MOST_COMPARED = 10_000
"""Stored documents compared with an unknown name to suggest similar ones."""


def delete(
    source: Annotated[
        str, typer.Argument(help="A file, or another source as `query` shows it (KIND: NAME).")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Delete a stored document from every index; the file itself stays."""
    from server.cli.opened import open_app
    from server.cli.terminal.progress import work

    with open_app(root=root, data_dir=data_dir, config_file=config) as app:
        shelf = app.library.shelf(app.identity)
        document = _find(shelf, source, app.settings.root)
        if not yes:
            typer.confirm(f"Delete {_describe_document(document)}?", abort=True, err=True)
        shelf.delete_document(document.raw_type, document.raw_id)
        echo(f"Deleted {_describe_document(document)}.")
        if shelf.index_status().complete:  # otherwise they are deleted after the rest is embedded
            while work(app.library):
                pass


def _find(shelf: Shelf, source: str, root: Path) -> Context:
    """Returns the document that the user names."""
    from storage.errors import DocumentNotFoundError

    for raw_type, raw_id in _readings(source, root):
        try:
            return shelf.get_document(raw_type, raw_id)[0]
        except DocumentNotFoundError:
            continue
    raise _not_stored(shelf, source)


def _readings(source: str, root: Path) -> Iterator[tuple[str, str]]:
    """Yields possible readings: a stored name, a path on this machine, a kind and a name."""
    yield "file", source
    path = Path(os.path.realpath(source))
    yield "file", (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
    kind, colon, name = source.partition(": ")
    if colon:
        yield kind, name


def _not_stored(shelf: Shelf, source: str) -> Exception:
    import difflib

    from server.cli.terminal.hits import source_of
    from storage.models import ContextType, SearchFilter
    from tools.core.errors import NotFoundError

    documents = shelf.contexts(SearchFilter(context_types=(ContextType.DOCUMENT,)), MOST_COMPARED)
    stored = [source_of(document.raw_type, document.raw_id) for document in documents]
    return NotFoundError(
        f"{source!r} is not stored.",
        suggestions=difflib.get_close_matches(source, stored, n=3),
        next_actions=["Find the document with `toolcrib query`, which shows each source."],
    )


def _describe_document(document: Context) -> str:
    from server.cli.terminal.hits import source_of

    chunks = "1 chunk" if document.chunk_count == 1 else f"{document.chunk_count} chunks"
    source = source_of(document.raw_type, document.raw_id)
    return f"{visible(document.title)!r} ({source}, {chunks})"
