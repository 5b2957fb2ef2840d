"""`toolcrib delete`: a document out of the library."""

from __future__ import annotations

from typing import Annotated

import typer

from server.cli.options import ConfigOption, DataDirOption, RootOption

__all__ = ["delete"]


def delete(  # noqa: PLR0913, PLR0917  # one parameter an option
    raw_id: Annotated[str, typer.Argument(help="The source's own name, as `query` shows it.")],
    raw_type: Annotated[str, typer.Option(help="Kind of source.")] = "file",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Delete a stored document from every index; the file itself stays."""
    from server.cli.opened import opened  # noqa: PLC0415  # `--help` does not wait for the SDK

    with opened(root=root, data_dir=data_dir, config_file=config) as app:
        shelf = app.library.shelf(app.identity)
        document, _ = shelf.get_document(raw_type, raw_id)
        if not yes:
            typer.confirm(
                f"Delete {document.title!r} with {document.chunk_count} chunks?", abort=True
            )
        typer.echo(f"Deleted {shelf.delete_document(raw_type, raw_id)} chunks.")
        while app.library.indexer.step():
            pass
