"""`toolcrib query`: the retrieval, with everything it saw."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import anyio
import typer

from server.cli.options import ConfigOption, DataDirOption, RootOption

__all__ = ["query"]


def query(  # noqa: PLR0913, PLR0917  # one parameter an option
    text: Annotated[str, typer.Argument(help="What to look for.")],
    top_k: Annotated[int, typer.Option(help="Most results.", min=1, max=100)] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Search what is stored, and show the scores and the matched words."""
    from server.cli.hits import print_hits  # noqa: PLC0415  # `--help` does not wait for it
    from server.cli.opened import opened  # noqa: PLC0415  # the same

    with opened(root=root, data_dir=data_dir, config_file=config) as app:
        asked = {"query": text, "top_k": top_k}
        result = anyio.run(app.manager.execute, "query", asked, app.context)
    if result.is_error:
        typer.echo(result.text, err=True)
        sys.exit(1)
    if as_json:
        typer.echo(json.dumps(result.structured, indent=2, ensure_ascii=False))
    else:
        print_hits(result.structured)
