"""`toolcrib rebuild`: both indexes anew, from what is stored."""

from __future__ import annotations

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption

__all__ = ["rebuild"]


def rebuild(
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Make both indexes and the file anew, also while servers run; nothing is embedded again."""
    from server.cli.opened import opened, record
    from server.cli.terminal.progress import bars, drain
    from server.cli.terminal.text import console
    from storage.keeping.erasure import erase

    with record(data_dir, config), opened(data_dir=data_dir, config_file=config) as app:
        app.library.indexer.rebuild_words()
        app.library.indexer.rebuild_vectors()
        with bars(console()) as progress:
            done = drain(app.library, progress)
        erase(app.library.database)
    typer.echo(f"Indexed {done.words} chunks by their words and {done.vectors} by their vectors.")
