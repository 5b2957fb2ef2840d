"""`toolcrib query` and `search`: find what is stored, and tools by their purpose."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
import anyio.to_thread
import typer

from server.cli.terminal.options import (
    ConfigOption,
    DataDirOption,
    FunctionsOption,
    JsonOption,
    RootOption,
)
from server.cli.terminal.screen import echo, fail, print_json, say_entry
from server.mcp.visible import visible

if TYPE_CHECKING:
    from server.app import App
    from tools.retrieval import SearchQuery, ToolIndex
    from tools.retrieval.catalogue import Catalogue, Found
    from tools.retrieval.models import Kind


FILL_TIMEOUT = 5.0
"""Seconds to wait for new embeddings; then the search uses what is available."""


def search(  # noqa: PLR0913, PLR0917  # one parameter an option
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What you need, in words.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="The same, as an option.", metavar="TEXT")
    ] = None,
    top_k: Annotated[int, typer.Option(help="Maximum number of results.", min=1)] = 5,
    tags: Annotated[
        list[str] | None,
        typer.Option(
            "--tag", help="Only tools with this tag; may be repeated, for any of several."
        ),
    ] = None,
    only: Annotated[
        Literal["records", "tools", "skills"] | None,
        typer.Option(
            help="Only records: tools that files describe (`toolcrib index`); only tools: those"
            " that can be called; or only skills."
        ),
    ] = None,
    output_format: Annotated[
        Literal["text", "json"], typer.Option(help="How to print the results.")
    ] = "text",
    functions: FunctionsOption = None,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Find tools by what they do: all tools, and those that `index` has added."""
    from server.cli.opened import open_app, tell_unlisted  # `--help` needs no SDK
    from tools.retrieval import SearchQuery

    asked = SearchQuery(query_text=_need(text, query), tags_filter=tuple(tags or ()), top_k=top_k)
    with open_app(root=root, data_dir=data_dir, config_file=config, functions=functions) as app:
        app.check_names()
        found = anyio.run(_find, app, asked, only)
        tell_unlisted(app.gateway)
    if output_format == "json":
        print_json([_as_json(rank, each) for rank, each in enumerate(found, start=1)])
        return
    if not found:
        echo("No tool fits; try other words, or fewer tags.", err=True)
    for rank, each in enumerate(found, start=1):
        name = visible(each.record.name)
        place, score = f"  [{rank}] {'skill ' * each.record.is_skill}", f" (score={each.score:.4f})"
        text = each.record.description.partition("\n")[0]
        say_entry((place, "dim"), (name, "bold"), (score, "dim"), text=text)


def _need(text: str | None, query: str | None) -> str:
    """Returns the search text from the argument or the option."""
    given = [each for each in (text, query) if each is not None]
    if len(given) != 1:
        problem = "give either of them, not both" if given else "describe what you need"
        raise typer.BadParameter(problem, param_hint="'TEXT' or '--query'")
    if not given[0].strip():
        raise typer.BadParameter(
            "it is empty", param_hint="'TEXT'" if text is not None else "'--query'"
        )
    return given[0]


async def _find(app: App, asked: SearchQuery, only: Kind | None) -> list[Found]:
    from server.cli.opened import load_own

    async with app.gateway.running(eager=False):
        await app.gateway.ready()  # includes the last listings of other servers
        await load_own(app.functions, app.apis)
        await app.created.refresh()

        def run() -> list[Found]:
            with filling(app) as (catalogue, _, thread):
                thread.join(FILL_TIMEOUT)
                return catalogue.search(asked, app.identity, kind=only)

        return await anyio.to_thread.run_sync(run)


@contextmanager
def filling(app: App) -> Iterator[tuple[Catalogue, ToolIndex, threading.Thread]]:
    """Yields the catalogue, its index, and the thread that fills the index."""
    from tools.retrieval import ToolIndex
    from tools.retrieval.catalogue import Catalogue

    index = ToolIndex(cache=app.library.catalog.analyses)
    catalogue = Catalogue(
        app.registry, library=app.library, index=lambda: index, skills=app.catalogue.skills
    )
    catalogue.refresh()
    thread = threading.Thread(target=index.build_index)
    thread.start()
    try:
        yield catalogue, index, thread
    finally:
        index.close()
        thread.join()


def _as_json(rank: int, found: Found) -> dict[str, Any]:
    from tools.retrieval.models import FROM_FILE

    return {
        "rank": rank,
        "tool_id": found.record.tool_id.removeprefix(FROM_FILE),
        "name": found.record.name,
        "score": round(found.score, 4),
        "description": found.record.description,
    }


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
        fail(result.text)
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
