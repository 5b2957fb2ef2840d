"""Web search: titles, snippets and addresses from the engine of the settings."""

from __future__ import annotations

from typing import Annotated, Literal

import anyio.to_thread
from pydantic import Field

from tools.core.context import RequestContext
from tools.core.model import ToolModel
from tools.core.spec import Effect, ToolScope, tool

__all__ = ["web_search"]

QUERY_CHARACTERS = 500
MOST_PAGES = 50


class FoundPage(ToolModel):
    """A page of the web.

    Attributes:
        title: Its title.
        snippet: What it says of the query.
        url: Where it is.
        source: The engine that found it.
    """

    title: str
    snippet: str
    url: str
    source: str

    def to_text(self, number: int) -> str:
        """Two or three lines."""
        return "\n".join(filter(None, [f"{number}. {self.title}", self.url, self.snippet]))


class FoundPages(ToolModel):
    """What a search found.

    Attributes:
        query: What was searched for.
        results: Best first, each page once; empty where nothing was found.
        engine: Which engine answered.
    """

    query: str
    results: list[FoundPage]
    engine: str

    def to_text(self) -> str:
        """The results in their order, or that there are none."""
        if not self.results:
            return (
                f"{self.engine} found nothing for {self.query!r}."
                " Ask in other words, or without timelimit and lang."
            )
        shown = [each.to_text(number) for number, each in enumerate(self.results, start=1)]
        return "\n\n".join(shown)


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.READ, Effect.EXTERNAL},
    tags=("system", "web"),
    capabilities=("search the web", "find current information and documentation on the internet"),
)
async def web_search(
    context: RequestContext,
    query: Annotated[
        str, Field(max_length=QUERY_CHARACTERS, pattern=r"\S", description="What to look for")
    ],
    max_results: Annotated[int, Field(ge=1, le=20, description="Most results")] = 5,
    lang: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z]{2}([-_][A-Za-z]{2})?$",
            description="Language, with a country if it matters: de, pt-BR",
        ),
    ] = None,
    timelimit: Annotated[
        Literal["d", "w", "m", "y"] | None,
        Field(description="Only what is at most a day, week, month or year old"),
    ] = None,
    page: Annotated[int, Field(ge=1, le=MOST_PAGES, description="Further results: 2, 3 …")] = 1,
) -> FoundPages:
    """Searches the web: the query leaves this machine. read_web_page reads what it finds."""
    query = " ".join(query.split())
    search = await anyio.to_thread.run_sync(getattr, context.machine, "search")  # loads it
    found = await search.search(
        query,
        max_results=max_results,
        lang=lang or "",
        timelimit=timelimit,
        page=page,
    )
    return FoundPages(
        query=query,
        results=[
            FoundPage(title=each.title, snippet=each.snippet, url=each.url, source=each.source)
            for each in found.results
        ],
        engine=found.engine,
    )
