"""`toolcrib search` and `toolcrib index`: find tools by purpose, and index described tools."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
import anyio.to_thread
import typer

from server.cli.terminal.options import ConfigOption, DataDirOption, FunctionsOption, RootOption
from server.cli.terminal.screen import console, echo, print_json, print_line, say
from server.mcp.visible import visible

if TYPE_CHECKING:
    from server.app import App
    from storage.catalog.catalog import Records
    from tools.retrieval import SearchQuery, ToolIndex
    from tools.retrieval.catalogue import Catalogue, Found
    from tools.retrieval.models import Kind

SHOWN_EVERY = 0.2
"""Seconds between updates of the progress bar."""

FILL_TIMEOUT = 5.0
"""Seconds to wait for new embeddings; then the search uses what is available."""

DESCRIPTION_CHARACTERS = 300
"""Length of a description as text; JSON has it in full."""


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
        found = anyio.run(_find, app, asked, only)
        tell_unlisted(app.gateway)
    if output_format == "json":
        shown = [_as_json(rank, each) for rank, each in enumerate(found, start=1)]
        print_json(shown)
    else:
        _print(found)


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
        return await anyio.to_thread.run_sync(_search, app, asked, only)


def _search(app: App, asked: SearchQuery, only: Kind | None) -> list[Found]:
    """Searches when the index is complete, or after a few seconds with what it has."""
    with _filling(app) as (catalogue, _, filling):
        filling.join(FILL_TIMEOUT)
        return catalogue.search(asked, app.context.identity, kind=only)


@contextmanager
def _filling(app: App) -> Iterator[tuple[Catalogue, ToolIndex, threading.Thread]]:
    """Yields the catalogue, its index, and the thread that fills the index."""
    from tools.retrieval import ToolIndex
    from tools.retrieval.catalogue import Catalogue

    index = ToolIndex(cache=app.library.catalog.analyses)
    catalogue = Catalogue(
        app.registry, library=app.library, index=lambda: index, skills=app.catalogue.skills
    )
    catalogue.refresh()
    filling = threading.Thread(target=index.build_index)
    filling.start()
    try:
        yield catalogue, index, filling
    finally:
        index.close()
        filling.join()


def _as_json(rank: int, found: Found) -> dict[str, Any]:
    from tools.retrieval.models import FROM_FILE

    return {
        "rank": rank,
        "tool_id": found.record.tool_id.removeprefix(FROM_FILE),
        "name": found.record.name,
        "score": round(found.score, 4),
        "description": found.record.description,
    }


def _print(found: Sequence[Found]) -> None:
    from tools.answers.tool_cards import clipped_line

    if not found:
        echo("No tool fits; try other words, or fewer tags.", err=True)
    for rank, each in enumerate(found, start=1):
        name = visible(each.record.name)
        kind = "skill " * each.record.is_skill
        say((f"  [{rank}] {kind}", "dim"), (name, "bold"), (f" (score={each.score:.4f})", "dim"))
        said = visible(each.record.description.partition("\n")[0])
        if said:
            say(f"      {clipped_line(said, DESCRIPTION_CHARACTERS)}")


def index(
    tools_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of JSON files that describe tools."),
    ] = None,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Remove what was indexed from the directory instead."),
    ] = False,
    forget_uses: Annotated[
        bool,
        typer.Option("--forget-uses", help="Forget which tools were used for which questions."),
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Index, or index again, the tools that the JSON files of a directory describe."""
    from server.cli.opened import open_app

    if tools_dir is None and not forget_uses:
        raise typer.BadParameter("give --tools-dir, --forget-uses or both")
    if remove and tools_dir is None:
        raise typer.BadParameter("--remove needs --tools-dir: the directory to remove")
    if tools_dir is not None and not remove and not tools_dir.is_dir():
        raise typer.BadParameter(f"{str(tools_dir)!r} is not a directory", param_hint="--tools-dir")
    with open_app(data_dir=data_dir, config_file=config) as app:
        if tools_dir is not None and remove:
            _remove(app.library.catalog.records, tools_dir)
        elif tools_dir is not None:
            _index(app.library.catalog.records, tools_dir)
            _analyse(app)
        if forget_uses:
            echo(f"Forgot {app.library.catalog.uses.forget(app.identity)} use(s).")


def _index(records: Records, given: Path) -> None:
    from server.cli.record_files import read_records

    directory = Path(os.path.realpath(given))
    found = read_records(directory)
    gone = records.replace(directory, found.records)
    for each in found.skipped:
        print_line(console(), f"Warning: skipped {each.file}: {each.reason}", "yellow")
    echo(f"Indexed {len(found.records)} tool(s) from {visible(str(given))}.")
    if gone:
        echo(f"Dropped {gone} that the files no longer describe.")


def _remove(records: Records, given: Path) -> None:
    gone = records.replace(Path(os.path.realpath(given)), [])
    echo(f"Dropped {gone} tool(s) of {visible(str(given))}.")


def _analyse(app: App) -> None:
    """Embeds and stores the tool analyses in advance, so that searches do not wait."""
    with _filling(app) as (_, index, filling):
        _show(index, filling)
        filling.join()


def _show(index: ToolIndex, filling: threading.Thread) -> None:
    """Shows the indexing progress on a terminal."""
    from server.cli.terminal.progress import bars, counter

    where = console()
    if not where.is_terminal:
        return
    with bars(where) as progress:
        show = counter(progress, "Embedding")
        while filling.is_alive():
            filling.join(SHOWN_EVERY)
            show(round(min(index.coverage.values()) * len(index)), len(index))
