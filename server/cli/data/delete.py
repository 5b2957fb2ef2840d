"""`toolcrib delete`: deletes a document from the library."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.cli.terminal.screen import echo
from server.mcp.visible import visible

if TYPE_CHECKING:
    from storage.library import Shelf
    from storage.models import Context

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
    """Returns the document that the user names.

    Raises:
        NotFoundError: With similar names.
    """
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
