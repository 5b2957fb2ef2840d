"""Directories of people and things: generic tools, and tools for researchers."""

from __future__ import annotations

from dataclasses import replace
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Unpack

from pydantic import Field

from storage.directory.models import RESEARCHERS, Directory
from storage.models import SearchFilter
from tools.answers.customization import LONGEST_DESCRIPTION, with_enum
from tools.answers.directory import SearchedDirectory, counted, in_words
from tools.answers.directory_lists import FilteredDirectory, ListedItems
from tools.answers.params import TopK
from tools.core.collections import Collections
from tools.core.context import IdentityArguments, RequestContext
from tools.core.errors import InvalidArgumentsError, NotFoundError
from tools.core.spec import Effect, ToolScope, ToolSpec, tool

if TYPE_CHECKING:
    from storage.directory.directories import Directories

LIST = "list"  # the value that requests the list of groups
Name = Annotated[str, Field(min_length=1, max_length=256)]
Topic = Annotated[str, Field(min_length=1, max_length=2_000)]
Value = Annotated[str, Field(min_length=1, max_length=300)]
Year = Annotated[int, Field(ge=1, le=9999)]
Limit = Annotated[int, Field(ge=1, le=200, description="Most on a page")]
Offset = Annotated[int, Field(ge=0, le=1_000_000, description="How many are skipped")]
DirectoryName = Annotated[str, Field(min_length=1, max_length=64, description="Which directory")]
FieldName = Annotated[str, Field(min_length=1, max_length=64)]


def _customize(spec: ToolSpec, collections: Collections) -> ToolSpec:
    """Adds the names of configured directories and their fields to a tool."""
    directories = collections.directories
    fields = {
        "directory": [each.name for each in directories],
        "field": [field for each in directories for field in each.groups],
        "items": [field for each in directories for field in each.items],
    }
    for parameter, names in fields.items():
        if parameter in spec.input_schema["properties"]:
            spec = with_enum(spec, parameter, list(dict.fromkeys(names)))
    told = (
        f"{each.name} ({each.description or counted(2, each.noun)[2:]})" for each in directories
    )
    whole = f"{spec.description} Directories: {', '.join(told)}."
    return replace(spec, description=shorten(whole, LONGEST_DESCRIPTION, placeholder=" …"))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("directory", "people"),
    capabilities=(
        "look up a person or a thing by name, such as in a directory of staff",
        "find who or what in a directory is about a topic",
    ),
    customize=_customize,
)
def directory_search(
    context: RequestContext,
    directory: DirectoryName,
    name: Annotated[Name | None, Field(description="A name, in any spelling")] = None,
    topic: Annotated[Topic | None, Field(description="What they are about")] = None,
    query: Annotated[Topic | None, Field(description="A name or a topic, if unsure which")] = None,
    top_k: TopK = 10,
    **identity: Unpack[IdentityArguments],
) -> SearchedDirectory:
    """Finds people or things in an imported directory by a name, a topic or a query."""
    asked = {"name": name, "topic": topic, "query": query}
    return _search_in(context, directory, asked, top_k, identity)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("directory", "people"),
    capabilities=(
        "list everybody or everything of a group in a directory",
        "list the groups of a directory and how many are in each",
    ),
    customize=_customize,
)
def directory_filter(
    context: RequestContext,
    directory: DirectoryName,
    field: Annotated[FieldName, Field(description='A group field, such as "department"')],
    value: Annotated[Value, Field(description='In any spelling; "list" lists the values')],
    limit: Limit = 50,
    offset: Offset = 0,
    **identity: Unpack[IdentityArguments],
) -> FilteredDirectory:
    """Lists who or what belongs to a group of an imported directory, or which groups there are."""
    page = (limit, offset)
    return _filter_in(context, directory, field, value, page, identity)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("directory", "people"),
    capabilities=("find what people or things of a directory have made or got, by topic or year",),
    customize=_customize,
)
def directory_items(
    context: RequestContext,
    directory: DirectoryName,
    items: Annotated[FieldName, Field(description='A list field, such as "publications"')],
    topic: Annotated[Topic | None, Field(description="What they are about")] = None,
    year: Annotated[Year | None, Field(description="Only of this year; alone, lists them")] = None,
    top_k: TopK = 10,
    **identity: Unpack[IdentityArguments],
) -> ListedItems:
    """Finds items of an imported directory, such as publications, by topic and year."""
    asked = (topic, year)
    return _items_in(context, directory, items, asked, top_k, identity)


def _search_in(
    context: RequestContext,
    directory: str,
    asked: dict[str, str | None],  # the three values in this order, by parameter name
    top_k: int,
    identity: IdentityArguments,
) -> SearchedDirectory:
    """Finds records by exactly one of a name, a topic and a query."""
    given = [name for name, text in asked.items() if text is not None and text.strip()]
    if len(given) != 1:
        names = ", ".join(asked)
        one = "only one can be given" if given else "all are missing"
        raise InvalidArgumentsError(
            f"{' and '.join(given) or names}: {one}.",
            next_actions=[f"Send exactly one of {names}; {list(asked)[-1]} if you cannot tell."],
        )
    where = context.collections.directory(directory)
    directories = context.shelf(**identity).directories
    text = (asked[given[0]] or "").strip()
    ways = (directories.search_names, directories.search_topics, directories.search)
    found = ways[list(asked).index(given[0])](where, text, top_k)
    if not found.records:
        _check_filled(directories, where)
    return SearchedDirectory.of(where, found)


def _filter_in(
    context: RequestContext,
    directory: str,
    field: str,
    value: str,  # the group, in any spelling, or "list"
    page: tuple[int, int],  # the limit and the offset
    identity: IdentityArguments,
) -> FilteredDirectory:
    """Lists the members of a group, or for "list" the groups."""
    where = context.collections.directory(directory)
    directories = context.shelf(**identity).directories
    if value.strip().casefold() == LIST:
        sizes = directories.groups(where, field)
        if not sizes:
            _check_filled(directories, where)
        return FilteredDirectory.of_groups(where, field, sizes, page)
    found = directories.members(where, field, value, *page)
    if found.match == "none":
        _check_filled(directories, where)
        raise NotFoundError(
            f"No {in_words(field)} is like {value!r}.",
            suggestions=found.nearest,
            next_actions=[f'Send "{LIST}" to see which there are.'],
        )
    return FilteredDirectory.of(where, field, found, page)


def _items_in(
    context: RequestContext,
    directory: str,
    items: str,
    asked: tuple[str | None, int | None],  # the topic and the year
    top_k: int,
    identity: IdentityArguments,
) -> ListedItems:
    """Finds items by a topic, a year or both."""
    from storage.directory.record_documents import YEAR

    topic, year = (asked[0] or "").strip(), asked[1]
    if not topic and year is None:
        raise InvalidArgumentsError(
            "topic and year: both are missing.", next_actions=["Send a topic, a year, or both."]
        )
    where = context.collections.directory(directory)
    shelf = context.shelf(**identity)
    found = shelf.directories.search_items(where, items, topic, top_k, since=year, until=year)
    if not found.items:
        _check_filled(shelf.directories, where)
    criteria = SearchFilter(raw_types=(where.items_type(items),), labels=((YEAR, (str(year),)),))
    total = None if topic else shelf.count(criteria)
    return ListedItems.of(where, items, (topic, year), found, total)


def _check_filled(directories: Directories, directory: Directory) -> None:
    if directories.count(directory):
        return
    command = f"toolcrib import {directory.name}"
    sample = f"`{command} --sample` imports made-up ones to try"
    raise NotFoundError(
        f"Nothing is imported into the directory {directory.name!r}.",
        next_actions=[
            f"Ask the user to run `{command} FILE` with a JSON, JSONL or CSV file.",
            *([f"{sample}."] if directory.name == "researchers" else []),
        ],
    )


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
    return _search_in(context, RESEARCHERS.name, asked, top_k, identity)


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
    return _filter_in(context, RESEARCHERS.name, "department", department, page, identity)


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
    return _filter_in(context, RESEARCHERS.name, "program", program, page, identity)


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
    return _items_in(context, RESEARCHERS.name, "publications", (topic, year), top_k, identity)
