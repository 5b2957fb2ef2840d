"""Researchers: the directory that is always there, asked in its own words."""

from __future__ import annotations

from typing import Annotated, Unpack

from pydantic import Field

from storage.directory.models import RESEARCHERS
from tools.answers.directory import SearchedDirectory
from tools.answers.directory_lists import FilteredDirectory, ListedItems
from tools.answers.params import TopK
from tools.core.context import IdentityArguments, RequestContext
from tools.core.spec import Effect, ToolScope, tool
from tools.directory import (
    Limit,
    Name,
    Offset,
    Topic,
    Value,
    Year,
    filter_in,
    items_in,
    search_in,
)

__all__ = ["department_filter", "program_filter", "publication_search", "researcher_search"]


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("directory", "people"),
    capabilities=(
        "look up a researcher, a professor, a scientist or an expert by name",
        "tell who works on a research topic",
    ),
)
def researcher_search(
    context: RequestContext,
    researcher_name: Annotated[
        Name | None, Field(description="A name, in any spelling and order")
    ] = None,
    topic: Annotated[Topic | None, Field(description="What they work on")] = None,
    query: Annotated[Topic | None, Field(description="A name or a topic, if unsure which")] = None,
    top_k: TopK = 10,
    **identity: Unpack[IdentityArguments],
) -> SearchedDirectory:
    """Finds researchers by exactly one of a name, a research topic or a query."""
    asked = {"researcher_name": researcher_name, "topic": topic, "query": query}
    return search_in(context, RESEARCHERS.name, asked, top_k, identity)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("directory", "people"),
    capabilities=("tell who works in a department", "list the departments of the researchers"),
)
def department_filter(
    context: RequestContext,
    department: Annotated[Value, Field(description='In any spelling; "list" lists all of them')],
    limit: Limit = 50,
    offset: Offset = 0,
    **identity: Unpack[IdentityArguments],
) -> FilteredDirectory:
    """Lists the researchers who work in a department, or all departments."""
    page = (limit, offset)
    return filter_in(context, RESEARCHERS.name, "department", department, page, identity)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("directory", "people"),
    capabilities=("tell who belongs to a research program", "list the research programs"),
)
def program_filter(
    context: RequestContext,
    program: Annotated[Value, Field(description='In any spelling; "list" lists all of them')],
    limit: Limit = 50,
    offset: Offset = 0,
    **identity: Unpack[IdentityArguments],
) -> FilteredDirectory:
    """Lists the researchers of a research program, or all programs."""
    page = (limit, offset)
    return filter_in(context, RESEARCHERS.name, "program", program, page, identity)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("directory", "people"),
    capabilities=(
        "find papers, articles or publications about a topic",
        "list the publications of a year",
    ),
)
def publication_search(
    context: RequestContext,
    topic: Annotated[Topic | None, Field(description="What they are about")] = None,
    year: Annotated[Year | None, Field(description="Only of this year; alone, lists them")] = None,
    top_k: TopK = 10,
    **identity: Unpack[IdentityArguments],
) -> ListedItems:
    """Finds the researchers' publications (papers) by topic and year, and who wrote them."""
    return items_in(context, RESEARCHERS.name, "publications", (topic, year), top_k, identity)
