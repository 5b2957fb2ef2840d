"""`toolcrib search`: which tools fit a need."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
import typer

from server.cli.options import ConfigOption, DataDirOption, FunctionsOption, RootOption

if TYPE_CHECKING:
    from server.app import App
    from tools.core.retrieval import SearchResult, ToolIndex, ToolRecord
    from tools.core.spec import ToolSpec

__all__ = ["search"]

PATIENCE = 5.0
"""Seconds that a search waits for what was never embedded before; then it goes by what there is."""


def search(  # noqa: PLR0913, PLR0917  # one parameter an option
    query: Annotated[str, typer.Option(help="What is needed, in words.", metavar="TEXT")],
    top_k: Annotated[int, typer.Option(help="Most results.", min=1)] = 5,
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", help="Only tools with this tag, or with another that is given."),
    ] = None,
    output_format: Annotated[
        Literal["text", "json"], typer.Option(help="How the results are printed.")
    ] = "text",
    functions: FunctionsOption = None,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Find tools by what they do: all there are, and those that `index` has read."""
    from server.cli.opened import opened  # noqa: PLC0415  # `--help` does not wait for the SDK
    from tools.core.retrieval import SearchQuery  # noqa: PLC0415  # the same

    if not query.strip():
        raise typer.BadParameter("it is empty", param_hint="--query")
    asked = SearchQuery(query_text=query, tags_filter=tuple(tags or ()), top_k=top_k)
    with opened(root=root, data_dir=data_dir, config_file=config, functions=functions) as app:
        anyio.run(app.functions.load_once)
        with _filled(app) as index:
            results = index.search(asked)
    if output_format == "json":
        shown = [_described(result) for result in results]
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        _print(results)


@contextmanager
def _filled(app: App) -> Iterator[ToolIndex]:
    """The index of all tools; what is missing in it is made until the block ends."""
    from tools.core.retrieval import ToolIndex  # noqa: PLC0415  # imported on first use

    index = ToolIndex(cache=app.library.catalog.analyses)
    index.add_tools(_records(app))
    filling = threading.Thread(target=index.build_index)
    filling.start()
    filling.join(PATIENCE)
    try:
        yield index
    finally:
        index.close()
        filling.join()


def _records(app: App) -> Iterator[ToolRecord]:
    """Every tool there is; a file that describes one under the same name has the last word."""
    from tools.core.retrieval import ToolRecord  # noqa: PLC0415  # imported on first use

    for spec in app.registry.specs():
        yield _record(spec, app.registry.description_of(spec))
    for stored in app.library.catalog.records.listed():
        yield ToolRecord.model_validate(stored.fields)


def _record(spec: ToolSpec, description: str) -> ToolRecord:
    from tools.core.retrieval import ToolRecord  # noqa: PLC0415  # imported on first use

    return ToolRecord(
        tool_id=spec.name,
        name=spec.name,
        description=description,
        tags=spec.tags,
        capabilities=spec.capabilities,
        parameters=dict(spec.input_schema),
        server=spec.server,
        aliases=spec.aliases,
    )


def _described(result: SearchResult) -> dict[str, Any]:
    return {
        "rank": result.rank,
        "tool_id": result.tool.tool_id,
        "name": result.tool.name,
        "score": round(result.score, 4),
        "description": result.tool.description,
    }


def _print(results: Sequence[SearchResult]) -> None:
    from server.visible import visible  # noqa: PLC0415  # imported on first use

    if not results:
        typer.echo("No tool fits; try other words, or fewer tags.", err=True)
    for result in results:
        typer.echo(f"  [{result.rank}] {visible(result.tool.name)} (score={result.score:.4f})")
        typer.echo(f"      {visible(result.tool.description.partition(chr(10))[0])}")
