"""`toolcrib search`: which tools fit a need."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
import anyio.to_thread
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, FunctionsOption, RootOption

if TYPE_CHECKING:
    from server.app import App
    from tools.retrieval import SearchQuery
    from tools.retrieval.catalogue import Found

__all__ = ["search"]

PATIENCE = 5.0
"""Seconds that a search waits for what was never embedded before; then it goes by what there is."""

DESCRIPTION_CHARACTERS = 300
"""Of a description in lines; as JSON it is whole."""


def search(  # noqa: PLR0913, PLR0917  # one parameter an option
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What is needed, in words.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="The same, as an option.", metavar="TEXT")
    ] = None,
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
    from server.cli.known_tools import tell_unlisted  # `--help` needs no SDK
    from server.cli.opened import opened
    from tools.retrieval import SearchQuery

    asked = SearchQuery(query_text=_need(text, query), tags_filter=tuple(tags or ()), top_k=top_k)
    with opened(root=root, data_dir=data_dir, config_file=config, functions=functions) as app:
        found = anyio.run(_found, app, asked)
        tell_unlisted(app.gateway)
    if output_format == "json":
        shown = [_described(rank, each) for rank, each in enumerate(found, start=1)]
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        _print(found)


def _need(text: str | None, query: str | None) -> str:
    """What is needed, in whichever way it was given.

    Raises:
        BadParameter: If it was given in both or in none, or is empty.
    """
    given = [each for each in (text, query) if each is not None]
    if len(given) != 1:
        problem = "give either of them, not both" if given else "say in words what is needed"
        raise typer.BadParameter(problem, param_hint="'TEXT' or '--query'")
    if not given[0].strip():
        raise typer.BadParameter(
            "it is empty", param_hint="'TEXT'" if text is not None else "'--query'"
        )
    return given[0]


async def _found(app: App, asked: SearchQuery) -> list[Found]:
    async with app.gateway.running(eager=False):
        await app.gateway.ready()  # with what other servers listed last
        await app.functions.load_once()
        return await anyio.to_thread.run_sync(_search, app, asked)


def _search(app: App, asked: SearchQuery) -> list[Found]:
    """Searches when the index has all its parts, or goes by what it has after some seconds."""
    from tools.retrieval import ToolIndex
    from tools.retrieval.catalogue import Catalogue

    index = ToolIndex(cache=app.library.catalog.analyses)
    catalogue = Catalogue(app.registry, library=app.library, index=lambda: index)
    catalogue.refresh()
    filling = threading.Thread(target=index.build_index)
    filling.start()
    filling.join(PATIENCE)
    try:
        return catalogue.search(asked, app.context.identity)
    finally:
        index.close()
        filling.join()


def _described(rank: int, found: Found) -> dict[str, Any]:
    from tools.retrieval.file_records import FROM_FILE

    return {
        "rank": rank,
        "tool_id": found.record.tool_id.removeprefix(FROM_FILE),
        "name": found.record.name,
        "score": round(found.score, 4),
        "description": found.record.description,
    }


def _print(found: Sequence[Found]) -> None:
    from server.cli.terminal.screen import say
    from server.mcp.visible import visible
    from tools.answers.tool_cards import clipped_line

    if not found:
        typer.echo("No tool fits; try other words, or fewer tags.", err=True)
    for rank, each in enumerate(found, start=1):
        name = visible(each.record.name)
        say((f"  [{rank}] ", "dim"), (name, "bold"), (f" (score={each.score:.4f})", "dim"))
        said = visible(each.record.description.partition("\n")[0])
        if said:
            say(f"      {clipped_line(said, DESCRIPTION_CHARACTERS)}")
