"""`toolcrib query`: searches, and shows scores and matched words."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import anyio
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, JsonOption, RootOption
from server.cli.terminal.screen import echo, print_json


def query(  # noqa: PLR0913, PLR0917  # one parameter an option
    text: Annotated[str, typer.Argument(help="What to look for.")],
    scope: Annotated[
        Literal["auto", "memory", "knowledge", "all"],
        typer.Option(help="Where to search; auto decides by the question."),
    ] = "auto",
    source: Annotated[
        str | None, typer.Option(help="Only in this source of the settings.", metavar="NAME")
    ] = None,
    layer: Annotated[
        Literal["auto", "l1", "l2", "l3", "l4"],
        typer.Option(
            help="Only in this layer of memory: l1 recent, l2 important, l3 summaries, l4 facts."
        ),
    ] = "auto",
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            help="Only what has this metadata, entity, kind or source; may be repeated"
            " for more values or keys.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    top_k: Annotated[int, typer.Option(help="Maximum number of results.", min=1, max=100)] = 5,
    as_json: JsonOption = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Search what is stored, and show the scores and the matched words."""
    from server.cli.opened import open_app
    from server.cli.terminal.hits import print_hits

    asked: dict[str, Any] = {"query": text, "scope": scope, "layer": layer, "top_k": top_k}
    with open_app(root=root, data_dir=data_dir, config_file=config) as app:
        if filters:
            asked["filters"] = _filters(filters, has_sources=bool(app.settings.sources))
        if source is not None:
            asked["source"] = source
        result = anyio.run(app.manager.execute, "query", asked, app.context)
    if result.is_error:
        echo(result.text, err=True)
        sys.exit(1)
    if as_json:
        print_json(result.structured)
    else:
        print_hits(result.structured, text)


def _filters(pairs: list[str], *, has_sources: bool) -> dict[str, Any]:
    """Converts pairs to the tool's filters; without sources, metadata keys are nested."""
    from tools.answers.customization import STANDARD_FILTERS  # imported late to keep `--help` fast

    values: dict[str, list[str]] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE.", param_hint="--filter")
        values.setdefault(key.strip(), []).append(value.strip())
    plain = {key: each[0] if len(each) == 1 else each for key, each in values.items()}
    if has_sources:
        return plain
    metadata = {key: plain.pop(key) for key in list(plain) if key not in STANDARD_FILTERS}
    return {**plain, "metadata": metadata} if metadata else plain
